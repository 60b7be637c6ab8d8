// A freed block can be had again at once: a few slabs serve many times their size, and nobody is
// told that there is no memory.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(freed_blocks);

// Each lane holds at most one block; sizes change from `bytes` to `other` every `turn` rounds, when
// all lanes of the warp have freed theirs.
struct one_at_a_time {
  heap_ref heap;
  std::uint32_t bytes, other, turn, rounds;
  std::uint32_t *none, *broken;

  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      if (i % turn == 0) simt::sync_warp();
      const std::uint32_t size = i / turn % 2 == 0 ? bytes : other;
      void* p = heap.allocate(size);
      if (p == nullptr) {
        add(none);
        continue;
      }
      stamp(p, size, self() * 65536 + i);
      if (!stamped(p, size, self() * 65536 + i)) add(broken);
      heap.deallocate(p);
    }
  }
};

void expect_served(device d, simt::shape grid, std::size_t slabs, std::uint32_t bytes,
                   std::uint32_t other, std::uint32_t rounds) {
  const heap h(d, slabs * slab_bytes);
  simt::buffer<std::uint32_t> counts(d, simt::space::device, 2);
  simt::run(d, grid,
            one_at_a_time{h.ref(), bytes, other, 4, rounds, counts.data(), counts.data() + 1});
  std::vector<std::uint32_t> n(2);
  counts.copy_to(n);
  EXPECT_EQ(n[0], 0u) << "lanes were refused " << bytes << " or " << other << " bytes of " << slabs
                      << " slabs";
  EXPECT_EQ(n[1], 0u);
  const heap_report r = h.report();
  EXPECT_EQ(r.failures, 0u);
  EXPECT_EQ(r.live, 0u);
}

std::uint32_t rounds(std::uint64_t n) { return static_cast<std::uint32_t>(testing::scaled(n, 12)); }

TEST_P(freed_blocks, serve_many_times_the_heap) {
  // Half of the heap is in use at most: 256 lanes.
  expect_served(where(), {4, 64}, 2, 64, 64, rounds(1000));
  expect_served(where(), {4, 64}, 2, 256, 256, rounds(400));
  expect_served(where(), {4, 64}, 8, 1024, 1024, rounds(200));
  expect_served(where(), {4, 64}, 32, 4096, 4096, rounds(100));
}

TEST_P(freed_blocks, serve_a_warp_that_needs_every_slot) {
  expect_served(where(), {1, 32}, 2, 4096, 4096, rounds(200));
  expect_served(where(), {1, 32}, 1, 2048, 2048, rounds(200));
  expect_served(where(), {1, 32}, 32, 65536, 65536, rounds(60));
}

TEST_P(freed_blocks, serve_other_sizes) {
  expect_served(where(), {1, 32}, 1, 16, 2048, rounds(200));
  expect_served(where(), {1, 32}, 4, 8192, 48, rounds(200));
  // Warps are out of step: each class may hold what its lanes had at most, and each SM some active
  // slabs.
  expect_served(where(), {4, 64}, 80, 1024, 4096, rounds(100));
}

TEST_P(freed_blocks, of_many_slabs_serve_runs) {
  expect_served(where(), {1, 32}, 64, 2 * slab_bytes, 4096, rounds(20));
  expect_served(where(), {2, 32}, 3 * 64 + 130, 3 * slab_bytes, 2 * slab_bytes, rounds(12));
}

TEST(freed_blocks_seeded, serve_in_every_schedule) {
  testing::for_seeds(
      1000,
      [] {
        expect_served(device(), {2, 32}, 4, 2048, 2048, 4);
      },
      1000);
}

TEST(freed_blocks_seeded, serve_other_sizes) {
  testing::for_seeds(
      400,
      [] {
        expect_served(device(), {2, 64}, 24, 2048, 4096, 8);
      },
      100);
}

// While one lane brings the slab back from another size's active slab, others see it nowhere.
TEST(freed_blocks_seeded, of_the_only_slab_serve_other_sizes) {
  testing::for_seeds(
      400,
      [] {
        expect_served(device(), {1, 32}, 1, 16, 2048, 8);
      },
      200);
}

// One warp takes what it needs of a slab that has room for all, while others do too.
TEST(freed_blocks_seeded, nobody_is_refused_while_there_is_room_in_another_warps_slab) {
  testing::for_seeds(
      400,
      [] {
        const heap h(device(), 400 * slab_bytes);
        hoard most(h), some(h);
        ASSERT_EQ(most.fill({1, 32}, 399 * slab_bytes, 1), 1u);
        EXPECT_EQ(some.fill({4, 32}, 256, 1), 128u);  // of 256
        EXPECT_EQ(some.fill({4, 32}, 256, 1), 128u);
      },
      200);
}

}  // namespace
}  // namespace grosr::alloc
