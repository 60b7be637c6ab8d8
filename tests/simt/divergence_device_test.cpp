// Lanes that diverged: active_mask names a group that really meets, and groups do not disturb
// each other, however deep they are nested and however often they loop.
#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(divergence);

// All lanes of a group take its mask from active_mask, and check it by voting with it.
GROSR_DEVICE inline bool group_holds_together() {
  const unsigned mask = active_mask();
  if ((mask >> lane_id() & 1u) == 0) return false;
  if (ballot(mask, true) != mask) return false;
  return all(mask, shuffle(mask, mask, lowest_bit(mask)) == mask);
}

struct branch_apart {
  unsigned* wrong;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    bool good = true;
    if (lane % 3 == 0) {
      good = group_holds_together() && good;
      if (lane % 2 == 0) {
        good = group_holds_together() && good;
      } else {
        for (unsigned i = 0; i < lane; ++i) good = group_holds_together() && good;
      }
    } else if (lane % 3 == 1) {
      good = group_holds_together() && good;
    }
    good = group_holds_together() && good;
    if (!good) wrong[lane] = 1;
  }
};

TEST_P(divergence, groups_hold_together) {
  auto wrong = make<unsigned>(32);
  run(4, 64, branch_apart{wrong.data()});
  for (unsigned w : contents(wrong)) EXPECT_EQ(w, 0u);
}

// Lane i leaves the loop after i turns: the group shrinks, and who left waits at the end.
struct leave_one_by_one {
  unsigned* turns;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    unsigned met = 0;
    for (unsigned i = 0; i < lane; ++i) {
      const unsigned still_here = full_mask << (i + 1);  // lanes above i
      met += popcount(ballot(still_here, true));
    }
    turns[lane] = met;
    sync_warp();
  }
};

TEST_P(divergence, a_loop_of_unequal_trips) {
  auto turns = make<unsigned>(32);
  run(1, 32, leave_one_by_one{turns.data()});
  const auto all = contents(turns);
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned expected = 0;
    for (unsigned i = 0; i < lane; ++i) expected += 31 - i;
    EXPECT_EQ(all[lane], expected) << lane;
  }
}

// Even lanes shuffle while odd lanes vote and a few have left the kernel.
struct different_calls_at_once {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    if (lane >= 28) return;
    const unsigned even = 0x05555555u, odd = 0x0aaaaaaau;
    unsigned sum = 0;
    if (lane % 2 == 0) {
      for (unsigned i = 0; i < 20; ++i) sum += shuffle(even, lane, (lane + 2) % 28);
    } else {
      for (unsigned i = 0; i < 10; ++i) sum += popcount(ballot(odd, lane > 13));
    }
    out[lane] = sum;
  }
};

TEST_P(divergence, different_collectives_at_once) {
  auto out = make<unsigned>(32);
  run(1, 32, different_calls_at_once{out.data()});
  const auto all = contents(out);
  for (unsigned lane = 0; lane < 28; ++lane) {
    EXPECT_EQ(all[lane], lane % 2 == 0 ? 20 * ((lane + 2) % 28) : 10 * 7u) << lane;
  }
}

TEST(divergence_seeded, groups_hold_together_in_every_schedule) {
  testing::for_seeds(300, [] {
    buffer<unsigned> wrong(device(), space::device, 32);
    run(device(), {2, 64}, branch_apart{wrong.data()});
    run(device(), {1, 32}, different_calls_at_once{wrong.data()});
    run(device(), {1, 32}, leave_one_by_one{wrong.data()});
  });
}

}  // namespace
}  // namespace grosr::simt
