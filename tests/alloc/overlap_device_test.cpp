// No two live blocks share a byte: each is written over its whole length by its owner, and read
// again before it is freed, while all others do the same with blocks of all sizes.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(blocks_apart);

struct churn {
  heap_ref heap;
  std::uint32_t rounds, octaves;
  std::uint32_t *broken, *small, *served;

  static constexpr std::uint32_t kept = 4;

  GROSR_DEVICE void operator()() const {
    void* p[kept] = {};
    std::uint32_t bytes[kept] = {}, id[kept] = {};
    for (std::uint32_t i = 0; i < rounds + kept; ++i) {
      const std::uint32_t random = testing::scramble(self() * 8191 + i), k = i % kept;
      if (p[k] != nullptr) {
        if (!stamped(p[k], bytes[k], id[k])) add(broken);
        heap.deallocate(p[k]);
        p[k] = nullptr;
      }
      if (i >= rounds) continue;
      bytes[k] = some_size(random, octaves);
      id[k] = random;
      p[k] = heap.allocate(bytes[k]);
      if (p[k] == nullptr) continue;
      if (heap.usable(p[k]) < bytes[k]) add(small);
      stamp(p[k], bytes[k], id[k]);
      add(served);
    }
  }
};

void expect_apart(device d, simt::shape grid, std::size_t slabs, std::uint32_t rounds,
                  std::uint32_t octaves) {
  const heap h(d, slabs * slab_bytes);
  simt::buffer<std::uint32_t> counts(d, simt::space::device, 3);
  std::uint32_t* c = counts.data();
  simt::run(d, grid, churn{h.ref(), rounds, octaves, c, c + 1, c + 2});
  std::vector<std::uint32_t> n(3);
  counts.copy_to(n);
  EXPECT_EQ(n[0], 0u) << "blocks that somebody else wrote to";
  EXPECT_EQ(n[1], 0u) << "blocks that are too small";
  const heap_report r = h.report();
  EXPECT_EQ(n[2] + r.failures, grid.blocks * grid.threads * rounds);
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.live_bytes, 0u);
  EXPECT_EQ(r.foreign_frees, 0u);
  EXPECT_EQ(r.double_frees, 0u);
}

std::uint32_t rounds(std::uint64_t n) { return static_cast<std::uint32_t>(testing::scaled(n, 8)); }

TEST_P(blocks_apart, in_a_large_heap) { expect_apart(where(), {4, 128}, 1024, rounds(200), 14); }

TEST_P(blocks_apart, with_runs) { expect_apart(where(), {4, 64}, 2048, rounds(40), 18); }

TEST_P(blocks_apart, while_memory_runs_out) {
  expect_apart(where(), {4, 64}, 12, rounds(200), 13);
  expect_apart(where(), {4, 64}, 40, rounds(60), 18);
}

TEST_P(blocks_apart, in_a_heap_of_one_slab) { expect_apart(where(), {4, 64}, 1, rounds(60), 16); }

TEST(blocks_apart_seeded, in_every_schedule) {
  testing::for_seeds(
      1000,
      [] {
        expect_apart(device(), {2, 32}, 3, 6, 12);
      },
      1000);
}

TEST(blocks_apart_seeded, with_runs) {
  testing::for_seeds(
      1000,
      [] {
        expect_apart(device(), {2, 32}, 12, 4, 18);
      },
      200);
}

TEST(blocks_apart_seeded, where_warps_have_slabs_of_their_own) {
  testing::for_seeds(
      200,
      [] {
        expect_apart(device(), {3, 64}, 400, 6, 11);
      },
      50);
}

}  // namespace
}  // namespace grosr::alloc
