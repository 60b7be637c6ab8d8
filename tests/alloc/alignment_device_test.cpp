// Blocks are aligned to any power of two up to a slab; other alignments are refused and counted.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(alignments);

struct ask {
  heap_ref heap;
  std::size_t step;
  std::uint32_t *none, *misaligned, *broken;

  GROSR_DEVICE void operator()() const {
    for (std::size_t bytes = 1 + simt::lane_id(); bytes <= 70000; bytes += step) {
      const std::size_t alignment = std::size_t{1} << (simt::lane_id() + bytes) % 17;
      void* p = heap.allocate(bytes, alignment);
      if (p == nullptr) {
        add(none);
        continue;
      }
      if (reinterpret_cast<std::uint64_t>(p) % alignment != 0) add(misaligned);
      if (reinterpret_cast<std::uint64_t>(p) % 16 != 0) add(misaligned);
      stamp(p, bytes, self());
      if (heap.usable(p) < bytes || !stamped(p, bytes, self())) add(broken);
      heap.deallocate(p);
    }
  }
};

TEST_P(alignments, all_powers_of_two_and_sizes) {
  const heap h(where(), 200 * slab_bytes);
  auto counts = make<std::uint32_t>(3);
  std::uint32_t* c = counts.data();
  run(1, 32, ask{h.ref(), 331, c, c + 1, c + 2});
  EXPECT_EQ(contents(counts), (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(h.report().live, 0u);
  EXPECT_EQ(h.report().bad_alignments, 0u);
}

struct ask_for {
  heap_ref heap;
  std::size_t bytes, alignment;
  std::uint32_t* got;
  GROSR_DEVICE void operator()() const {
    if (heap.allocate(bytes, alignment) != nullptr) add(got);
  }
};

TEST_P(alignments, that_are_none_are_refused_and_counted) {
  const heap h(where(), 8 * slab_bytes);
  auto got = make<std::uint32_t>(1);
  std::uint64_t asked = 0;
  for (std::size_t bad :
       {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{131072}, ~std::size_t{0}}) {
    run(1, 32, ask_for{h.ref(), 100, bad, got.data()});
    EXPECT_EQ(h.report().bad_alignments, asked += 32) << bad;
  }
  EXPECT_EQ(contents(got)[0], 0u);
  EXPECT_EQ(h.report().failures, 0u);
  EXPECT_EQ(h.report().live, 0u);
}

TEST_P(alignments, zero_bytes_are_null_and_not_counted) {
  const heap h(where(), slab_bytes);
  auto got = make<std::uint32_t>(1);
  for (std::size_t alignment : {1u, 16u, 4096u, 3u})
    run(1, 32, ask_for{h.ref(), 0, alignment, got.data()});
  EXPECT_EQ(contents(got)[0], 0u);
  EXPECT_EQ(h.report().failures, 0u);
  EXPECT_EQ(h.report().bad_alignments, 0u);
}

}  // namespace
}  // namespace grosr::alloc
