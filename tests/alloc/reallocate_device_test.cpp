// reallocate() keeps what was in the block, growing and shrinking, across classes and runs.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(reallocated_blocks);

// Sizes that stay in a class, change it, become runs, longer and shorter ones, and go back.
GROSR_DEVICE constexpr std::uint32_t size_at(std::uint32_t step) {
  constexpr std::uint32_t sizes[] = {1,     15,    16,    17,    100,    110,    1000,
                                     8192,  9000,  65536, 65537, 131072, 200000, 140000,
                                     70000, 65536, 5000,  33,    1};
  return sizes[step % 19];
}

template <class Ref>
struct grow_and_shrink {
  Ref heap;
  std::uint32_t lanes, steps;
  std::uint32_t *none, *broken;

  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() >= lanes) return;
    void* p = nullptr;
    std::uint32_t before = 0;
    for (std::uint32_t i = 0; i < steps; ++i) {
      const std::uint32_t bytes = size_at(i + self() % 3);
      void* q = heap.reallocate(p, bytes);
      if (q == nullptr) {
        add(none);
        continue;
      }
      if (heap.usable(q) < bytes) add(broken);
      if (!stamped(q, before < bytes ? before : bytes, self() * 256 + i)) add(broken);
      stamp(q, bytes, self() * 256 + i + 1);
      p = q;
      before = bytes;
    }
    if (heap.reallocate(p, 0) != nullptr) add(broken);
  }
};

template <class Ref>
void expect_kept(const heap& h, const Ref& ref, simt::shape grid, std::uint32_t lanes,
                 std::uint32_t steps) {
  simt::buffer<std::uint32_t> counts(h.where(), simt::space::device, 2);
  simt::run(h.where(), grid,
            grow_and_shrink<Ref>{ref, lanes, steps, counts.data(), counts.data() + 1});
  std::vector<std::uint32_t> n(2);
  counts.copy_to(n);
  EXPECT_EQ(n[0], 0u) << "lanes were refused";
  EXPECT_EQ(n[1], 0u) << "contents were lost";
  const heap_report r = h.report();
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.foreign_frees + r.double_frees, 0u);
}

TEST_P(reallocated_blocks, keep_their_contents) {
  const heap h(where(), 1000 * slab_bytes);
  expect_kept(h, h.ref(), {2, 64}, 8, 38);
}

TEST_P(reallocated_blocks, keep_their_contents_in_a_checked_heap) {
  const heap h(where(), 1000 * slab_bytes, {.checked = true});
  expect_kept(h, h.checked_ref("grow"), {2, 64}, 8, 38);
  EXPECT_TRUE(h.findings().empty());
}

struct special_cases {
  heap_ref heap;
  std::uint32_t* wrong;

  GROSR_DEVICE void expect(bool right, std::uint32_t which) const {
    if (!right) *wrong |= 1u << which;
  }

  GROSR_DEVICE void operator()() const {
    if (self() != 0) return;
    void* p = heap.reallocate(nullptr, 100);
    expect(p != nullptr, 0);
    stamp(p, 100, 7);
    expect(heap.reallocate(p, 112) == p, 1);  // of the same class
    expect(heap.reallocate(p, 97) == p, 2);
    // No memory: p stays.
    expect(heap.reallocate(p, heap.size()) == nullptr, 3);
    expect(heap.reallocate(p, heap.size() + 1) == nullptr, 4);
    expect(heap.reallocate(p, ~std::size_t{0}) == nullptr, 5);
    expect(stamped(p, 97, 7) && heap.usable(p) == 112, 6);
    void* run = heap.allocate(3 * std::size_t{slab_bytes});
    expect(run != nullptr, 7);
    stamp(run, 3 * std::size_t{slab_bytes}, 8);
    expect(heap.reallocate(run, 3 * std::size_t{slab_bytes} - 5) == run, 8);
    expect(heap.reallocate(run, 4 * std::size_t{slab_bytes}) == nullptr, 9);
    expect(stamped(run, 3 * std::size_t{slab_bytes}, 8), 10);
    expect(heap.reallocate(run, 0) == nullptr, 11);
    expect(heap.reallocate(nullptr, 0) == nullptr, 12);
    // No block at all: counted, and null.
    expect(heap.reallocate(static_cast<unsigned char*>(p) + 1, 50) == nullptr, 13);
    void* q = heap.reallocate(p, 20);
    expect(q != nullptr && q != p && stamped(q, 20, 7), 14);
    heap.deallocate(q);
  }
};

TEST_P(reallocated_blocks, stay_when_there_is_no_memory) {
  const heap h(where(), 5 * slab_bytes);
  auto wrong = make<std::uint32_t>(1);
  run(1, 32, special_cases{h.ref(), wrong.data()});
  EXPECT_EQ(contents(wrong)[0], 0u) << "the bits say which";
  const heap_report r = h.report();
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.failures, 4u);
  EXPECT_EQ(r.foreign_frees, 1u);
  EXPECT_EQ(r.double_frees, 0u);
}

TEST(reallocated_blocks_seeded, keep_their_contents) {
  testing::for_seeds(
      200,
      [] {
        const heap h(device(), 120 * slab_bytes);
        expect_kept(h, h.ref(), {2, 32}, 4, 8);
      },
      100);
}

}  // namespace
}  // namespace grosr::alloc
