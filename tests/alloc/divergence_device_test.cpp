// Lanes may call from anywhere: different branches, loops of different length, few of a warp, and
// with different sizes at the same time.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(diverged_lanes);

struct in_branches {
  heap_ref heap;
  std::uint32_t rounds;
  std::uint32_t *broken, *none;

  GROSR_DEVICE void check(void* p, std::size_t bytes, std::uint32_t id) const {
    if (p == nullptr) return add(none);
    if (!stamped(p, bytes, id)) add(broken);
  }

  GROSR_DEVICE void* get(std::size_t bytes, std::uint32_t id) const {
    void* p = heap.allocate(bytes);
    if (p != nullptr) stamp(p, bytes, id);
    return p;
  }

  GROSR_DEVICE void operator()() const {
    const unsigned lane = simt::lane_id();
    for (std::uint32_t r = 0; r < rounds; ++r) {
      const std::uint32_t random = testing::scramble(self() * 4099 + r), id = random;
      void* p = nullptr;
      std::size_t bytes = 24;
      // Every way the same class, from another place each.
      if (random % 3 == 0) {
        p = get(bytes, id);
      } else if (random % 3 == 1) {
        if (lane % 2 == 0)
          p = get(bytes, id);
        else
          p = get(bytes = 8 + lane, id);
      } else {
        switch (lane % 4) {
          case 0:
            p = get(bytes = 1, id);
            break;
          case 1:
            p = get(bytes = 5000, id);
            break;
          case 2:
            p = get(bytes = 70000, id);
            break;
          default:
            p = get(bytes = 30000, id);
            break;
        }
      }
      check(p, bytes, id);
      // One lane of the warp, inside the lifetime of all others' blocks.
      if (lane == r % 32) {
        void* q = get(333, id + 1);
        check(q, 333, id + 1);
        heap.deallocate(q);
      }
      // Loops of different length; some free in the loop, some after.
      void* held[4] = {};
      for (std::uint32_t i = 0; i < random % 5; ++i) {
        held[i] = get(40 + 100 * i, id + i);
        check(held[i], 40 + 100 * i, id + i);
        if (lane % 2 == 0) {
          heap.deallocate(held[i]);
          held[i] = nullptr;
        }
      }
      check(p, bytes, id);
      for (void* one : held) heap.deallocate(one);
      heap.deallocate(p);
      if (lane > 28 && r == rounds / 2) return;  // the rest goes on without
    }
  }
};

void expect_served(device d, simt::shape grid, std::size_t slabs, std::uint32_t rounds) {
  const heap h(d, slabs * slab_bytes);
  simt::buffer<std::uint32_t> counts(d, simt::space::device, 2);
  simt::run(d, grid, in_branches{h.ref(), rounds, counts.data(), counts.data() + 1});
  std::vector<std::uint32_t> n(2);
  counts.copy_to(n);
  EXPECT_EQ(n[0], 0u) << "blocks that somebody else wrote to";
  EXPECT_EQ(n[1], 0u) << "lanes were refused";
  const heap_report r = h.report();
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.foreign_frees + r.double_frees, 0u);
}

TEST_P(diverged_lanes, in_branches_and_loops) {
  expect_served(where(), {4, 64}, 1500, static_cast<std::uint32_t>(testing::scaled(50, 6)));
}

// Only the lanes of `mask` call at all.
struct few {
  heap_ref heap;
  std::uint32_t mask;
  std::uint32_t* served;
  GROSR_DEVICE void operator()() const {
    if ((mask >> simt::lane_id() & 1) == 0) return;
    for (std::uint32_t bytes : {16u, 100u, 4096u, 10000u, 65536u}) {
      void* p = heap.allocate(bytes);
      if (p != nullptr) add(served);
      heap.deallocate(p);
    }
  }
};

TEST_P(diverged_lanes, of_any_mask) {
  const heap h(where(), 200 * slab_bytes);
  for (std::uint32_t mask : {1u, 0x80000000u, 0x00010001u, 0x55555555u, 0xfffffffeu, 0x7fffffffu}) {
    auto served = make<std::uint32_t>(1);
    run(2, 32, few{h.ref(), mask, served.data()});
    EXPECT_EQ(contents(served)[0], 10 * simt::popcount(mask)) << mask;
  }
  EXPECT_EQ(h.report().live, 0u);
}

TEST(diverged_lanes_seeded, in_branches_and_loops) {
  testing::for_seeds(
      300,
      [] {
        expect_served(device(), {2, 32}, 400, 3);
      },
      40);
}

}  // namespace
}  // namespace grosr::alloc
