// Groups reserve together: any part of a warp, however it diverged, or the threads of a block that
// want to. A group's values stay together and in order.
#include <bit>

#include "grosr/queue/ring.hpp"
#include "support/devices.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(ring_groups);

constexpr std::uint32_t warps = 4;

using testing::scramble;

// In each round every warp falls into three groups, and each pushes in a branch of its own. Values
// say which group pushed them and which of its lanes.
struct push_in_groups {
  ring_ref<std::uint32_t> ring;
  std::uint32_t rounds;
  std::uint32_t* refused;

  GROSR_DEVICE void operator()() const {
    const unsigned lane = simt::lane_id();
    const std::uint32_t warp = simt::block_id() * (simt::block_size() / 32) + simt::warp_id();
    for (std::uint32_t r = 0; r < rounds; ++r) {
      const std::uint32_t a = scramble(warp * 1000 + r), b = scramble(a) & ~a, c = ~(a | b);
      const std::uint32_t group = (warp * rounds + r) * 3;
      bool in;
      if (a >> lane & 1)
        in = ring.try_push(a, group << 8 | simt::rank_in(a, lane));
      else if (b >> lane & 1)
        in = ring.try_push(b, (group + 1) << 8 | simt::rank_in(b, lane));
      else
        in = ring.try_push(c, (group + 2) << 8 | simt::rank_in(c, lane));
      if (!in) simt::atomic_ref(*refused).fetch_add(1, simt::relaxed);
    }
  }
};

struct pop_all {
  ring_ref<std::uint32_t> ring;
  std::uint32_t count;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t n = 0; n < count; n += 32) {
      std::uint32_t value = 0;
      const bool got = ring.try_pop(simt::full_mask, value);
      out[n + simt::lane_id()] = got ? value : ~0u;
    }
  }
};

void expect_groups(device d, std::uint32_t rounds) {
  const std::uint32_t total = warps * rounds * 32;
  ring<std::uint32_t> r(d, std::bit_ceil(total));
  simt::buffer<std::uint32_t> refused(d, simt::space::device, 1);
  simt::buffer<std::uint32_t> out(d, simt::space::device, total);
  simt::run(d, {2, 64}, push_in_groups{r.ref(), rounds, refused.data()});
  simt::run(d, {1, 32}, pop_all{r.ref(), total, out.data()});
  std::uint32_t n = 0;
  refused.copy_to({&n, 1});
  EXPECT_EQ(n, 0u);
  std::vector<std::uint32_t> all(total), seen(warps * rounds * 3);
  out.copy_to(all);
  for (std::uint32_t i = 0; i < total; ++i) {
    const std::uint32_t group = all[i] >> 8, rank = all[i] & 0xff;
    ASSERT_LT(group, seen.size());
    ASSERT_EQ(rank, seen[group]) << "group " << group;
    if (rank != 0) {
      ASSERT_EQ(all[i - 1], all[i] - 1) << "group " << group << " was torn apart";
    }
    ++seen[group];
  }
  for (std::uint32_t w = 0; w < warps; ++w)
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t a = scramble(w * 1000 + i), b = scramble(a) & ~a, c = ~(a | b);
      const std::uint32_t first = (w * rounds + i) * 3;
      ASSERT_EQ(seen[first], simt::popcount(a));
      ASSERT_EQ(seen[first + 1], simt::popcount(b));
      ASSERT_EQ(seen[first + 2], simt::popcount(c));
    }
}

TEST_P(ring_groups, of_lanes_that_diverged_stay_together) { expect_groups(where(), 50); }

TEST(ring_groups_seeded, of_lanes_that_diverged_stay_together) {
  testing::for_seeds(100, [] { expect_groups(device(), 3); });
}

// Blocks of the first half push, those of the second half pop; in each round some threads of a
// block do not want to.
struct exchange_by_block {
  ring_ref<std::uint32_t> ring;
  std::uint32_t each, total;
  std::uint32_t* taken;
  std::uint32_t* seen;
  std::uint32_t* trouble;

  GROSR_DEVICE void operator()() const {
    const unsigned self = simt::thread_id();
    simt::atomic_ref<std::uint32_t> count(*taken);
    const std::uint32_t pair = simt::grid_size() / 2;
    std::uint32_t sent = 0;
    for (std::uint32_t turn = 0;; ++turn) {
      // The same in the whole block: thread 0 decides.
      bool& over = simt::block_shared<flag>().up;
      if (self == 0) over = count.load(simt::relaxed) == total;
      simt::sync_block();
      const bool stop = over;
      simt::sync_block();
      if (stop) return;
      const bool wants = (scramble(turn * 4096 + self) & 3) != 0;
      if (simt::block_id() < pair) {
        const std::uint32_t value = (simt::block_id() * simt::block_size() + self) * each + sent;
        const bool asks = wants && sent < each;
        const bool in = ring.try_push_block(asks, value);
        if (in && !asks) *trouble = 1;
        sent += in ? 1 : 0;
      } else {
        std::uint32_t value = 0;
        const bool got = ring.try_pop_block(wants, value);
        if (got && !wants) *trouble = 2;
        if (got) {
          simt::atomic_ref(seen[value]).fetch_add(1, simt::relaxed);
          count.fetch_add(1, simt::relaxed);
        }
      }
      simt::pause(turn % 8, "the other blocks");
    }
  }

 private:
  struct flag {
    bool up;
  };
};

void expect_blocks(device d, simt::shape grid, std::uint32_t capacity, std::uint32_t each) {
  const std::uint32_t total = grid.blocks / 2 * grid.threads * each;
  ring<std::uint32_t> r(d, capacity);
  simt::buffer<std::uint32_t> words(d, simt::space::device, 2);
  simt::buffer<std::uint32_t> seen(d, simt::space::device, total);
  simt::run(d, grid,
            exchange_by_block{r.ref(), each, total, words.data(), seen.data(), words.data() + 1});
  std::uint32_t word[2];
  words.copy_to(word);
  EXPECT_EQ(word[1], 0u);
  std::vector<std::uint32_t> all(total);
  seen.copy_to(all);
  for (std::uint32_t i = 0; i < total; ++i) ASSERT_EQ(all[i], 1u) << "value " << i;
}

TEST_P(ring_groups, of_blocks_exchange_everything) {
  expect_blocks(where(), {2, 64}, 2, 1);
  const auto each = static_cast<std::uint32_t>(testing::scaled(10, 2));
  for (std::uint32_t capacity : {128u, 1024u}) expect_blocks(where(), {4, 128}, capacity, each);
}

TEST_P(ring_groups, of_one_warp_blocks_exchange_everything) {
  expect_blocks(where(), {4, 32}, 8, static_cast<std::uint32_t>(testing::scaled(40, 3)));
}

TEST(ring_groups_seeded, of_blocks_exchange_everything) {
  testing::for_seeds(50, [] { expect_blocks(device(), {2, 64}, 16, 2); });
}

}  // namespace
}  // namespace grosr::queue
