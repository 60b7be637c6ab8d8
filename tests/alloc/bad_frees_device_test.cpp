// Frees of what is no live block are counted and do nothing: all memory is there afterwards.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(bad_frees);

struct free_address {
  heap_ref heap;
  std::uint64_t address;
  GROSR_DEVICE void operator()() const { heap.deallocate(reinterpret_cast<void*>(address)); }
};

class bad_free {
 public:
  bad_free(const heap& h) : heap_(h) {}

  void at(const void* p, std::size_t offset = 0, unsigned blocks = 1) const {
    simt::run(heap_.where(), {blocks, 32},
              free_address{heap_.ref(), reinterpret_cast<std::uint64_t>(p) + offset});
  }
  std::uint64_t foreign() const { return heap_.report().foreign_frees; }
  std::uint64_t doubled() const { return heap_.report().double_frees; }

 private:
  const heap& heap_;
};

void expect_whole(const heap& h) {
  EXPECT_EQ(h.report().live, 0u);
  for (std::size_t bytes : {std::size_t{112}, std::size_t{20000}, h.bytes()}) {
    hoard all(h);
    EXPECT_EQ(all.fill({1, 32}, bytes), capacity(h, bytes));
    all.free({1, 32});
  }
}

TEST_P(bad_frees, of_a_block_twice_by_all_lanes_at_once) {
  const heap h(where(), 8 * slab_bytes);
  const bad_free free(h);
  hoard some(h);
  ASSERT_EQ(some.fill({1, 32}, 112, 2), 64u);
  free.at(some[5]);  // 32 lanes free one block: one of them may
  EXPECT_EQ(free.doubled(), 31u);
  free.at(some[5]);
  EXPECT_EQ(free.doubled(), 63u);
  EXPECT_EQ(free.foreign(), 0u);
  EXPECT_EQ(h.report().live, 63u);
  some.free({1, 32});
  EXPECT_EQ(free.doubled(), 64u);
  expect_whole(h);
}

TEST_P(bad_frees, of_foreign_pointers) {
  const heap h(where(), 8 * slab_bytes);
  const bad_free free(h);
  hoard some(h);
  ASSERT_EQ(some.fill({1, 32}, 112, 2), 64u);
  int on_the_stack = 0;
  std::uint64_t n = 0;
  const auto* first = reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(some[0]) /
                                                       slab_bytes * slab_bytes);
  free.at(&on_the_stack);
  EXPECT_EQ(free.foreign(), n += 32) << "of the host";
  for (std::size_t inside : {1u, 8u, 16u, 111u}) {
    free.at(some[3], inside);
    EXPECT_EQ(free.foreign(), n += 32) << inside << " bytes into a block";
  }
  free.at(first, slab_bytes - 16);
  EXPECT_EQ(free.foreign(), n += 32) << "behind a slab's last block";
  free.at(h.ref().view().slabs, h.bytes());
  EXPECT_EQ(free.foreign(), n += 32) << "right behind the heap";
  free.at(h.ref().view().slabs, std::size_t{0} - 16);
  EXPECT_EQ(free.foreign(), n += 32) << "right before the heap";
  for (std::size_t i = 0; i < 8; ++i) {
    const unsigned char* slab = h.ref().view().slabs + i * slab_bytes;
    if (slab == first) continue;
    free.at(slab);
    free.at(slab, 112);
    EXPECT_EQ(free.foreign(), n += 64) << "in a free slab";
  }
  EXPECT_EQ(free.doubled(), 0u);
  EXPECT_EQ(h.report().live, 64u);
  some.free({1, 32});
  expect_whole(h);
}

TEST_P(bad_frees, of_runs) {
  const heap h(where(), 8 * slab_bytes);
  const bad_free free(h);
  hoard run(h);
  ASSERT_EQ(run.fill({1, 32}, 5 * slab_bytes), 1u);
  std::uint64_t n = 0;
  for (std::size_t inside : {16u, slab_bytes, 2 * slab_bytes + 64, 4 * slab_bytes}) {
    free.at(run[0], inside);
    EXPECT_EQ(free.foreign(), n += 32) << inside << " bytes into a run";
  }
  EXPECT_EQ(h.report().live, 1u);
  free.at(run[0], 0, 4);
  EXPECT_EQ(h.report().live, 0u);
  EXPECT_EQ(free.doubled(), 127u) << "128 lanes freed it";
  EXPECT_EQ(free.foreign(), n);
  expect_whole(h);
}

TEST_P(bad_frees, of_everything_twice) {
  const heap h(where(), 8 * slab_bytes);
  const bad_free free(h);
  hoard some(h);
  ASSERT_EQ(some.fill({1, 32}, 4096, 2), 64u);
  std::vector<void*> all;
  for (std::size_t i = 0; i < some.size(); ++i) all.push_back(some[i]);
  some.free({1, 32});
  std::uint64_t n = 0;
  for (void* p : all) {
    free.at(p);
    EXPECT_EQ(free.doubled(), n += 32) << "though its slab is free as well";
  }
  EXPECT_EQ(free.foreign(), 0u);
  expect_whole(h);
}

TEST_P(bad_frees, of_null_are_none) {
  const heap h(where(), slab_bytes);
  const bad_free free(h);
  free.at(nullptr);
  EXPECT_EQ(free.foreign() + free.doubled(), 0u);
}

TEST(bad_frees_seeded, of_the_only_block_of_a_slab_by_two_warps) {
  testing::for_seeds(
      400,
      [] {
        const heap h(device(), 2 * slab_bytes);
        const bad_free free(h);
        hoard some(h);
        ASSERT_EQ(some.fill({1, 32}, slab_bytes, 1), 2u);
        free.at(some[0], 0, 2);
        EXPECT_EQ(free.doubled() + free.foreign(), 63u) << "foreign while the slab is on its way";
        EXPECT_EQ(h.report().live, 1u);
        some.free({1, 32});
        EXPECT_EQ(h.report().live, 0u);
        EXPECT_EQ(some.fill({1, 32}, slab_bytes), 2u);
      },
      100);
}

TEST(bad_frees_seeded, of_one_block_by_many) {
  testing::for_seeds(
      400,
      [] {
        const heap h(device(), 2 * slab_bytes);
        const bad_free free(h);
        hoard some(h);
        ASSERT_EQ(some.fill({1, 32}, 4096, 1), 32u);
        for (std::size_t i = 0; i < 32; i += 5) free.at(some[i], 0, 2);
        EXPECT_EQ(h.report().live, 25u);
        EXPECT_EQ(free.doubled(), 7u * 63);
        some.free({1, 32});
        EXPECT_EQ(h.report().live, 0u);
        EXPECT_EQ(some.fill({1, 32}, 4096), 32u);
      },
      40);
}

}  // namespace
}  // namespace grosr::alloc
