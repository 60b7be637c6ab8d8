#include "competitors.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "cli/interrupt.hpp"
#include "measure/samples.hpp"

namespace grosr::cryptfs {
namespace {

constexpr double start_limit_us = 60e6;  // a GPU's context takes seconds at worst

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ended it", WTERMSIG(status));
  return fmt::format("it ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

competitors::competitors(unsigned count, const device& d, std::uint64_t steps) {
  try {
    for (unsigned i = 0; i < count; ++i) {
      all_.push_back({0, std::make_unique<shared_memory>(sizeof(std::uint64_t))});
      all_.back().pid =
          start_own({"compete", "--device", d.name(), "--steps", std::to_string(steps)},
                    {-1, -1, until_.read_end, all_.back().count->fd()});
    }
    wait_until_running();
  } catch (...) {
    end();
    throw;
  }
}

competitors::~competitors() { end(); }

void competitors::wait_until_running() {
  const auto began = tool::clock::now();
  const auto runs = [](const one& o) { return kernels_in(*o.count) != 0; };
  while (!std::all_of(all_.begin(), all_.end(), runs)) {
    if (const std::string what = wrong(); !what.empty()) throw std::runtime_error(what);
    if (tool::microseconds_since(began) > start_limit_us)
      throw std::runtime_error("a competitor has finished no kernel within a minute");
    tool::interrupt::sleep_for_seconds(0.001);
  }
}

std::uint64_t competitors::finished() const {
  return std::accumulate(all_.begin(), all_.end(), std::uint64_t{0},
                         [](std::uint64_t n, const one& o) { return n + kernels_in(*o.count); });
}

std::string competitors::wrong() {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    int status = 0;
    if (all_[i].pid == 0 || waitpid(all_[i].pid, &status, WNOHANG) != all_[i].pid) continue;
    if (wrong_.empty())
      wrong_ = fmt::format("competitor {} of {} (process {}) has not competed to the end: {}",
                           i + 1, all_.size(), all_[i].pid, how_it_ended(status));
    all_[i].pid = 0;
  }
  return wrong_;
}

/// Each ends by itself after the kernel that it is in; one that does not is killed.
void competitors::end() noexcept {
  pipe_ends::close_end(until_.write_end);
  const auto began = tool::clock::now();
  for (one& o : all_)
    for (bool killed = false; o.pid != 0;) {
      if (waitpid(o.pid, nullptr, WNOHANG) != 0) o.pid = 0;
      if (o.pid == 0) break;
      if (!killed && tool::microseconds_since(began) > 5e6) killed = kill(o.pid, SIGKILL) == 0;
      const timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
}

}  // namespace grosr::cryptfs
