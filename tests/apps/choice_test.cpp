// cryptfs's choice between a device and the CPU: it leaves a device that becomes slow within a few
// requests, probes it without a request that waits for that, and comes back when it is free. Time
// is the test's own.
#include "cryptfs/choice.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace grosr::cryptfs {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t small = 4096, large = 1 << 20;
constexpr double device_small_us = 15, device_large_us = 95, cpu_small_us = 2, cpu_large_us = 440;

const estimate free_device = estimate::through(small, device_small_us, large, device_large_us);
const estimate cpu = estimate::through(small, cpu_small_us, large, cpu_large_us);

/// Requests one behind the other, a device that is `slow` times as slow as when it was measured,
/// and a prober that takes its time beside them.
class held {
 public:
  explicit held(const estimate& measured = free_device) : chosen(measured, cpu) {}

  /// Whether the device did it.
  bool request(std::size_t bytes) {
    finish_probe();
    if (const auto given = chosen.give(bytes, now)) {
      now += in_us(slow * free_device.of(bytes));
      chosen.done(*given, now);
      return true;
    }
    if (chosen.probe_is_due(bytes, now)) {
      ++probes;
      probe_ends = now + in_us(slow * free_device.of(large));
      probing = true;
    }
    now += in_us(cpu.of(bytes));
    return false;
  }

  /// How many of those of a time the device did.
  int requests_for(milliseconds time, std::size_t bytes = large) {
    int by_device = 0;
    for (const auto end = now + time; now < end;) by_device += request(bytes);
    return by_device;
  }

  choice chosen;
  choice::time now{};
  double slow = 1;
  int probes = 0;
  bool lucky = false;  // probes

 private:
  static microseconds in_us(double us) { return microseconds(static_cast<long>(us)); }
  void finish_probe() {
    if (!probing || now < probe_ends) return;
    probing = false;
    const double factor = lucky ? 1 : slow;
    const bool good = factor * device_large_us < cpu_large_us;
    chosen.probed(good ? std::optional(estimate{factor * free_device.fixed_us,
                                                factor * free_device.us_per_byte})
                       : std::nullopt,
                  now);
  }

  bool probing = false;
  choice::time probe_ends{};
};

TEST(cryptfs_choice, goes_by_size_and_by_what_waits) {
  held h;
  EXPECT_FALSE(h.request(small));
  EXPECT_TRUE(h.request(large));
  std::vector<choice::ticket> waiting;
  while (const auto given = h.chosen.give(large, h.now)) waiting.push_back(*given);
  EXPECT_EQ(waiting.size(), 5u);  // a sixth would take longer than the CPU does
  for (const choice::ticket t : waiting)
    h.chosen.done(t, h.now + microseconds(static_cast<long>(t->expected_us)));
  EXPECT_TRUE(h.request(large));
}

TEST(cryptfs_choice, small_requests_are_no_reason_for_a_probe) {
  held h;
  h.slow = 200;
  h.requests_for(milliseconds(100));
  const int before = h.probes;
  h.requests_for(milliseconds(2000), small);
  EXPECT_LE(h.probes, before + 1);
}

TEST(cryptfs_choice, leaves_a_slow_device_within_a_few_requests) {
  for (const double slow : {10., 20., 200.}) {
    held h;
    EXPECT_GT(h.requests_for(milliseconds(50)), 100);
    h.slow = slow;
    int by_device = 0;
    for (int i = 0; i < 20; ++i) by_device += h.request(large);
    EXPECT_LE(by_device, 3) << slow;
    EXPECT_EQ(h.requests_for(milliseconds(10'000)), 0) << slow;
    EXPECT_GE(h.probes, 10) << slow;
    EXPECT_LE(h.probes, 25) << slow;
  }
}

TEST(cryptfs_choice, gives_nothing_to_a_device_that_is_overdue) {
  held h;
  const auto first = h.chosen.give(large, h.now);
  ASSERT_TRUE(first);
  EXPECT_TRUE(h.chosen.give(large, h.now + microseconds(90)));
  EXPECT_FALSE(h.chosen.give(large, h.now + milliseconds(2)));
  EXPECT_FALSE(h.chosen.probe_is_due(large, h.now + milliseconds(2000)));  // it has requests
}

TEST(cryptfs_choice, comes_back_when_the_device_is_free) {
  held h;
  h.slow = 200;
  for (const milliseconds busy : {milliseconds(30), milliseconds(5000)}) {
    h.slow = 200;
    h.requests_for(busy);
    EXPECT_FALSE(h.request(large));
    h.slow = 1;
    const auto freed = h.now;
    while (!h.request(large) && h.now - freed < milliseconds(5000)) {
    }
    EXPECT_LE(h.now - freed, busy + choice::first_pause + choice::first_pause);
    EXPECT_LE(h.now - freed, choice::longest_pause + milliseconds(20));
    EXPECT_GT(h.requests_for(milliseconds(50)), 100);
  }
}

TEST(cryptfs_choice, a_single_slow_request_is_an_accident) {
  held h;
  h.requests_for(milliseconds(10));
  h.slow = 500;
  EXPECT_TRUE(h.request(large));
  h.slow = 1;
  int by_device = 0;
  for (int i = 0; i < 100; ++i) by_device += h.request(large);
  EXPECT_EQ(by_device, 100);
  EXPECT_NEAR(h.chosen.slowdown(), 1, 0.01);
}

TEST(cryptfs_choice, a_lucky_probe_costs_a_few_requests_a_pause) {
  held h;
  h.slow = 200;
  h.lucky = true;
  h.requests_for(milliseconds(2000));
  const int before = h.probes;
  EXPECT_LE(h.requests_for(milliseconds(6400)), 3 * 10);
  EXPECT_LE(h.probes - before, 10);
}

TEST(cryptfs_choice, uses_a_device_that_was_slow_when_it_was_first_measured) {
  held h(estimate::through(small, 2000, large, 20'000));
  h.slow = 200;
  EXPECT_EQ(h.requests_for(milliseconds(1000)), 0);
  h.slow = 1;
  h.requests_for(milliseconds(1500));
  EXPECT_GT(h.requests_for(milliseconds(50)), 100);
}

TEST(cryptfs_choice, follows_a_device_that_is_somewhat_slower) {
  held h;
  h.slow = 3;  // still sooner done than the CPU
  EXPECT_GT(h.requests_for(milliseconds(1000)), 1000 * 1000 / 300 - 50);
  EXPECT_EQ(h.probes, 0);
  EXPECT_NEAR(h.chosen.slowdown(), 3, 0.1);
}

}  // namespace
}  // namespace grosr::cryptfs
