// A launch for which no thread can be started says so, and nobody waits for it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "grosr/simt/error.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::simt {
namespace {

/// While it lives no thread can be started: none gets a stack so large.
struct no_threads {
  no_threads() {
    pthread_getattr_default_np(&before);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~no_threads() { pthread_setattr_default_np(&before); }
  pthread_attr_t before;
};

[[noreturn]] void launch_without_threads() {
  ::alarm(20);
  const device d("host:0");
  bool refused = false;
  std::atomic<bool> ran{false};
  {
    stream s(d);
    {
      const no_threads now;
      try {
        s.launch_host({1, 1}, [] {});
      } catch (const error& e) {
        refused = e.code() == errc::out_of_memory;
      }
    }
    wait_for_kernels(d);
    if (!s.done()) std::_Exit(2);
    s.launch_host({1, 1}, [&ran] { ran = true; });
    s.wait();
  }
  std::_Exit(refused && ran ? 0 : 1);
}

TEST(a_launch, without_a_thread_is_refused_and_not_waited_for) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(launch_without_threads(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace grosr::simt
