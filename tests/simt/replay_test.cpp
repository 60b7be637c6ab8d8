// The same seed gives the same schedule, step for step; other seeds give others.
#include <atomic>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

// Written by all lanes, in the order in which they run.
class log_of_lanes {
 public:
  void add(std::uint32_t value) { entries_.at(used_.fetch_add(1)) = value; }
  std::vector<std::uint32_t> entries() const {
    return {entries_.begin(), entries_.begin() + used_};
  }

 private:
  std::vector<std::uint32_t> entries_ = std::vector<std::uint32_t>(1024);
  std::atomic<unsigned> used_{0};  // no schedule point, unlike atomic_ref
};

// A kernel with everything in it that a schedule decides; returns who did what in which order.
std::vector<std::uint32_t> trace_of(std::uint64_t seed) {
  log_of_lanes trace;
  std::uint32_t ticket = 0, door = 0;
  host::set_seed(seed);
  host::run({2, 2, 0}, [&] {
    const std::uint32_t self = block_id() * 1000 + thread_id();
    trace.add(self);
    atomic_ref(ticket).fetch_add(1, relaxed);
    trace.add(self + 10000);
    if (lane_id() % 3 == 0) trace.add(active_mask());
    trace.add(ballot(full_mask, lane_id() < 7));
    if (thread_id() == 5) atomic_ref(door).store(1, release);
    wait_until([&] { return atomic_ref(door).load(acquire) != 0; }, forever, nullptr, "the door");
    trace.add(self + 20000);
    sync_block();
    trace.add(self + 30000);
  });
  host::set_seed(std::nullopt);
  return trace.entries();
}

TEST(replay, is_exact) {
  for (std::uint64_t seed = 1; seed <= testing::scaled(50); ++seed) {
    ASSERT_EQ(trace_of(seed), trace_of(seed)) << "seed " << seed;
  }
}

TEST(replay, of_other_seeds_is_different) {
  const auto seeds = testing::scaled(200);
  std::set<std::vector<std::uint32_t>> traces;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) traces.insert(trace_of(seed));
  EXPECT_EQ(traces.size(), seeds);
}

TEST(replay, takes_the_seed_from_the_environment) {
  setenv("GROSR_SEED", "0x2a", 1);
  EXPECT_EQ(host::seed(), 42u);
  host::set_seed(7);
  EXPECT_EQ(host::seed(), 7u);
  host::set_seed(std::nullopt);
  for (const char* bad : {"x", "12z", "-1", "99999999999999999999"}) {
    setenv("GROSR_SEED", bad, 1);
    EXPECT_THROW(host::run({}, [] {}), std::exception) << bad;
  }
  unsetenv("GROSR_SEED");
  EXPECT_EQ(host::seed(), std::nullopt);
}

}  // namespace
}  // namespace grosr::simt
