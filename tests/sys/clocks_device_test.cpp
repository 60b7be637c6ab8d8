// What the host tells kernels of itself: the time, random bytes, what it uses; and sleep, which is
// as long as was asked and keeps no thread.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "support/scale.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

using namespace std::chrono_literals;

GROSR_DEVICE_SUITE(clocks);

struct tell {
  server_ref sys;
  timespec* times;
  rusage* used;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 9) return;
    timespec own{};
    r[0] = clock_gettime(sys, CLOCK_REALTIME, times);
    r[1] = clock_gettime(sys, CLOCK_MONOTONIC, &own);
    times[1] = own;
    r[2] = getrusage(sys, RUSAGE_SELF, used);
    r[3] = clock_gettime(sys, 12345, &own);
    r[4] = clock_gettime(sys, CLOCK_REALTIME, nullptr);
    r[5] = getrusage(sys, 77, used);
  }
};

TEST_P(clocks, tell_the_time_and_what_is_used) {
  server s(where());
  auto times = make<timespec>(2);
  auto used = make<rusage>(1);
  auto r = make<std::int64_t>(6);
  const auto before = std::chrono::steady_clock::now().time_since_epoch() / 1ns;
  run(1, 32, tell{s.ref(), times.data(), used.data(), r.data()});
  const auto after = std::chrono::steady_clock::now().time_since_epoch() / 1ns;
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0, 0, -EINVAL, -EFAULT, -EINVAL}));
  const auto told = contents(times);
  EXPECT_NEAR(static_cast<double>(told[0].tv_sec), static_cast<double>(::time(nullptr)), 60);
  const std::int64_t monotonic = told[1].tv_sec * 1'000'000'000 + told[1].tv_nsec;
  EXPECT_GE(monotonic, before);
  EXPECT_LE(monotonic, after);
  EXPECT_GT(contents(used)[0].ru_maxrss, 0);
}

template <bool Warps>
struct draw {
  server_ref sys;
  unsigned char* to;
  std::uint64_t bytes;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::thread_id() / (Warps ? 32 : 1);
    if constexpr (Warps) {
      const long got = getrandom(sys.warp(), to + self * bytes, bytes);
      if (simt::lane_id() == 0) r[self] = got;
    } else {
      r[self] = getrandom(sys, to + self * bytes, bytes);
    }
  }
};

TEST_P(clocks, go_with_random_bytes) {
  server s(where());
  const auto expect = [&](auto kernel, std::size_t count, std::size_t bytes) {
    auto to = make<unsigned char>(count * bytes);
    auto r = make<std::int64_t>(count);
    kernel.to = to.data();
    kernel.bytes = bytes;
    kernel.r = r.data();
    run(1, 64, kernel);
    EXPECT_EQ(contents(r), std::vector<std::int64_t>(count, static_cast<std::int64_t>(bytes)));
    const auto all = contents(to);
    std::vector<std::array<unsigned char, 16>> parts(all.size() / 16);
    for (std::size_t i = 0; i < all.size(); ++i) parts[i / 16][i % 16] = all[i];
    std::sort(parts.begin(), parts.end());
    EXPECT_TRUE(std::adjacent_find(parts.begin(), parts.end()) == parts.end());
  };
  expect(draw<false>{s.ref(), nullptr, 0, nullptr}, 64, 48);
  expect(draw<true>{s.ref(), nullptr, 0, nullptr}, 2, 160'000);
}

// Lanes sleep for different times, all at once.
struct sleep_all {
  server_ref sys;
  std::int64_t* r;  // of nanosleep, and how long it took on the host
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    const timespec span{0, static_cast<long>(self % 50) * 1'000'000};
    timespec before{}, after{};
    clock_gettime(sys, CLOCK_MONOTONIC, &before);
    r[2 * self] = nanosleep(sys, &span);
    clock_gettime(sys, CLOCK_MONOTONIC, &after);
    r[2 * self + 1] =
        (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
  }
};

TEST_P(clocks, let_many_sleep_on_no_thread) {
  options o;
  o.threads = 1;
  o.blocking_threads = 1;
  server s(where(), o);
  auto r = make<std::int64_t>(512);
  const auto began = std::chrono::steady_clock::now();
  run(4, 64, sleep_all{s.ref(), r.data()});
  const auto took = std::chrono::steady_clock::now() - began;
  const auto got = contents(r);
  for (std::int64_t i = 0; i < 256; ++i) {
    EXPECT_EQ(got[static_cast<std::size_t>(2 * i)], 0);
    EXPECT_GE(got[static_cast<std::size_t>(2 * i + 1)], i % 50 * 1'000'000) << i;
  }
  EXPECT_LT(took, 3s * testing::slowdown);  // one after the other: 6 s
}

struct sleep_oddly {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    timespec span{0, 1'000'000'000};
    r[0] = nanosleep(sys, &span);
    span = {-1, 0};
    r[1] = nanosleep(sys, &span);
    r[2] = nanosleep(sys, nullptr);
    span = {1'000'000'000'000, 0};
    r[3] = nanosleep(sys, &span);  // until the server stops
  }
};

TEST_P(clocks, refuse_what_is_no_time_and_end_with_the_server) {
  server s(where());
  auto r = make<std::int64_t>(4);
  std::thread stops([&] {
    const auto refused = [&] {
      std::uint64_t all = 0;
      for (const call_statistics& c : s.statistics().calls) all += c.errors;
      return all;
    };
    for (const auto began = std::chrono::steady_clock::now();
         refused() < 2 && std::chrono::steady_clock::now() - began < 60s;)
      std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms);
    s.stop();
  });
  run(1, 32, sleep_oddly{s.ref(), r.data()});
  stops.join();
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{-EINVAL, -EINVAL, -EFAULT, -ESHUTDOWN}));
}

}  // namespace
}  // namespace grosr::sys
