// A checked heap finds blocks freed twice, foreign pointers, writes past the end and leaks, says
// who did it, and finds nothing else.
#include <string>

#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(checked_heaps);

using kind = heap_finding::kind;

struct get_one {
  checked_heap_ref heap;
  std::size_t bytes;
  void** to;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() == 0) *to = heap.allocate(bytes);
  }
};

// Writes `past` bytes from the block's end on, then frees it `times` times.
struct misuse {
  checked_heap_ref heap;
  void** from;
  std::size_t bytes, past, offset;
  std::uint32_t times;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    auto* p = static_cast<unsigned char*>(*from) + offset;
    for (std::size_t i = 0; i < past; ++i) p[bytes + i] = 0;
    for (std::uint32_t i = 0; i < times; ++i) heap.deallocate(p);
  }
};

// What is found when a block of `bytes` is misused.
std::vector<heap_finding> findings_of(const heap& h, std::size_t bytes, std::size_t past,
                                      std::size_t offset, std::uint32_t times) {
  simt::buffer<void*> p(h.where(), simt::space::device, 2);
  // A second block keeps the slab alive.
  simt::run(h.where(), {1, 32}, get_one{h.checked_ref("other"), bytes, p.data() + 1});
  simt::run(h.where(), {1, 32}, get_one{h.checked_ref("getter"), bytes, p.data()});
  simt::run(h.where(), {1, 32},
            misuse{h.checked_ref("culprit"), p.data(), bytes, past, offset, times});
  return h.findings();
}

TEST_P(checked_heaps, find_blocks_freed_twice) {
  const heap h(where(), 8 * slab_bytes, {.checked = true});
  const auto found = findings_of(h, 100, 0, 0, 2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, kind::double_free);
  EXPECT_EQ(found[0].bytes, 100u);
  EXPECT_EQ(found[0].block_bytes, slot_bytes(class_of(132)));
  EXPECT_EQ(found[0].allocated_by, "getter");
  EXPECT_EQ(found[0].freed_by, "culprit");
  EXPECT_EQ(found[0].found_by, "culprit");
  EXPECT_EQ(h.report().double_frees, 1u);
  EXPECT_EQ(h.report().live, 1u);
}

TEST_P(checked_heaps, find_memory_freed_twice) {
  const heap h(where(), 8 * slab_bytes, {.checked = true});
  auto p = make<void*>(1);
  for (std::size_t bytes : {100u, 200000u}) {  // alone in its slab, and a run
    run(1, 32, get_one{h.checked_ref("getter"), bytes, p.data()});
    run(1, 32, misuse{h.checked_ref("first"), p.data(), bytes, 0, 0, 1});
    run(1, 32, misuse{h.checked_ref("second"), p.data(), bytes, 0, 0, 1});
  }
  const auto found = h.findings();
  ASSERT_EQ(found.size(), 2u);
  for (const auto& f : found) {
    EXPECT_EQ(f.what, kind::double_free);
    EXPECT_EQ(f.found_by, "second");
  }
}

TEST_P(checked_heaps, made_of_nothing_ignore_frees) {
  auto p = make<void*>(1);
  run(1, 32, get_one{checked_heap_ref(), 100, p.data()});
  EXPECT_EQ(contents(p)[0], nullptr);
  run(1, 32, misuse{checked_heap_ref(), p.data(), 0, 0, 64, 1});
}

TEST_P(checked_heaps, name_the_same_owners_once) {
  const heap h(where(), slab_bytes, {.checked = true});
  const auto first = h.view({"one", "two"}), other = h.view({"two", "one"});
  EXPECT_EQ(h.view({"one", "two"}).owner, first.owner);
  EXPECT_NE(other.owner, first.owner);
}

TEST_P(checked_heaps, find_foreign_pointers) {
  const heap h(where(), 8 * slab_bytes, {.checked = true});
  const auto found = findings_of(h, 100, 0, 16, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, kind::foreign_free);
  EXPECT_EQ(found[0].found_by, "culprit");
  EXPECT_EQ(h.report().foreign_frees, 1u);
  EXPECT_EQ(h.report().live, 2u);
}

TEST_P(checked_heaps, find_writes_past_the_end) {
  for (std::size_t bytes : {1u, 96u, 100u, 5000u, 200000u}) {
    for (std::size_t past : {1u, 16u}) {
      const heap h(where(), 16 * slab_bytes, {.checked = true});
      const auto found = findings_of(h, bytes, past, 0, 1);
      ASSERT_EQ(found.size(), 1u) << past << " bytes past a block of " << bytes;
      EXPECT_EQ(found[0].what, kind::written_past_end);
      EXPECT_EQ(found[0].bytes, bytes);
      EXPECT_EQ(found[0].allocated_by, "getter");
      EXPECT_EQ(found[0].found_by, "culprit");
      EXPECT_EQ(h.report().live, 1u) << "the block is freed all the same";
      EXPECT_EQ(h.report().overruns, 1u);
    }
  }
}

