// The host learns where a device's clock stands, closer than a packet takes to the device.
#include "run/device_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"

namespace grosr::testing {
namespace {

GROSR_DEVICE_SUITE(device_clock);

double span(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(static_cast<std::int64_t>(to - from));
}

constexpr double drift = 1e-3;  // of clocks that are far from good

TEST_P(device_clock, is_read_between_two_looks_at_the_host_s) {
  run::clock_reader reader(where());
  const std::uint64_t before = simt::clock_ns();
  const auto first = reader.read();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto second = reader.read();
  const std::uint64_t after = simt::clock_ns();
  ASSERT_TRUE(first && second);
  for (const auto* r : {&*first, &*second}) {
    EXPECT_GE(r->on_host, before);
    EXPECT_LE(r->on_host, after);
    if (!where().is_cuda()) {
      EXPECT_NEAR(span(r->on_host, r->on_device), 0, double(r->error));
    }
  }
  EXPECT_LT(first->on_device, second->on_device);
  const double on_host = span(first->on_host, second->on_host);
  EXPECT_NEAR(span(first->on_device, second->on_device), on_host,
              double(first->error + second->error) + 2000 + on_host * drift);
}

TEST_P(device_clock, follows_from_readings_around) {
  run::device_clock clock(where());
  run::clock_reader reader(where());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto between = reader.read();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  clock.read_again();
  const std::uint64_t asked = simt::clock_ns();
  ASSERT_TRUE(between);
  const auto then = clock.at(between->on_host), later = clock.at(asked);
  ASSERT_TRUE(then && later);
  EXPECT_NEAR(span(between->on_device, *then), 0, double(between->error) + 20'000);
  EXPECT_LT(*then, *later);
}

}  // namespace
}  // namespace grosr::testing
