// Blocks may be freed by other threads than got them: of another block at the same time, and of
// another kernel later. The bytes that were written to them are seen there.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(frees_by_others);

// Lanes of even blocks pass each block on to a lane of the next block, which reads and frees it.
struct pass_on {
  heap_ref heap;
  std::uint32_t rounds, octaves;
  std::uint64_t* mail;  ///< one a pair of lanes
  std::uint32_t *broken, *none;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t pair = simt::block_id() / 2 * simt::block_size() + simt::thread_id();
    simt::atomic_ref<std::uint64_t> box(mail[pair]);
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t id = testing::scramble(pair * 1021 + i);
      const std::uint32_t bytes = some_size(id, octaves);
      if (simt::block_id() % 2 == 0) {
        void* p = nullptr;
        while ((p = heap.allocate(bytes)) == nullptr) {
          add(none);
          simt::pause(1, "memory that others free");
        }
        stamp(p, bytes, id);
        simt::wait_until([&] { return box.load(simt::relaxed) == 0; }, simt::forever, nullptr,
                         "an empty mailbox");
        box.store(reinterpret_cast<std::uint64_t>(p), simt::release);  // R1
      } else {
        std::uint64_t p = 0;
        simt::wait_until([&] { return (p = box.load(simt::acquire)) != 0; },  // A1: pairs with R1
                         simt::forever, nullptr, "mail");
        box.store(0, simt::relaxed);
        if (!stamped(reinterpret_cast<void*>(p), bytes, id)) add(broken);
        heap.deallocate(reinterpret_cast<void*>(p));
      }
    }
  }
};

void expect_passed_on(device d, simt::shape grid, std::size_t slabs, std::uint32_t octaves,
                      std::uint32_t rounds, bool enough) {
  const heap h(d, slabs * slab_bytes);
  simt::buffer<std::uint64_t> mail(d, simt::space::device, grid.blocks / 2 * grid.threads);
  simt::buffer<std::uint32_t> counts(d, simt::space::device, 2);
  simt::run(d, grid,
            pass_on{h.ref(), rounds, octaves, mail.data(), counts.data(), counts.data() + 1});
  std::vector<std::uint32_t> n(2);
  counts.copy_to(n);
  EXPECT_EQ(n[0], 0u) << "blocks came over with other contents";
  if (enough) {
    EXPECT_EQ(n[1], 0u) << "lanes were refused";
  }
  const heap_report r = h.report();
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.foreign_frees + r.double_frees, 0u);
}

TEST_P(frees_by_others, at_the_same_time) {
  const auto rounds = static_cast<std::uint32_t>(testing::scaled(100, 8));
  expect_passed_on(where(), {4, 64}, 512, 12, rounds, true);
  expect_passed_on(where(), {2, 64}, 1024, 18, rounds / 4, true);
}

// Blocks of one size, of which each pair of lanes has two at most.
TEST_P(frees_by_others, while_there_is_hardly_any_memory) {
  const auto rounds = static_cast<std::uint32_t>(testing::scaled(100, 8));
  expect_passed_on(where(), {4, 64}, 1, 4, rounds, true);
  expect_passed_on(where(), {2, 32}, 14, 10, rounds, false);
}

// Kernel 1 stamps, kernel 2 checks and frees in the opposite order.
struct stamp_all {
  heap_ref heap;
  void** blocks;
  GROSR_DEVICE void operator()() const {
    blocks[self()] = heap.allocate(some_size(testing::scramble(self()), 14));
    if (blocks[self()] != nullptr)
      stamp(blocks[self()], some_size(testing::scramble(self()), 14), self());
  }
};
struct check_all {
  heap_ref heap;
  void** blocks;
  std::uint32_t* broken;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t other = simt::grid_size() * simt::block_size() - 1 - self();
    if (blocks[other] == nullptr ||
        !stamped(blocks[other], some_size(testing::scramble(other), 14), other))
      add(broken);
    heap.deallocate(blocks[other]);
  }
};

TEST_P(frees_by_others, in_a_later_kernel) {
  const heap h(where(), 512 * slab_bytes);
  auto blocks = make<void*>(1024);
  auto broken = make<std::uint32_t>(1);
  for (int i = 0; i < 3; ++i) {
    run(8, 128, stamp_all{h.ref(), blocks.data()});
    EXPECT_EQ(h.report().live, 1024u);
    run(4, 256, check_all{h.ref(), blocks.data(), broken.data()});
    EXPECT_EQ(h.report().live, 0u);
  }
  EXPECT_EQ(contents(broken)[0], 0u);
}

TEST(frees_by_others_seeded, at_the_same_time) {
  testing::for_seeds(
      500,
      [] {
        expect_passed_on(device(), {2, 32}, 80, 10, 4, true);
        expect_passed_on(device(), {2, 32}, 3, 12, 4, false);
      },
      40);
}

}  // namespace
}  // namespace grosr::alloc
