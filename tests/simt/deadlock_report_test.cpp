// When lanes can never go on, the launch ends in an error that says which lanes wait where, for
// whom.
#include <gtest/gtest.h>

#include <string>

#include "grosr/simt/error.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

template <class Kernel>
std::string report(host::launch_shape shape, Kernel&& kernel) {
  try {
    host::run(shape, kernel);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::deadlock) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no deadlock";
  return "";
}

// "deadlock_report_test.cpp:LINE"
std::string here(unsigned line) { return "deadlock_report_test.cpp:" + std::to_string(line); }

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(deadlock_report, names_a_missing_lane) {
  constexpr unsigned line = __LINE__ + 3;
  const std::string text = report({1, 2, 0}, [&] {
    if (warp_id() == 1 && lane_id() != 8) {
      ballot(full_mask, true);
    } else if (warp_id() == 1) {
      sync_warp(1u << 8);
      sync_block();
    }
  });
  EXPECT_SAYS(text, "block 0 warp 1 lanes 0-7,9-31: ballot(mask 0xffffffff) at ");
  EXPECT_SAYS(text, here(line) + ", waits for lane 8\n");
  EXPECT_SAYS(text, "block 0 warp 1 lane 8: sync_block() at ");
  EXPECT_SAYS(text, "waits for lanes 0-7,9-31 of warp 1");
  EXPECT_EQ(text.find("warp 0 lane"), std::string::npos) << text;
}

TEST(deadlock_report, names_a_lane_that_ended) {
  const std::string text = report({3, 1, 0}, [] {
    if (block_id() == 2 && lane_id() < 4) return;
    shuffle(full_mask, 1, 0);
  });
  EXPECT_SAYS(text, "block 2 warp 0");
  EXPECT_SAYS(text, "shuffle(mask 0xffffffff)");
  EXPECT_SAYS(text, "ended)");
}

TEST(deadlock_report, tells_masks_apart_that_overlap) {
  const std::string text = report({1, 1, 0}, [] {
    if (lane_id() == 0) {
      sync_warp(0x3);
    } else if (lane_id() == 1) {
      sync_warp(0x6);
    } else if (lane_id() == 2) {
      sync_warp(0x5);
    }
  });
  EXPECT_SAYS(text, "lane 0: sync_warp(mask 0x00000003)");
  EXPECT_SAYS(text, "waits for lane 1");
  EXPECT_SAYS(text, "lane 1: sync_warp(mask 0x00000006)");
  EXPECT_SAYS(text, "lane 2: sync_warp(mask 0x00000005)");
}

TEST(deadlock_report, comes_although_other_blocks_still_poll) {
  std::uint32_t never = 0;
  const std::string text = report({4, 1, 2}, [&] {
    if (block_id() == 3) {
      if (lane_id() == 0) sync_block();
      sync_warp();
    }
    wait_until([&] { return atomic_ref(never).load(acquire) != 0; }, forever, nullptr, "block 3");
  });
  EXPECT_SAYS(text, "block 3 warp 0 lane 0: sync_block()");
  EXPECT_SAYS(text, "block 3 warp 0 lanes 1-31: sync_warp(mask 0xffffffff)");
  EXPECT_SAYS(text, "lanes 0-31: polls for \"block 3\" at ");
}

TEST(deadlock_report, is_found_in_every_schedule_and_names_the_seed) {
  testing::for_seeds(100, [] {
    const std::string text = report({2, 2, 0}, [] {
      if (block_id() == 1 && thread_id() == 40) return sync_block();
      sync_warp();
      sync_block();
    });
    EXPECT_SAYS(text, "block 1 warp 1");
    EXPECT_SAYS(text, "GROSR_SEED=" + std::to_string(*host::seed()) + " replays this");
  });
}

TEST(deadlock_report, stays_short) {
  const std::string text = report({80, 1, 1}, [] {
    if (lane_id() == 0) return sync_block();
    sync_warp();
  });
  EXPECT_LT(text.size(), 30'000u);
}

// ---- lanes that poll: only with a limit, because a host thread might feed them
// -------------------------

struct poll_limit : ::testing::TestWithParam<unsigned> {
  void SetUp() override { host::set_poll_limit(2000); }
  void TearDown() override { host::set_poll_limit(std::nullopt); }
};
INSTANTIATE_TEST_SUITE_P(workers, poll_limit, ::testing::Values(1, 3));

TEST_P(poll_limit, reports_what_lanes_poll_for) {
  std::uint32_t never = 0;
  const std::string text = report({3, 1, GetParam()}, [&] {
    if (lane_id() == 0) {
      wait_until([&] { return atomic_ref(never).load(acquire) != 0; }, forever, nullptr, "a slot");
    }
    sync_warp();
  });
  EXPECT_SAYS(text, "nothing got further in 2000 rounds");
  EXPECT_SAYS(text, "block 1 warp 0 lane 0: polls for \"a slot\" at ");
  EXPECT_SAYS(text, "block 1 warp 0 lanes 1-31: sync_warp");
}

TEST_P(poll_limit, counts_collectives_in_a_polling_loop_as_no_progress) {
  std::uint32_t never = 0;
  const std::string text = report({3, 1, GetParam()}, [&] {
    for (unsigned turn = 0;; ++turn) {
      const bool found = lane_id() == 0 && atomic_ref(never).load(acquire) != 0;
      if (any(full_mask, found)) return;
      pause(turn, "work");
    }
  });
  EXPECT_SAYS(text, "lanes 0-31: polls for \"work\" at ");
}

TEST_P(poll_limit, leaves_slow_progress_alone) {
  std::uint32_t turn = 0;
  host::run({3, 1, GetParam()}, [&] {
    if (lane_id() != 0) return;
    for (std::uint32_t mine = block_id(); mine < 300; mine += grid_size()) {
      wait_until([&] { return atomic_ref(turn).load(acquire) == mine; }, forever, nullptr,
                 "my turn");
      atomic_ref(turn).store(mine + 1, release);
    }
  });
  EXPECT_EQ(turn, 300u);
}

TEST_P(poll_limit, leaves_long_work_alone) {
  std::uint32_t sum = 0, done = 0;
  for (int seeded = 0; seeded < 2; ++seeded) {
    if (seeded != 0) host::set_seed(3);
    sum = done = 0;
    host::run({2, 1, GetParam()}, [&] {
      if (lane_id() != 0) return;
      if (block_id() == 0) {
        for (unsigned i = 0; i < 100'000; ++i) atomic_ref(sum).fetch_add(1, relaxed);
        atomic_ref(done).store(1, release);
      } else {
        wait_until([&] { return atomic_ref(done).load(acquire) != 0; }, forever, nullptr,
                   "the work");
      }
    });
    EXPECT_EQ(sum, 100'000u);
  }
  host::set_seed(std::nullopt);
}

}  // namespace
}  // namespace grosr::simt
