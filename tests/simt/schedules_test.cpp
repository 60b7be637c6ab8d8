// Seeded schedules find real concurrency bugs. Each test plants one and counts the seeds that show
// it.
#include <gtest/gtest.h>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::simt {
namespace {

constexpr std::uint64_t seeds = 1000;

// How many of the seeds make `shows_bug()` true.
template <class Bug>
unsigned count(Bug&& shows_bug) {
  unsigned shown = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    host::set_seed(seed);
    shown += shows_bug() ? 1 : 0;
  }
  host::set_seed(std::nullopt);
  ::testing::Test::RecordProperty("schedules_that_show_it", static_cast<int>(shown));
  return shown;
}

TEST(schedules, find_a_lost_update) {
  const unsigned shown = count([] {
    std::uint32_t sum = 0;
    host::run({2, 1, 0}, [&] {
      if (lane_id() != 0) return;
      const std::uint32_t seen = atomic_ref(sum).load(relaxed);
      atomic_ref(sum).store(seen + 1, relaxed);
    });
    return sum != 2;
  });
  EXPECT_GE(shown, seeds / 20);
  EXPECT_LE(shown, seeds * 19 / 20);  // and do not always show it
}

// Needs one lane to stop between two steps while another takes 20.
TEST(schedules, find_a_reader_that_is_overtaken) {
  const unsigned shown = count([] {
    std::uint32_t lap = 0, value = 0;
    bool torn = false;
    host::run({1, 1, 0}, [&] {
      if (lane_id() == 0) {
        for (std::uint32_t i = 1; i <= 20; ++i) {
          atomic_ref(value).store(i, relaxed);
          atomic_ref(lap).store(i, release);
        }
      } else if (lane_id() == 1) {
        const std::uint32_t first = atomic_ref(lap).load(acquire);
        const std::uint32_t seen = atomic_ref(value).load(relaxed);
        torn = seen > first + 10;
      }
    });
    return torn;
  });
  EXPECT_GE(shown, 3u);
}

// A stack popped with compare-exchange and no tag: A, B popped and A pushed back in between.
TEST(schedules, find_an_aba) {
  const unsigned shown = count([] {
    std::uint32_t top = 0, next[4] = {1, 2, 3, 3}, popped[4] = {};
    auto pop = [&]() -> std::uint32_t {
      std::uint32_t seen = atomic_ref(top).load(acquire);
      while (seen != 3) {
        const std::uint32_t after = atomic_ref(next[seen]).load(relaxed);
        if (atomic_ref(top).compare_exchange(seen, after, acq_rel)) return seen;
      }
      return 3;
    };
    auto push = [&](std::uint32_t node) {
      std::uint32_t seen = atomic_ref(top).load(relaxed);
      do atomic_ref(next[node]).store(seen, relaxed);
      while (!atomic_ref(top).compare_exchange(seen, node, acq_rel));
    };
    host::run({1, 1, 0}, [&] {
      if (lane_id() == 0) {
        ++popped[pop()];
      } else if (lane_id() == 1) {
        const std::uint32_t a = pop();
        ++popped[pop()];
        if (a != 3) push(a);
      }
    });
    for (std::uint32_t node = pop(); node != 3; node = pop()) ++popped[node];
    return popped[0] > 1 || popped[1] > 1 || popped[2] > 1;
  });
  EXPECT_GE(shown, 3u);
}

// A deadlock that needs both locks to be half taken.
TEST(schedules, find_a_lock_order_inversion) {
  host::set_poll_limit(1000);
  const unsigned shown = count([] {
    std::uint32_t locks[2] = {};
    auto lock = [&](std::uint32_t& l) {
      wait_until(
          [&] {
            std::uint32_t free = 0;
            return atomic_ref(l).compare_exchange(free, 1, acquire);
          },
          forever, nullptr, "a lock");
    };
    try {
      host::run({2, 1, 0}, [&] {
        if (lane_id() != 0) return;
        std::uint32_t& first = locks[block_id()];
        std::uint32_t& second = locks[1 - block_id()];
        lock(first);
        lock(second);
        atomic_ref(second).store(0, release);
        atomic_ref(first).store(0, release);
      });
    } catch (const std::exception&) {
      return true;
    }
    return false;
  });
  host::set_poll_limit(std::nullopt);
  EXPECT_GE(shown, seeds / 50);
}

// Every part of a group that diverged together is a legal active_mask; code must not count on all.
TEST(schedules, split_active_masks) {
  unsigned whole = 0;
  const unsigned split = count([&] {
    std::uint32_t mask = 0;
    host::run({1, 1, 0}, [&] {
      const std::uint32_t m = active_mask();
      if (lane_id() == 0) mask = m;
    });
    whole += mask == full_mask;
    return mask != full_mask;
  });
  EXPECT_GE(split, seeds / 20);
  EXPECT_EQ(split + whole, seeds);

  std::uint32_t mask = 0;  // without a seed they are whole
  host::run({1, 1, 0}, [&] {
    const std::uint32_t m = active_mask();
    if (lane_id() == 0) mask = m;
  });
  EXPECT_EQ(mask, full_mask);
}

}  // namespace
}  // namespace grosr::simt
