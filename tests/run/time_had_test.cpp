// The time that threads had is that in which they could do something: a thread that waits for a
// processor has none.
#include "run/time_had.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "grosr/simt/relax.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;
using clock = run::time_had::clock;
using ns = std::chrono::nanoseconds;

/// A thread that does `work` until it is to end; bound to the processor on which it was made.
class busy_thread {
 public:
  template <class Work>
  explicit busy_thread(int processor, Work work) {
    thread_ = std::thread([this, processor, work] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processor, &one);
      bound_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
      number_ = ::gettid();
      while (!ended_) work();
    });
    while (number_ == 0) std::this_thread::sleep_for(1ms);
  }
  ~busy_thread() {
    ended_ = true;
    thread_.join();
  }
  long number() const { return number_; }
  bool bound() const { return bound_; }

 private:
  std::atomic<bool> ended_{false}, bound_{false};
  std::atomic<long> number_{0};
  std::thread thread_;
};

void spin() { simt::relax(); }

TEST(time_had, by_a_thread_that_sleeps_is_all) {
  std::mutex held;
  std::unique_lock lock(held);
  busy_thread sleeper(::sched_getcpu(), [&] { std::lock_guard waits(held); });
  run::time_had had;
  const auto begin = clock::now();
  const auto had_of_100ms = [&] {
    had.begin(begin);
    had.until(begin, {sleeper.number()});
    return had.until(begin + 100ms, {sleeper.number()});
  };
  while (had_of_100ms() != 100ms && clock::now() < begin + 60s)  // it does not sleep yet
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(had_of_100ms(), 100ms);
  had.begin(begin + 200ms);
  EXPECT_EQ(had.until(begin + 300ms, {sleeper.number()}), ns(0));  // not known before
  lock.unlock();
}

TEST(time_had, by_two_threads_of_one_processor_is_no_more_than_it_gave) {
  const int processor = ::sched_getcpu();
  busy_thread one(processor, spin), other(processor, spin);
  if (!one.bound() || !other.bound()) GTEST_SKIP() << "threads cannot be bound here";
  run::time_had of_one, of_other, of_both;
  const auto begin = clock::now();
  ns first{}, second{}, least{};
  for (auto now = begin; now < begin + 400ms; now = clock::now()) {
    first = of_one.until(now, {one.number()});
    second = of_other.until(now, {other.number()});
    least = of_both.until(now, {one.number(), other.number()});
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_LT(first + second, 600ms);  // 400 ms, and what Linux rounds
  EXPECT_LE(least, std::max(first, second));
  EXPECT_LT(least, 300ms);
}

TEST(time_had, by_a_thread_that_spins_goes_on) {
  busy_thread spinner(::sched_getcpu(), spin);
  run::time_had had;
  const auto begin = clock::now();
  had.begin(begin);
  auto now = begin;
  while (had.until(now, {spinner.number()}) < 50ms && now < begin + 60s) {
    std::this_thread::sleep_for(5ms);
    now = clock::now();
  }
  EXPECT_GE(had.until(now, {spinner.number()}), 50ms);
}

TEST(time_had, without_threads_is_all) {
  run::time_had had;
  const auto begin = clock::now();
  had.begin(begin);
  EXPECT_EQ(had.until(begin + 7ms, {}), ns(7ms));
  const long none = -1;
  EXPECT_EQ(had.until(begin + 7ms, {none}), ns(0));
  EXPECT_EQ(had.until(begin + 9ms, {none}), ns(2ms));
}

}  // namespace
}  // namespace grosr::testing
