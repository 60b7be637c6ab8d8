// What succeeds in a ring is linearizable as a bounded FIFO queue, with single lanes, groups of
// lanes and batches at work together.
#include "grosr/queue/ring.hpp"
#include "queue/history.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(ring_is_linearizable);

// Lanes below `lanes` of every warp. Even warps push and odd warps pop, or, mixed, every lane does
// both in turns. A group's operations begin when its first lane calls.
struct work {
  ring_ref<std::uint32_t> ring;
  recorder_ref log;
  std::uint32_t lanes, steps;
  bool mixed, groups;

  GROSR_DEVICE void operator()() const {
    const unsigned lane = simt::lane_id();
    if (lane >= lanes) return;
    const std::uint32_t warp = simt::block_id() * (simt::block_size() / 32) + simt::warp_id();
    for (std::uint32_t i = 0; i < steps; ++i) {
      const std::uint32_t mask = groups ? (1u << lanes) - 1u : 1u << lane;
      const bool pushes = mixed ? (i + warp + (groups ? 0 : lane)) % 2 == 0 : warp % 2 == 0;
      std::uint32_t began = lane == simt::lowest_bit(mask) ? log.now() : 0;
      began = simt::shuffle(mask, began, simt::lowest_bit(mask));
      if (pushes) {
        const std::uint32_t value = 1 + (warp * 32 + lane) * steps + i;
        if (ring.try_push(mask, value)) log.add(act::push, value, began);
      } else {
        std::uint32_t value = 0;
        if (ring.try_pop(mask, value)) log.add(act::pop, value, began);
      }
    }
  }
};

std::vector<operation> history_of(device d, simt::shape grid, std::uint32_t capacity,
                                  std::uint32_t lanes, std::uint32_t steps, bool mixed,
                                  bool groups) {
  ring<std::uint32_t> r(d, capacity);
  const recorder log(d, grid.blocks * grid.threads / 32 * lanes * steps);
  simt::run(d, grid, work{r.ref(), log.ref(), lanes, steps, mixed, groups});
  return log.history();
}

TEST(ring_is_linearizable_seeded, in_1000_schedules) {
  std::uint32_t round = 0;
  std::size_t operations = 0;
  testing::for_seeds(
      1000,
      [&] {
        const std::uint32_t n = round++;
        const auto h = history_of(device(), {2 + n % 2, 32}, n % 3 == 0 ? 2 : 4, 1 + n % 3,
                                  3 + n % 4, n % 2 == 0, n % 5 == 0);
        operations += h.size();
        EXPECT_TRUE(linearizable(h, fifo_model{n % 3 == 0 ? 2u : 4u})) << text_of(h);
        EXPECT_EQ(fifo_violation(h), "") << text_of(h);
      },
      1000);
  EXPECT_GE(operations, 4 * round);  // not empty words
}

TEST(ring_is_linearizable_seeded, with_whole_warps) {
  testing::for_seeds(100, [] {
    const auto h = history_of(device(), {2, 64}, 16, 31, 4, true, false);
    EXPECT_EQ(fifo_violation(h), "");
  });
}

TEST_P(ring_is_linearizable, in_long_histories) {
  for (std::uint32_t capacity : {2u, 16u, 128u})
    for (bool groups : {false, true}) {
      const auto h = history_of(where(), {4, 64}, capacity, 8,
                                static_cast<std::uint32_t>(testing::scaled(20, 4)), true, groups);
      EXPECT_FALSE(h.empty());
      EXPECT_EQ(fifo_violation(h), "");
    }
}

// Batches by one lane each: the values of a batch are operations of the same time.
struct batches {
  ring_ref<std::uint32_t> ring;
  recorder_ref log;
  std::uint32_t steps;

  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    for (std::uint32_t i = 0; i < steps; ++i) {
      std::uint32_t many[3] = {};
      const std::uint32_t began = log.now();
      if ((i + simt::block_id()) % 2 == 0) {
        for (std::uint32_t k = 0; k < 3; ++k) many[k] = 1 + (simt::block_id() * steps + i) * 3 + k;
        const std::uint32_t n = ring.try_push_n(many, 3);
        for (std::uint32_t k = 0; k < n; ++k) log.add(act::push, many[k], began);
      } else {
        const std::uint32_t n = ring.try_pop_n(many, 3);
        for (std::uint32_t k = 0; k < n; ++k) log.add(act::pop, many[k], began);
      }
    }
  }
};

TEST(ring_is_linearizable_seeded, with_batches) {
  testing::for_seeds(300, [] {
    ring<std::uint32_t> r(device(), 4);
    const recorder log(device(), 3 * 4 * 3);
    simt::run(device(), {3, 32}, batches{r.ref(), log.ref(), 4});
    const auto h = log.history();
    EXPECT_TRUE(linearizable(h, fifo_model{4})) << text_of(h);
  });
}

}  // namespace
}  // namespace grosr::queue
