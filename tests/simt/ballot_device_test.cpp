// ballot, any and all see the predicates of the lanes in their mask, and of no others.
#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(ballot_of);

constexpr unsigned rounds = 64;

GROSR_DEVICE constexpr unsigned scramble(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

struct result {
  unsigned votes, any, all;
};

// In each round the warp falls into two groups, which vote apart from each other.
struct vote_in_groups {
  result* out;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    for (unsigned r = 0; r < rounds; ++r) {
      const unsigned split = scramble(r);
      const bool mine = (split >> lane & 1u) != 0;
      const unsigned mask = mine ? split : ~split;
      const bool yes = (scramble(r + 1000) >> lane & 1u) != 0;
      result v;
      if (mine) {
        v = {ballot(mask, yes), any(mask, yes), all(mask, yes)};
      } else {
        v = {ballot(mask, yes), any(mask, yes), all(mask, yes)};
      }
      out[r * 32 + lane] = v;
      sync_warp();
    }
  }
};

TEST_P(ballot_of, a_group_is_of_that_group) {
  auto out = make<result>(rounds * 32);
  run(1, 32, vote_in_groups{out.data()});
  const auto all = contents(out);
  for (unsigned r = 0; r < rounds; ++r) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned split = scramble(r);
      const unsigned mask = (split >> lane & 1u) != 0 ? split : ~split;
      const unsigned expected = scramble(r + 1000) & mask;
      const result& v = all[r * 32 + lane];
      ASSERT_EQ(v.votes, expected) << "round " << r << " lane " << lane;
      ASSERT_EQ(v.any, expected != 0);
      ASSERT_EQ(v.all, expected == mask);
    }
  }
}

struct vote_alone {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    const unsigned self = 1u << lane_id();
    out[lane_id()] = ballot(self, true) + (any(self, false) ? 1u : 0u);
  }
};

TEST_P(ballot_of, one_lane_is_its_own_bit) {
  auto out = make<unsigned>(32);
  run(1, 32, vote_alone{out.data()});
  const auto all = contents(out);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(all[lane], 1u << lane);
}

}  // namespace
}  // namespace grosr::simt
