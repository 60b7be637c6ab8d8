#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/interrupt.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

bool shown = false;
progress* innermost = nullptr;

bool on_terminal() {
  static const bool yes = isatty(STDERR_FILENO) == 1;
  return yes;
}

}  // namespace

progress::progress(std::string what, std::uint64_t steps)
    : what_(std::move(what)),
      steps_(steps),
      began_(std::chrono::steady_clock::now()),
      drawn_(began_),
      outer_(std::exchange(innermost, this)) {}

progress::~progress() {
  innermost = outer_;
  clear();
}

void progress::pulse() {
  if (innermost != nullptr)
    innermost->at(innermost->done_);
  else
    interrupt::check();
}

void progress::at(std::uint64_t done) {
  done_ = done;
  interrupt::check();
  if (!on_terminal()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - began_ < std::chrono::seconds(1) || now - drawn_ < std::chrono::milliseconds(100))
    return;
  drawn_ = now;
  draw();
}

void progress::draw() {
  const double seconds = std::chrono::duration<double>(drawn_ - began_).count();
  if (steps_ == 0) {
    say(fmt::format("\r\033[K  {}  {:.0f} s", what_, seconds));
  } else {
    constexpr std::uint64_t width = 30;
    const std::uint64_t filled = width * std::min(done_, steps_) / steps_;
    say(fmt::format("\r\033[K  {}  [{:=<{}}{: <{}}] {} of {}  {:.0f} s", what_, "", filled, "",
                    width - filled, done_, steps_, seconds));
  }
  std::fflush(stderr);
  shown = true;
}

void progress::clear() {
  if (!shown) return;
  say("\r\033[K");
  std::fflush(stderr);
  shown = false;
}

}  // namespace grosr::tool
