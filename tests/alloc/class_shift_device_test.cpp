// A heap that was full of one size has as much room for any other one as a new heap, and becomes
// one block again.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(class_shifts);

void expect_full_capacity(const heap& h, simt::shape grid, std::size_t bytes) {
  hoard all(h);
  EXPECT_EQ(all.fill(grid, bytes), capacity(h, bytes)) << "blocks of " << bytes << " bytes";
  const heap_report r = h.report();
  EXPECT_EQ(r.live, capacity(h, bytes));
  EXPECT_EQ(r.free_bytes, h.bytes() % std::max<std::size_t>(bytes, slab_bytes));
  all.free(grid);
  EXPECT_EQ(h.report().live, 0u);
}

TEST_P(class_shifts, from_any_size_to_any_other) {
  const heap h(where(), 16 * slab_bytes);
  for (std::size_t bytes : {16u, 4096u, 65536u, 48u, 9000u, 1024u, 130u, 40000u, 64u})
    expect_full_capacity(h, {2, 64}, bytes);
}

// Active slabs may be empty, which runs go around while they can: of a length below half of the
// heap, how many there is room for depends on where.
void expect_a_run(const heap& h, simt::shape grid, std::size_t slabs) {
  hoard runs(h);
  const std::uint32_t n = runs.fill(grid, slabs * slab_bytes);
  EXPECT_GE(n, 1u) << "runs of " << slabs << " slabs";
  EXPECT_LE(n, capacity(h, slabs * slab_bytes));
  runs.free(grid);
}

TEST_P(class_shifts, to_runs_and_back) {
  const heap h(where(), 130 * slab_bytes);  // three leaf words
  for (std::size_t slabs : {2u, 65u, 130u, 43u, 130u, 64u, 3u}) {
    expect_full_capacity(h, {1, 64}, 3000);
    expect_a_run(h, {1, 64}, slabs);
    expect_full_capacity(h, {1, 64}, h.bytes());
  }
}

TEST_P(class_shifts, after_most_blocks_were_freed_in_any_order) {
  const heap h(where(), 8 * slab_bytes);
  for (std::uint32_t i = 0; i < 4; ++i) {
    hoard all(h);
    all.fill({2, 64}, 512 << i);
    all.shuffle(i);
    all.free({2, 64}, all.size() / 2);
    all.free({2, 64});
    expect_a_run(h, {1, 32}, 4);
    expect_full_capacity(h, {1, 32}, h.bytes());
  }
}

TEST(class_shifts_seeded, in_every_schedule) {
  testing::for_seeds(
      400,
      [] {
        const heap h(device(), 4 * slab_bytes);
        for (std::size_t bytes : {2048u, 8192u, 4096u}) {
          expect_full_capacity(h, {2, 32}, bytes);
          expect_a_run(h, {2, 32}, 2);
          expect_full_capacity(h, {2, 32}, h.bytes());
        }
      },
      40);
}

}  // namespace
}  // namespace grosr::alloc
