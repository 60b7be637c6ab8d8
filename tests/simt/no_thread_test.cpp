// A launch for which no thread can be started says so, and nobody waits for it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "grosr/simt/error.hpp"
#include "grosr/simt/launch.hpp"
#include "support/no_threads.hpp"

namespace grosr::simt {
namespace {

[[noreturn]] void launch_without_threads() {
  ::alarm(20);
  const device d("host:0");
  bool refused = false;
  std::atomic<bool> ran{false};
  {
    stream s(d);
    {
      const testing::no_threads now;
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
