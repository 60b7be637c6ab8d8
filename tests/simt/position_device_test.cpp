// Every lane of a launch knows its place, and each place is taken once.
#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(position);

struct seen {
  unsigned lane, warp, thread, block, threads, blocks, count;
};

struct look_around {
  seen* out;
  GROSR_DEVICE void operator()() const {
    seen& s = out[block_id() * block_size() + thread_id()];
    s.lane = lane_id();
    s.warp = warp_id();
    s.thread = thread_id();
    s.block = block_id();
    s.threads = block_size();
    s.blocks = grid_size();
    ++s.count;
  }
};

TEST_P(position, is_unique_and_complete) {
  constexpr unsigned blocks = 7, threads = 96;
  auto out = make<seen>(blocks * threads);
  run(blocks, threads, look_around{out.data()});
  const auto all = contents(out);
  for (unsigned i = 0; i < blocks * threads; ++i) {
    const seen& s = all[i];
    ASSERT_EQ(s.count, 1u) << i;
    ASSERT_EQ(s.block, i / threads);
    ASSERT_EQ(s.thread, i % threads);
    ASSERT_EQ(s.warp, i % threads / warp_size);
    ASSERT_EQ(s.lane, i % warp_size);
    ASSERT_EQ(s.threads, threads);
    ASSERT_EQ(s.blocks, blocks);
  }
}

struct ask_sm {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    out[block_id() * block_size() + thread_id()] = sm_id() + 1;
  }
};

TEST_P(position, sm_is_the_same_for_a_block_and_one_of_the_device) {
  auto out = make<unsigned>(16 * 64);
  run(16, 64, ask_sm{out.data()});
  const auto all = contents(out);
  const unsigned sms = where().properties().sms;
  for (unsigned i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], all[i / 64 * 64]);
    ASSERT_GE(all[i], 1u);
    ASSERT_LE(all[i], sms);
  }
}

struct count_bits {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    out[lane] =
        popcount(1u << lane) + 100 * lowest_bit(~0u << lane) + 10000 * rank_in(full_mask, lane);
  }
};

TEST_P(position, bits_of_masks_are_counted) {
  auto out = make<unsigned>(32);
  run(1, 32, count_bits{out.data()});
  const auto all = contents(out);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(all[lane], 1 + 100 * lane + 10000 * lane);
}

}  // namespace
}  // namespace grosr::simt
