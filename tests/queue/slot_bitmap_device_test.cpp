// No slot has two holders at a time; all slots can be claimed; freed ones come again.
#include "grosr/queue/slot_bitmap.hpp"

#include <algorithm>
#include <vector>

#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(slots);

// Lanes claim, write their number into what they hold, look whether it stays, and free.
struct hold {
  slot_bitmap_ref slots;
  std::uint32_t* held;
  std::uint32_t* trouble;
  std::uint32_t turns;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const unsigned wanted = 1 + testing::scramble(self + turn * 977) % 5;
      slot_bitmap_ref::claimed c;
      simt::wait_until(
          [&] {
            c = slots.claim(self / 32 % slots.words(), wanted);
            return c.bits != 0;
          },
          simt::forever, nullptr, "a place");
      if (simt::popcount(c.bits) > wanted) note(0);
      for (unsigned i = 0; i < simt::popcount(c.bits); ++i)
        if (at(c.nth(i)).exchange(self + 1, simt::relaxed) != 0) note(1);
      simt::pause(0, "a while");
      for (unsigned i = 0; i < simt::popcount(c.bits); ++i)
        if (at(c.nth(i)).exchange(0, simt::relaxed) != self + 1) note(2);
      slots.free(c.word, c.bits);
    }
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> at(std::uint32_t slot) const {
    return simt::atomic_ref<std::uint32_t>(held[slot]);
  }
  GROSR_DEVICE void note(unsigned what) const {
    simt::atomic_ref<std::uint32_t>(trouble[what]).fetch_add(1, simt::relaxed);
  }
};

void expect_one_holder(device d, simt::shape grid, std::uint32_t words, std::uint32_t turns) {
  simt::buffer<std::uint32_t> bits(d, simt::space::device, words);
  simt::buffer<std::uint32_t> held(d, simt::space::device, words * 32);
  simt::buffer<std::uint32_t> trouble(d, simt::space::device, 3);
  simt::run(d, grid, hold{{bits.data(), words}, held.data(), trouble.data(), turns});
  std::vector<std::uint32_t> left(words), wrong(3);
  bits.copy_to(left);
  trouble.copy_to(wrong);
  EXPECT_EQ(left, std::vector<std::uint32_t>(words, 0));
  EXPECT_EQ(wrong, std::vector<std::uint32_t>(3, 0));
}

TEST_P(slots, have_one_holder_at_a_time) {
  const auto turns = static_cast<std::uint32_t>(testing::scaled(50, 5));
  expect_one_holder(where(), {4, 64}, 8, turns);
  expect_one_holder(where(), {4, 64}, 1, turns);  // fewer slots than lanes
}

TEST(slot_bitmap_schedules, have_one_holder_under_all_schedules) {
  testing::for_seeds(
      200,
      [] {
        expect_one_holder(device(), {2, 32}, 2, 4);
      },
      100);
}

struct fill {
  slot_bitmap_ref slots;
  std::uint32_t* got;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    for (std::uint32_t i = 0; i < 4; ++i) got[i] = slots.claim(1, 32).first();
    got[4] = slots.claim(1, 1).bits;
    slots.free(70);
    got[5] = slots.claim(1, 32).first();
  }
};

TEST_P(slots, are_all_found) {
  auto bits = make<std::uint32_t>(4);
  auto got = make<std::uint32_t>(6);
  run(1, 32, fill{{bits.data(), 4}, got.data()});
  std::vector<std::uint32_t> found = contents(got);
  std::sort(found.begin() + 1, found.begin() + 4);  // those behind its home are found in any order
  EXPECT_EQ(found, (std::vector<std::uint32_t>{32, 0, 64, 96, 0, 70}));
}

}  // namespace
}  // namespace grosr::queue
