#include "cli/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "cli/errors.hpp"

namespace grosr::tool::interrupt {
namespace {

constexpr int grace_s = 3;
std::atomic<bool> came{false};

void say(std::string_view text) { [[maybe_unused]] auto n = write(2, text.data(), text.size()); }

void watch(sigset_t signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  came = true;
  const timespec grace{grace_s, 0};
  if (sigtimedwait(&signals, nullptr, &grace) < 0)
    say("grosr: interrupted; the device's work did not stop within 3 s and is cut off\n");
  else
    say("grosr: interrupted twice; the device's work is cut off\n");
  _exit(exit_interrupted);
}

}  // namespace

void install() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // every later thread inherits this
  std::thread(watch, signals).detach();
}

bool requested() { return came.load(std::memory_order_relaxed); }

void check() {
  if (requested()) throw interrupted{};
}

void sleep_for_seconds(double seconds) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(
                                      std::chrono::duration<double>(seconds));
  for (;;) {
    check();
    const auto left = end - clock::now();
    if (left <= clock::duration::zero()) return;
    std::this_thread::sleep_for(std::min<clock::duration>(left, std::chrono::milliseconds(20)));
  }
}

}  // namespace grosr::tool::interrupt
