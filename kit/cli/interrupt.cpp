#include "cli/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "cli/errors.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::tool::interrupt {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto grace = std::chrono::seconds(3);
constexpr auto echo = std::chrono::milliseconds(500);  // `timeout` and shells signal twice

std::atomic<bool> came{false}, limited{true};

/// Files that nobody will finish. Lives as long as the thread that may cut the program off.
struct leftovers {
  std::mutex lock;
  std::set<std::string> paths;
  static leftovers& all() {
    static auto* const one = new leftovers;
    return *one;
  }
};

[[noreturn]] void cut_off(std::string_view why) {
  {
    std::lock_guard guard(leftovers::all().lock);
    for (const std::string& path : leftovers::all().paths) unlink(path.c_str());
  }
  [[maybe_unused]] auto n = write(STDERR_FILENO, why.data(), why.size());
  _exit(exit_interrupted);
}

void watch(sigset_t signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  came = true;
  const auto began = clock::now();
  while (!limited || clock::now() - began < grace) {
    const timespec step{0, 50'000'000};
    if (sigtimedwait(&signals, nullptr, &step) >= 0 && clock::now() - began > echo)
      cut_off("grosr: interrupted twice; the device's work is cut off\n");
  }
  cut_off("grosr: interrupted; the device's work did not stop within 3 s and is cut off\n");
}

}  // namespace

void install() {
  signal(SIGPIPE, SIG_IGN);  // writes say so themselves
  signal(SIGXFSZ, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // every later thread inherits this
  try {
    std::thread(watch, signals).detach();
  } catch (const std::system_error& e) {
    throw grosr::error(errc::out_of_memory,
                       std::string("no thread could be started, to wait for Ctrl-C (") +
                           e.code().message() + "); allow this user more processes (ulimit -u)");
  }
}

void remove_when_cut_off(const std::string& path) {
  std::lock_guard guard(leftovers::all().lock);
  leftovers::all().paths.insert(path);
}

void keep_when_cut_off(const std::string& path) {
  std::lock_guard guard(leftovers::all().lock);
  leftovers::all().paths.erase(path);
}

bool requested() { return came.load(std::memory_order_relaxed); }

void check() {
  if (requested()) throw interrupted{};
}

void finish_without_limit() { limited = false; }

void sleep_for_seconds(double seconds) {
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
