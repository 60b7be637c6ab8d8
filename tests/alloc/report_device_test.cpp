// A heap's report says what is in use, what is free and what went wrong; heaps that cannot be are
// refused in words.
#include <string>

#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(heap_reports);

TEST_P(heap_reports, of_a_new_heap) {
  const heap h(where(), 10 * slab_bytes - 100);  // rounded up
  const heap_report r = h.report();
  EXPECT_EQ(h.bytes(), 10 * std::size_t{slab_bytes});
  EXPECT_EQ(h.where(), where());
  EXPECT_EQ(r.bytes, h.bytes());
  EXPECT_EQ(r.free_bytes, h.bytes());
  EXPECT_EQ(r.largest_free, h.bytes());
  EXPECT_EQ(r.live + r.live_bytes + r.high_water + r.failures, 0u);
  EXPECT_EQ(r.bad_alignments + r.foreign_frees + r.double_frees, 0u);
  EXPECT_EQ(r.internal_fragmentation(), 0);
  EXPECT_EQ(r.external_fragmentation(), 0);
  ASSERT_EQ(r.classes.size(), classes);
  for (std::uint32_t c = 0; c < slot_classes; ++c) {
    EXPECT_EQ(r.classes[c].block_bytes, slot_bytes(c));
    EXPECT_EQ(r.classes[c].live + r.classes[c].slabs + r.classes[c].failures, 0u);
  }
}

TEST_P(heap_reports, count_blocks_and_bytes_by_class) {
  const heap h(where(), 400 * slab_bytes);
  hoard blocks(h);
  std::uint64_t live = 0, bytes = 0;
  for (std::uint32_t size : {10u, 100u, 5000u, 65536u}) {
    EXPECT_EQ(blocks.fill({1, 64}, size, 2), 128u);
    const std::uint32_t c = class_of(size);
    const heap_report r = h.report();
    live += 128;
    bytes += std::uint64_t{128} * slot_bytes(c);
    EXPECT_EQ(r.classes[c].live, 128u);
    EXPECT_EQ(r.classes[c].live_bytes, std::uint64_t{128} * slot_bytes(c));
    EXPECT_GE(r.classes[c].slabs * slots_of(c), 128u);
    EXPECT_EQ(r.live, live);
    EXPECT_EQ(r.live_bytes, bytes);
    EXPECT_GE(r.bytes - r.free_bytes, bytes);
    EXPECT_EQ(r.high_water, r.bytes - r.free_bytes) << "nothing was freed so far";
    EXPECT_GE(r.internal_fragmentation(), 0);
    EXPECT_LT(r.internal_fragmentation(), 1);
  }
  blocks.free({1, 32});
  EXPECT_EQ(h.report().live, 0u);
  EXPECT_GE(h.report().high_water, bytes);
}

TEST_P(heap_reports, of_runs) {
  const heap h(where(), 12 * slab_bytes);
  hoard run(h), other(h);
  ASSERT_EQ(run.fill({1, 32}, 5 * slab_bytes - 3, 1), 2u);
  heap_report r = h.report();
  EXPECT_EQ(r.classes[run_class].live, 2u);
  EXPECT_EQ(r.classes[run_class].slabs, 10u);
  EXPECT_EQ(r.live_bytes, 10 * std::size_t{slab_bytes});
  EXPECT_EQ(r.free_bytes, 2 * std::size_t{slab_bytes});
  EXPECT_EQ(r.largest_free, 2 * std::size_t{slab_bytes});
  EXPECT_EQ(r.high_water, 10 * std::size_t{slab_bytes});
  EXPECT_EQ(r.classes[run_class].failures, 30u);
  EXPECT_EQ(r.failures, 30u);
  run.free({1, 32}, 1);
  r = h.report();
  EXPECT_EQ(r.free_bytes, 7 * std::size_t{slab_bytes});
  EXPECT_GE(r.largest_free, 5 * std::size_t{slab_bytes});
  EXPECT_EQ(r.high_water, 10 * std::size_t{slab_bytes});
  run.free({1, 32});
  r = h.report();
  EXPECT_EQ(r.largest_free, h.bytes());
  EXPECT_EQ(r.high_water, 10 * std::size_t{slab_bytes});
  // The largest free run can really be had.
  EXPECT_EQ(other.fill({1, 32}, r.largest_free), 1u);
  EXPECT_EQ(h.report().high_water, h.bytes());
  EXPECT_EQ(h.report().free_bytes, 0u);
}

TEST_P(heap_reports, are_lines_for_people) {
  const heap h(where(), 2 * slab_bytes);
  hoard blocks(h);
  blocks.fill({1, 32}, 4096);
  const std::string text = h.report().text();
  for (const char* part : {"32 blocks", "live", "free", "high water", "4096", "failures"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST_P(heap_reports, of_a_moved_heap) {
  heap a(where(), 4 * slab_bytes);
  hoard(a).fill({1, 32}, 100, 1);
  const heap_ref ref = a.ref();
  heap b(std::move(a));
  EXPECT_EQ(b.report().live, 32u);
  EXPECT_EQ(b.ref().view().slabs, ref.view().slabs);
  heap c(where(), slab_bytes);
  c = std::move(b);
  EXPECT_EQ(c.report().live, 32u);
  EXPECT_EQ(hoard(c).fill({1, 32}, 100, 1), 32u);
}

TEST_P(heap_reports, nothing_of_heaps_that_cannot_be) {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{65535}}) {
    const error e = testing::error_of([&] { heap(where(), bytes); });
    EXPECT_EQ(e.code(), errc::invalid_option);
    EXPECT_NE(std::string(e.what()).find(std::to_string(bytes) + " bytes"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("65536"), std::string::npos) << e.what();
  }
  const std::size_t has = where().properties().memory;
  for (std::size_t bytes : {has + 1, 16 * has, ~std::size_t{0}}) {
    const error e = testing::error_of([&] { heap(where(), bytes); });
    EXPECT_EQ(e.code(), errc::out_of_memory);
    EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(std::to_string(has)), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace grosr::alloc