TEST_P(checked_heaps, find_writes_over_their_own_record) {
  const heap h(where(), 8 * slab_bytes, {.checked = true});
  const auto found = findings_of(h, 96, 32, 0, 1);  // in a block of 128
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, kind::written_past_end);
}

// Grows a block whose record was overwritten with zeros.
struct grow_zeroed {
  checked_heap_ref heap;
  std::uint32_t* is_null;
  GROSR_DEVICE void operator()() const {
    if (self() != 0) return;
    auto* p = static_cast<volatile unsigned char*>(heap.allocate(96));  // in a block of 128
    for (unsigned i = 96; i < 128; ++i) p[i] = 0;
    void* q = heap.reallocate(const_cast<unsigned char*>(p), 1000);
    if (q == nullptr) add(is_null);
    heap.deallocate(q);
  }
};

TEST_P(checked_heaps, grow_a_block_whose_record_is_zero) {
  const heap h(where(), 8 * slab_bytes, {.checked = true});
  auto is_null = make<std::uint32_t>(1);
  run(1, 32, grow_zeroed{h.checked_ref("grow"), is_null.data()});
  EXPECT_EQ(contents(is_null)[0], 0u);
  const auto found = h.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, kind::written_past_end);
  EXPECT_EQ(h.report().live, 0u);
}

TEST_P(checked_heaps, find_leaks) {
  const heap h(where(), 16 * slab_bytes, {.checked = true});
  auto p = make<void*>(1);
  EXPECT_TRUE(h.leaks().empty());
  for (std::size_t bytes : {100u, 3000u, 200000u}) {
    run(1, 32, get_one{h.checked_ref("leaker of " + std::to_string(bytes)), bytes, p.data()});
    const auto leaks = h.leaks();
    ASSERT_EQ(leaks.size(), 1u);
    EXPECT_EQ(leaks[0].what, kind::leak);
    EXPECT_EQ(leaks[0].bytes, bytes);
    EXPECT_EQ(leaks[0].block_bytes, bytes < slab_bytes ? slot_bytes(class_of(bytes + 32)) : 0);
    EXPECT_EQ(leaks[0].allocated_by, "leaker of " + std::to_string(bytes));
    EXPECT_NE(leaks[0].text().find("never freed"), std::string::npos) << leaks[0].text();
    run(1, 32, misuse{h.checked_ref("freer"), p.data(), bytes, 0, 0, 1});
    EXPECT_TRUE(h.leaks().empty());
  }
  EXPECT_TRUE(h.findings().empty());
}

struct clean {
  checked_heap_ref heap;
  std::uint32_t rounds;
  std::uint32_t* broken;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t id = testing::scramble(self() * 997 + i), bytes = some_size(id, 14);
      void* p = heap.allocate(bytes);
      if (p == nullptr) continue;
      stamp(p, bytes, id);
      if (heap.usable(p) != bytes || !stamped(p, bytes, id)) add(broken);
      heap.deallocate(p);
    }
  }
};

void expect_nothing_found(device d, simt::shape grid, std::size_t slabs, std::uint32_t rounds) {
  const heap h(d, slabs * slab_bytes, {.checked = true});
  simt::buffer<std::uint32_t> broken(d, simt::space::device, 1);
  simt::run(d, grid, clean{h.checked_ref("clean"), rounds, broken.data()});
  std::uint32_t n = 0;
  broken.copy_to({&n, 1});
  EXPECT_EQ(n, 0u);
  for (const heap_finding& f : h.findings()) ADD_FAILURE() << f.text();
  EXPECT_TRUE(h.leaks().empty());
  EXPECT_EQ(h.report().live, 0u);
}

TEST_P(checked_heaps, find_nothing_else) {
  const auto rounds = static_cast<std::uint32_t>(testing::scaled(60, 6));
  expect_nothing_found(where(), {4, 64}, 500, rounds);
  expect_nothing_found(where(), {4, 64}, 4, rounds);
}

TEST_P(checked_heaps, have_refs_of_their_own) {
  const heap plain(where(), slab_bytes), checked(where(), slab_bytes, {.checked = true});
  EXPECT_EQ(testing::error_of([&] { plain.checked_ref("k"); }).code(), errc::misuse);
  EXPECT_EQ(testing::error_of([&] { checked.ref(); }).code(), errc::misuse);
  EXPECT_TRUE(plain.findings().empty());
  EXPECT_TRUE(plain.leaks().empty());
}

TEST(checked_heaps_seeded, find_nothing_else) {
  testing::for_seeds(
      300,
      [] {
        expect_nothing_found(device(), {2, 32}, 4, 3);
      },
      40);
}

}  // namespace
}  // namespace grosr::alloc
