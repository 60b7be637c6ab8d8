// A heap gives exactly as many blocks as there is room for, then null, counted by class; whatever
// is freed then can be had again.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(exhausted_heaps);

std::uint64_t failures_of(const heap& h, std::size_t bytes) {
  return h.report().classes[class_of(bytes)].failures;
}

void expect_all_and_no_more(const heap& h, simt::shape grid, std::size_t bytes) {
  const std::uint32_t all = capacity(h, bytes), lanes = grid.blocks * grid.threads;
  const std::uint64_t before = failures_of(h, bytes), others = h.report().failures - before;
  hoard blocks(h);
  EXPECT_EQ(blocks.fill(grid, bytes), all) << "blocks of " << bytes << " bytes";
  EXPECT_EQ(failures_of(h, bytes), before + lanes) << "each lane was refused once";
  EXPECT_EQ(h.report().failures, before + lanes + others);

  // One back: one can be had, by whoever asks.
  blocks.shuffle(1);
  blocks.free({1, 32}, 1);
  EXPECT_EQ(blocks.fill({1, 32}, bytes), 1u);
  blocks.free({1, 32}, 1);
  EXPECT_EQ(blocks.fill(grid, bytes), 1u);

  // Most back, at random.
  const std::size_t most = blocks.size() * 15 / 16;
  blocks.shuffle(2);
  blocks.free(grid, most);
  EXPECT_EQ(h.report().live, all - most);
  EXPECT_EQ(blocks.fill(grid, bytes), most);

  // One in 16 back.
  const std::size_t few = (blocks.size() + 15) / 16;
  blocks.shuffle(3);
  blocks.free(grid, few);
  EXPECT_EQ(blocks.fill(grid, bytes), few);
  blocks.free(grid);
  EXPECT_EQ(h.report().live, 0u);
}

TEST_P(exhausted_heaps, give_every_slot) {
  const heap h(where(), 6 * slab_bytes);
  for (std::size_t bytes : {16u, 64u, 1024u, 4096u, 65536u})
    for (simt::shape grid : {simt::shape{1, 32}, simt::shape{4, 64}})
      expect_all_and_no_more(h, grid, bytes);
}

TEST_P(exhausted_heaps, give_every_slot_where_warps_have_slabs_of_their_own) {
  const heap h(where(), 640 * slab_bytes);
  expect_all_and_no_more(h, {4, 64}, 4096);
  expect_all_and_no_more(h, {8, 32}, 9000);
}

TEST_P(exhausted_heaps, give_every_run) {
  const heap h(where(), 130 * slab_bytes);
  for (std::size_t slabs : {2u, 5u, 65u, 130u})
    expect_all_and_no_more(h, {2, 32}, slabs * slab_bytes);
  hoard blocks(h);
  EXPECT_EQ(blocks.fill({1, 32}, 131 * slab_bytes), 0u);
  EXPECT_EQ(blocks.fill({1, 32}, ~std::size_t{0}), 0u);
  EXPECT_EQ(blocks.fill({1, 32}, ~std::size_t{0} - slab_bytes), 0u);
}

// Sizes that nobody has asked for get what others gave back.
TEST_P(exhausted_heaps, give_slabs_that_came_free_to_other_sizes) {
  const heap h(where(), 4 * slab_bytes);
  hoard blocks(h), others(h);
  EXPECT_EQ(blocks.fill({2, 32}, 1024), capacity(h, 1024));
  EXPECT_EQ(others.fill({2, 32}, 64), 0u);
  EXPECT_EQ(others.fill({1, 32}, 2 * slab_bytes), 0u);
  blocks.free({2, 32});
  EXPECT_EQ(others.fill({2, 32}, 64), capacity(h, 64));
  others.free({2, 32});
  EXPECT_EQ(others.fill({2, 32}, 4 * slab_bytes), 1u);
}

// More want memory than there is, and all go on freeing what they have: nobody hangs, and nothing
// is missing afterwards.
struct scramble_for_memory {
  heap_ref heap;
  std::uint32_t bytes, rounds;

  GROSR_DEVICE void operator()() const {
    void* held[3] = {};
    for (std::uint32_t i = 0; i < rounds; ++i) {
      heap.deallocate(held[i % 3]);
      held[i % 3] = heap.allocate(bytes);
    }
    for (void* p : held) heap.deallocate(p);
  }
};

void expect_whole_after_scramble(device d, simt::shape grid, std::size_t slabs, std::uint32_t bytes,
                                 std::uint32_t rounds) {
  const heap h(d, slabs * slab_bytes);
  simt::run(d, grid, scramble_for_memory{h.ref(), bytes, rounds});
  EXPECT_EQ(h.report().live, 0u);
  hoard blocks(h);
  EXPECT_EQ(blocks.fill(grid, bytes), capacity(h, bytes));
}

TEST_P(exhausted_heaps, recover_from_more_demand_than_memory) {
  const auto rounds = static_cast<std::uint32_t>(testing::scaled(60, 6));
  expect_whole_after_scramble(where(), {4, 64}, 2, 1024, rounds);
  expect_whole_after_scramble(where(), {4, 64}, 1, 240, rounds);
  expect_whole_after_scramble(where(), {4, 64}, 8, 16384, rounds);
  expect_whole_after_scramble(where(), {2, 32}, 8, 131072, rounds);
}

TEST(exhausted_heaps_seeded, give_every_slot) {
  testing::for_seeds(
      1000,
      [] {
        expect_all_and_no_more(heap(device(), 2 * slab_bytes), {2, 32}, 2048);
        expect_all_and_no_more(heap(device(), 6 * slab_bytes), {2, 32}, 20000);
      },
      1000);
}

TEST(exhausted_heaps_seeded, give_every_slot_where_warps_have_slabs_of_their_own) {
  testing::for_seeds(
      200,
      [] {
        const heap h(device(), 400 * slab_bytes);
        hoard run(h), blocks(h);
        ASSERT_EQ(run.fill({1, 32}, 397 * slab_bytes, 1), 1u);
        for (std::size_t bytes : {2048u, 20000u})
          for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(blocks.fill({3, 64}, bytes), 3 * slots_of(class_of(bytes)));
            blocks.free({3, 64});
          }
      },
      100);
}

TEST(exhausted_heaps_seeded, recover_from_more_demand_than_memory) {
  testing::for_seeds(
      1000,
      [] {
        expect_whole_after_scramble(device(), {2, 32}, 1, 2048, 6);
        expect_whole_after_scramble(device(), {2, 32}, 4, 131072, 4);
      },
      200);
}

}  // namespace
}  // namespace grosr::alloc
