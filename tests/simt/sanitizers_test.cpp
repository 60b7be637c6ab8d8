// The sanitizers see lanes: a race between two lanes is reported although one thread runs both, and
// what collectives, sync_block, atomics and launches order is not.
#include <gtest/gtest.h>

#include <cstdlib>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

struct cells {
  unsigned at[64];
};

// ---- what must not be reported
// -------------------------------------------------------------------------

TEST(sanitizers, accept_what_the_vocabulary_orders) {
  auto everything = [] {
    unsigned plain[2][32] = {}, before = 1, message = 0, sum = 0;
    std::uint32_t flag = 0;
    host::run({1, 2, 0}, [&] {
      const unsigned lane = lane_id(), next = (lane + 1) % 32;
      unsigned* mine = plain[warp_id()];
      EXPECT_EQ(before, 1u);  // written before the launch
      for (unsigned turn = 0; turn < 3; ++turn) {
        mine[lane] = turn + lane;
        sync_warp();
        EXPECT_EQ(mine[next], turn + next);
        ballot(full_mask, true);
        const unsigned pair = 3u << (lane & ~1u);  // half the warp's pairs at a time
        mine[lane] = lane;
        shuffle(pair, 1, lane & ~1u);
        EXPECT_EQ(mine[lane ^ 1u], lane ^ 1u);
        match_any(full_mask, 1);
      }
      cells& shared = block_shared<cells>();
      EXPECT_EQ(shared.at[thread_id()], 0u);
      shared.at[thread_id()] = thread_id();
      sync_block();
      EXPECT_EQ(shared.at[63 - thread_id()], 63 - thread_id());
      sync_block();
      shared.at[63 - thread_id()] = 5;
      if (thread_id() == 0) {
        message = 7;
        atomic_ref(flag).store(1, release);
      } else if (thread_id() == 40) {
        wait_until([&] { return atomic_ref(flag).load(acquire) != 0; }, forever, nullptr,
                   "the message");
        EXPECT_EQ(message, 7u);
        message = 8;
      }
      if (thread_id() == 63) sum = shared.at[0];
    });
    EXPECT_EQ(message, 8u);  // read after the launch
    EXPECT_EQ(sum, 5u);
    before = 2;
  };
  everything();
  testing::for_seeds(20, everything);
}

// A message behind a flag: fences before and after, or on one side only.
TEST(sanitizers, accept_fences) {
  for (const bool fence_before : {true, false}) {
    for (const bool fence_after : {true, false}) {
      unsigned data = 0;
      std::uint32_t flag = 0;
      host::run({2, 1, 0}, [&] {
        if (lane_id() != 0) return;
        if (block_id() == 0) {
          data = 1;
          if (fence_before) fence(release);
          atomic_ref(flag).fetch_add(1, fence_before ? relaxed : release);
        } else {
          const order o = fence_after ? relaxed : acquire;
          wait_until([&] { return atomic_ref(flag).load(o) != 0; }, forever, nullptr, "the flag");
          if (fence_after) fence(acquire);
          EXPECT_EQ(data, 1u);
        }
      });
    }
  }
}

// ---- what must be reported
// -----------------------------------------------------------------------------

class planted : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

#if defined(__SANITIZE_THREAD__)

[[maybe_unused]] constexpr int tsan_exit_code = 66;

#define EXPECT_RACE(kernel)           \
  EXPECT_EXIT(                        \
      {                               \
        host::run({2, 2, 1}, kernel); \
        std::exit(0);                 \
      },                              \
      ::testing::ExitedWithCode(tsan_exit_code), "data race")

TEST_F(planted, race_between_lanes_of_a_warp) {
  unsigned cell = 0;
  EXPECT_RACE([&] {
    if (lane_id() < 2 && thread_id() < 32 && block_id() == 0) cell += lane_id();
  });
}

TEST_F(planted, race_between_lanes_that_met_before_but_not_since) {
  unsigned cell = 0;
  EXPECT_RACE([&] {
    sync_warp();
    if (thread_id() == 1 && block_id() == 0) cell = 1;
    if (lane_id() < 16) {
      sync_warp(0xffff);
    } else {
      sync_warp(0xffff0000);
    }
    if (thread_id() == 20 && block_id() == 0) cell = 2;
  });
}

TEST_F(planted, race_between_warps_in_block_shared) {
  EXPECT_RACE([] {
    sync_warp();
    block_shared<cells>().at[lane_id()] = warp_id();
    sync_warp();
  });
}

TEST_F(planted, race_between_blocks_of_one_worker) {
  unsigned cell = 0;
  EXPECT_RACE([&] {
    sync_block();
    if (thread_id() == 0) cell = block_id();
  });
}

TEST_F(planted, race_behind_a_relaxed_flag) {
  unsigned data = 0;
  std::uint32_t flag = 0;
  EXPECT_RACE([&] {
    if (lane_id() != 0 || warp_id() != 0) return;
    if (block_id() == 0) {
      data = 1;
      atomic_ref(flag).store(1, relaxed);
    } else {
      wait_until([&] { return atomic_ref(flag).load(relaxed) != 0; }, forever, nullptr, "the flag");
      data = 2;
    }
  });
}

// Fences order nothing by themselves: the reader's must come after it read the flag.
TEST_F(planted, race_behind_a_fence_that_comes_too_early) {
  unsigned data = 0;
  std::uint32_t flag = 0;
  EXPECT_RACE([&] {
    if (lane_id() != 0 || warp_id() != 0) return;
    if (block_id() == 0) {
      data = 1;
      fence(acq_rel);
      atomic_ref(flag).store(1, relaxed);
    } else {
      fence(acq_rel);
      wait_until([&] { return atomic_ref(flag).load(relaxed) != 0; }, forever, nullptr, "the flag");
      data = 2;
    }
  });
}

#elif defined(__SANITIZE_ADDRESS__)

TEST_F(planted, overrun_on_a_lanes_stack) {
  EXPECT_DEATH(host::run({1, 1, 1},
                         [] {
                           unsigned cells[4] = {};
                           volatile unsigned* cell = cells;
                           sync_warp();
                           cell[lane_id()] = 1;
                         }),
               "stack-buffer-overflow|insufficient space");
}

TEST_F(planted, overrun_in_block_shared) {
  EXPECT_DEATH(host::run({1, 1, 1},
                         [] {
                           volatile unsigned* cell = block_shared<cells>().at;
                           cell[64 + lane_id() / 31] = 1;
                         }),
               "use-after-poison");
}

TEST_F(planted, use_after_free_in_a_lane) {
  EXPECT_DEATH(host::run({1, 1, 1},
                         [] {
                           auto* cell = new unsigned(1);
                           sync_warp();
                           delete cell;
                           sync_warp();
                           *static_cast<volatile unsigned*>(cell) = 2;
                         }),
               "heap-use-after-free");
}

#else

TEST_F(planted, bugs_are_reported) { GTEST_SKIP() << "built without sanitizers"; }

#endif

TEST_F(planted, overflow_of_a_lanes_stack_faults) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no report for it";
#endif
  struct deep {
    static unsigned go(unsigned n) {
      volatile unsigned char frame[512] = {};
      frame[n % 512] = 1;
      return n == 0 ? frame[0] : go(n - 1) + frame[1];
    }
  };
  EXPECT_DEATH(host::run({1, 1, 1}, [] { EXPECT_EQ(deep::go(1'000'000), 0u); }), "");
}

}  // namespace
}  // namespace grosr::simt
