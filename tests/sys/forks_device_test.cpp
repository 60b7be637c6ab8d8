// A forked child has none of the threads: it ends in time, whether it destroys what the parent made
// or leaves by exit(), and may make servers, streams and runtimes of its own. The parent's runtime
// takes nothing from it.
#include <sys/wait.h>

#include <cstdlib>
#include <memory>

#include "grosr/run/runtime.hpp"
#include "support/errors.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(forks);

struct count_up {
  std::uint32_t* counter;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t>(*counter).fetch_add(1, simt::relaxed);
  }
};
struct sleep_shortly {
  server_ref sys;
  GROSR_DEVICE void operator()() const {
    const timespec span{0, 1000};
    nanosleep(sys, &span);
  }
};
struct call_for_ever {
  server_ref sys;
  GROSR_DEVICE void operator()() const {
    while (nothing(sys) != -ESHUTDOWN) {
    }
  }
};

/// All that has threads, at work.
struct everything {
  explicit everything(device d)
      : counter(d, simt::space::device, 1), stream(d), work(d), sys(d, [] {
          options o;
          o.threads = 2;
          o.exit_patience = std::chrono::milliseconds(100);
          return o;
        }()) {
    work.submit(count_up{counter.data()});
    work.wait_all();
    work.park();  // so that streams take their turns on few processors
    simt::run(d, {1, 32}, sleep_shortly{sys.ref()});
    simt::launch(stream, {1, 32}, call_for_ever{sys.ref()});
  }
  simt::buffer<std::uint32_t> counter;
  simt::stream stream;
  runtime<count_up> work;
  server sys;  // goes first: it ends the kernel's calls
};

enum class way { destroys, exits, makes_its_own, submits };

[[noreturn]] void fork_and_end(device d, way w) {
  static std::unique_ptr<everything> all;  // destroyed by exit()
  all = std::make_unique<everything>(d);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    if (w == way::destroys) all.reset();
    if (w == way::makes_its_own) everything own(d);
    if (w == way::submits) {
      const error e = testing::error_of([&] { all->work.submit(count_up{all->counter.data()}); });
      if (e.code() != errc::misuse) std::_Exit(1);
    }
    if (w != way::exits) std::_Exit(3);
    std::exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  all.reset();  // the parent's is as it was
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

TEST_P(forks, end_in_time) {
  if (where().is_cuda()) GTEST_SKIP() << "CUDA does not outlive a fork";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "nor do sanitizers";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fork_and_end(where(), way::destroys), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(fork_and_end(where(), way::exits), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(fork_and_end(where(), way::makes_its_own), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(fork_and_end(where(), way::submits), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace grosr::sys
