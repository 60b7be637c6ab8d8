// A program that ends without destroying its server: what was called is complete, and it ends in
// time.
#include <sys/wait.h>

#include <cstdlib>
#include <thread>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(program_exit);

using namespace std::chrono_literals;

struct print_some {
  server_ref sys;
  std::uint32_t* printed;  // pinned
  bool ends;
  GROSR_DEVICE void operator()() const {
    for (int i = 0; i < 10; ++i) print(sys, "lane {} line {}\n", simt::thread_id(), i);
    simt::sync_block();
    if (simt::thread_id() == 0)
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*printed).store(1, simt::release);
    while (!ends && nothing(sys) != -ESHUTDOWN) {
    }
  }
};

/// Prints from a kernel, and leaves the program by exit() while the kernel runs, or has ended.
[[noreturn]] void print_and_exit(device d, bool ends) {
  options o;
  o.threads = 2;
  o.exit_patience = 2000ms;
  o.print_to = 2;  // where the death test looks
  // Never destroyed, and not lost either.
  static server* const s = new server(d, o);
  static simt::stream* const stream = new simt::stream(d);
  static auto* const printed = new simt::buffer<std::uint32_t>(d, simt::space::pinned, 1);
  simt::launch(*stream, {1, 64}, print_some{s->ref(), printed->data(), ends});
  while (std::atomic_ref((*printed)[0]).load() == 0) std::this_thread::sleep_for(1ms);
  std::exit(7);
}

TEST_P(program_exit, flushes_what_was_printed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EXIT(print_and_exit(where(), true), ::testing::ExitedWithCode(7), "lane 63 line 9\n");
  EXPECT_EXIT(print_and_exit(where(), false), ::testing::ExitedWithCode(7), "lane 63 line 9\n");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 60s);
}

struct sleep_shortly {
  server_ref sys;
  GROSR_DEVICE void operator()() const {
    const timespec span{0, 1000};
    nanosleep(sys, &span);
  }
};

[[noreturn]] void fork_and_exit(device d) {
  options o;
  o.threads = 1;
  server s(d, o);
  simt::run(d, {1, 32}, sleep_shortly{s.ref()});  // starts more threads than the service's
  const pid_t child = ::fork();
  if (child == 0) {
    const server of_child(d, o);
    std::exit(3);  // has none of the parent's threads
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

TEST_P(program_exit, of_a_fork_leaves_the_server_alone) {
  if (where().is_cuda()) GTEST_SKIP() << "CUDA does not outlive a fork";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "nor do sanitizers";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fork_and_exit(where()), ::testing::ExitedWithCode(3), "");
}

[[noreturn]] void be_killed(device d) {
  options o;
  o.threads = 2;
  server s(d, o);
  simt::stream stream(d);
  auto printed = simt::buffer<std::uint32_t>(d, simt::space::pinned, 1);
  simt::launch(stream, {1, 64}, print_some{s.ref(), printed.data(), false});
  while (std::atomic_ref(printed[0]).load() == 0) std::this_thread::sleep_for(1ms);
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

TEST_P(program_exit, by_a_signal_does_not_hang) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(be_killed(where()), ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace grosr::sys
