// An exception that leaves a lane ends the launch: it is rethrown, and all other lanes are unwound.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "grosr/simt/error.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/wait.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

struct counted {
  int& alive;
  explicit counted(int& a) : alive(a) { ++alive; }
  ~counted() { --alive; }
  counted(const counted&) = delete;
};

struct syncs_at_end {
  ~syncs_at_end() { sync_warp(); }  // does nothing while the machine unwinds the lane
};

void expect_clean_failure(host::launch_shape shape) {
  std::vector<int> alive(shape.blocks * shape.warps * warp_size);
  try {
    host::run(shape, [&] {
      const std::vector<std::string> on_the_heap(10,
                                                 "a string that is too long for the string itself");
      const counted c(alive[block_id() * block_size() + thread_id()]);
      if (thread_id() == 17 && block_id() == 1) throw std::runtime_error("lane 17 has had enough");
      const syncs_at_end s;
      if (thread_id() % 3 == 0) sync_block();
      if (thread_id() % 3 == 1) sync_warp(full_mask);
      for (unsigned turn = 0;; ++turn) pause(turn, "the end of the world");
    });
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "lane 17 has had enough");
  }
  for (const int a : alive) EXPECT_EQ(a, 0);
}

TEST(exceptions, unwind_all_lanes) {
  for (int again = 0; again < 3; ++again) expect_clean_failure({4, 2, 2});
}

TEST(exceptions, unwind_all_lanes_in_every_schedule) {
  testing::for_seeds(50, [] { expect_clean_failure({2, 1, 0}); });
}

TEST(exceptions, leave_the_machine_usable) {
  expect_clean_failure({2, 2, 2});
  unsigned sum = 0;
  host::run({1, 1, 0}, [&] {
    const unsigned votes = ballot(full_mask, true);
    if (lane_id() == 0) sum = popcount(votes);
  });
  EXPECT_EQ(sum, 32u);
}

// Lanes switch inside handlers and while unwinding: each keeps its own exception.
TEST(exceptions, of_lanes_do_not_mix) {
  std::vector<int> caught(32, -1);
  host::run({1, 1, 0}, [&] {
    const int self = static_cast<int>(lane_id());
    try {
      try {
        throw self;
      } catch (int first) {
        sync_warp();
        EXPECT_EQ(first, self);
        throw;
      }
    } catch (int second) {
      sync_warp();
      caught[static_cast<std::size_t>(self)] = second;
    }
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
  for (int i = 0; i < 32; ++i) EXPECT_EQ(caught[static_cast<std::size_t>(i)], i);
}

struct fail_once {
  void operator()() const {
    if (lane_id() == 3) throw error(errc::timed_out, "out of patience");
    sync_warp();
  }
};
struct run_on {
  int* ran;
  void operator()() const { atomic_ref(*ran).fetch_add(1, relaxed); }
};

TEST(exceptions, stay_in_their_stream) {
  int ran = 0;
  stream s{device()};
  launch(s, {1, 32}, fail_once{});
  EXPECT_THROW(s.wait(), error);
  EXPECT_THROW(s.wait(), error);
  EXPECT_THROW(s.done(), error);
  EXPECT_THROW(launch(s, {1, 32}, run_on{&ran}), error);
  EXPECT_EQ(ran, 0);
  run(device(), {1, 32}, run_on{&ran});
  EXPECT_EQ(ran, 32);
}

}  // namespace
}  // namespace grosr::simt
