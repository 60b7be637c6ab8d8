// A call is made once for its group, whichever lanes come together, and everybody who is to know
// the result knows it.
#include <vector>

#include "grosr/simt/wait.hpp"
#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(call_groups);

struct add_up {
  static constexpr std::uint16_t number = 7;
  std::atomic<std::uint64_t>* calls;
  long operator()(std::uint32_t a, std::uint64_t b, std::int32_t c) const {
    calls->fetch_add(1);
    return static_cast<long>(a + b) + c;
  }
};

class counted {
 public:
  explicit counted(device d, options o = {}) : server_(d, o) { server_.install(add_up{&calls_}); }
  server_ref ref() const { return server_.ref(); }
  std::uint64_t calls() {
    server_.drain();
    return calls_.load();
  }

 private:
  std::atomic<std::uint64_t> calls_{0};
  server server_;
};

struct by_lane {
  server_ref sys;
  std::int64_t* results;
  std::uint32_t turns;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t i = 0; i < turns; ++i) {
      if (testing::scramble(self * 31 + i) % 3 == 0) continue;  // diverged
      results[self] += call<add_up>(sys, self, std::uint64_t{i}, -1);
    }
  }
};

TEST_P(call_groups, of_lanes_call_each_for_itself) {
  counted s(where());
  auto results = make<std::int64_t>(128);
  const auto turns = static_cast<std::uint32_t>(testing::scaled(20, 3));
  run(2, 64, by_lane{s.ref(), results.data(), turns});
  const auto got = contents(results);
  std::uint64_t calls = 0;
  for (std::uint32_t self = 0; self < 128; ++self) {
    std::int64_t expected = 0;
    for (std::uint32_t i = 0; i < turns; ++i)
      if (testing::scramble(self * 31 + i) % 3 != 0) {
        expected += std::int64_t{self} + i - 1;
        ++calls;
      }
    EXPECT_EQ(got[self], expected) << self;
  }
  EXPECT_EQ(s.calls(), calls);
}

struct by_warp {
  server_ref sys;
  std::int64_t* results;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::thread_id(), lane = simt::lane_id();
    results[self] = call<add_up>(sys.warp(), self, std::uint64_t{1000}, 0);
    const std::uint32_t mask = lane % 4 == 1 ? 0x22222222u : ~0x22222222u;
    results[self] += 10000 * call<add_up>(sys.warp(mask), self, std::uint64_t{0}, 0);
  }
};

TEST_P(call_groups, of_warps_and_masks_call_once) {
  counted s(where());
  auto results = make<std::int64_t>(64);
  run(1, 64, by_warp{s.ref(), results.data()});
  const auto got = contents(results);
  for (std::uint32_t self = 0; self < 64; ++self) {
    const std::int64_t first = self / 32 * 32;
    EXPECT_EQ(got[self], first + 1000 + 10000 * (first + (self % 4 == 1 ? 1 : 0))) << self;
  }
  EXPECT_EQ(s.calls(), 6u);
}

template <ordering O>
struct by_block {
  server_ref sys;
  std::int64_t* results;
  std::uint32_t turns;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t i = 0; i < turns; ++i) {
      const long r = call<add_up>(sys.block(ordering_tag<O>{}), self, std::uint64_t{i}, 0);
      results[self] += r == -EINPROGRESS ? 0 : r;
    }
  }
};

TEST_P(call_groups, of_blocks_call_once) {
  const auto turns = static_cast<std::uint32_t>(testing::scaled(20, 3));
  const auto expect = [&](auto kernel, bool all_know) {
    counted s(where());
    auto results = make<std::int64_t>(192);
    kernel.sys = s.ref();
    kernel.results = results.data();
    kernel.turns = turns;
    run(2, 96, kernel);
    const auto got = contents(results);
    for (std::uint32_t self = 0; self < 192; ++self) {
      const std::int64_t first = self / 96 * 96;
      const bool knows = all_know || self % 96 < 32;
      EXPECT_EQ(got[self], knows ? first * turns + turns * (turns - 1) / 2 : 0) << self;
    }
    EXPECT_EQ(s.calls(), 2 * turns);
  };
  expect(by_block<ordering::strong>{server_ref(nullptr), nullptr, 0}, true);
  expect(by_block<ordering::consumer>{server_ref(nullptr), nullptr, 0}, true);
  expect(by_block<ordering::producer>{server_ref(nullptr), nullptr, 0}, false);
}

template <ordering O>
struct by_grid {
  server_ref sys;
  std::int64_t* results;
  grid_point* points;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t i = 0; i < 3; ++i) {
      const long r = call<add_up>(sys.grid(ordering_tag<O>{}, points + i), 1u, std::uint64_t{i}, 0);
      if (r != -EINPROGRESS) results[self] += r;
    }
  }
};

TEST_P(call_groups, of_grids_call_once) {
  for (bool consumes : {true, false}) {
    counted s(where());
    auto results = make<std::int64_t>(256);
    auto points = make<grid_point>(3);
    if (consumes)
      run(4, 64, by_grid<ordering::consumer>{s.ref(), results.data(), points.data()});
    else
      run(4, 64, by_grid<ordering::producer>{s.ref(), results.data(), points.data()});
    std::int64_t knowing = 0;
    for (std::int64_t r : contents(results)) {
      if (consumes) {
        EXPECT_EQ(r, 6);
      }
      knowing += r;
    }
    EXPECT_EQ(knowing, consumes ? 256 * 6 : 32 * 6);
    EXPECT_EQ(s.calls(), 3u);
  }
}

}  // namespace
}  // namespace grosr::sys
