// Runs of slabs are taken by many lanes at once, without a lock where they are short: none is
// refused while there is room, none overlaps another, and no slab is lost.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(slab_runs);

// Bit by bit, over both words.
run_place highest_run_by_hand(std::uint64_t word, std::uint64_t above, unsigned n) {
  const auto is_free = [&](unsigned i) { return ((i < 64 ? word : above) >> i % 64 & 1) != 0; };
  for (unsigned first = 64; first-- > 0;) {
    bool all = true;
    for (unsigned i = first; i < first + n && all; ++i) all = is_free(i);
    // A run that begins at a slab of a longer free stretch is not its highest, unless it ends in
    // this word, or nothing of the stretch is left above it.
    if (!all || (first + n > 64 && first + n < 128 && is_free(first + n))) continue;
    const unsigned upper = first + n > 64 ? first + n - 64 : 0;
    std::uint64_t mask = 0;
    for (unsigned i = first; i < first + n - upper; ++i) mask |= std::uint64_t{1} << i;
    return {mask, upper};
  }
  return {};
}

TEST(runs_in_words, are_the_highest_ones) {
  std::mt19937_64 random(1);
  const auto word = [&](unsigned density) {
    std::uint64_t w = random();
    for (unsigned i = 0; i < density % 4; ++i) w |= random();  // mostly ones
    for (unsigned i = 0; i < density / 4; ++i) w &= random();  // mostly zeros
    return random() % 8 == 0 ? ~std::uint64_t{0} << random() % 64 : w;
  };
  for (unsigned i = 0; i < 40'000; ++i) {
    const std::uint64_t w = word(i % 8), above = word(i / 8 % 8);
    const unsigned n = 2 + static_cast<unsigned>(random() % (i % 2 == 0 ? 6 : 63));
    if (bits::trailing_ones(above) >= n) continue;  // looked at before
    const run_place got = highest_run(w, above, n), wanted = highest_run_by_hand(w, above, n);
    ASSERT_EQ(got.mask, wanted.mask) << std::hex << w << " below " << above << ", run of " << n;
    ASSERT_EQ(got.above, wanted.above) << std::hex << w << " below " << above << ", run of " << n;
  }
}

// Runs of every length, then single slabs, until there is none; then all are freed in any order.
// The longest free run is the whole heap again, and it holds as much as before.
void expect_the_last_slab_twice(device d, simt::shape grid, std::size_t slabs) {
  const heap h(d, slabs * slab_bytes);
  for (std::uint32_t round = 0; round < 2; ++round) {
    hoard blocks(h);
    std::size_t used = 0;
    for (std::size_t n = 2 + round; n < slabs && used + n <= slabs; n = n < 20 ? n + 1 : n + 23)
      used += n * blocks.fill(grid, n * slab_bytes, 1);
    for (std::size_t n : {7u, 2u}) used += n * blocks.fill(grid, n * slab_bytes);
    EXPECT_EQ(h.report().largest_free <= slab_bytes, true) << "a run of 2 was refused";
    used += blocks.fill(grid, slab_bytes);
    EXPECT_EQ(used, slabs);
    EXPECT_EQ(h.report().free_bytes, 0u);
    EXPECT_EQ(h.report().live, blocks.size());
    blocks.shuffle(round + 3);
    blocks.free(grid, blocks.size() / 2);
    blocks.free({1, 32});
    const heap_report r = h.report();
    EXPECT_EQ(r.live, 0u);
    EXPECT_EQ(r.double_frees + r.foreign_frees, 0u);
    EXPECT_EQ(blocks.fill({1, 32}, h.bytes(), 1), 1u) << "slabs were lost";
    blocks.free({1, 32});
  }
}

TEST_P(slab_runs, of_all_lengths_fill_the_heap_twice) {
  for (std::size_t slabs : {64u, 130u, 1000u, 2500u}) {
    expect_the_last_slab_twice(where(), {1, 32}, slabs);
    expect_the_last_slab_twice(where(), {4, 64}, slabs);
  }
}

// As many lanes as there is room for runs, each of which frees its own before it asks again: no
// lane may be refused, for at every moment there is room for it.
struct one_each {
  heap_ref heap;
  std::size_t bytes;
  std::uint32_t lanes, rounds;
  std::uint32_t *refused, *broken;

  GROSR_DEVICE void operator()() const {
    if (self() >= lanes) return;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      void* p = heap.allocate(bytes);
      if (p == nullptr) {
        add(refused);
        continue;
      }
      auto* w = static_cast<volatile std::uint32_t*>(p);
      const std::size_t last = bytes / 4 - 1;
      w[0] = self() * rounds + i;
      w[last] = self() * rounds + i;
      if (testing::scramble(self() + i) % 4 == 0) simt::pause(1, "somebody else's turn");
      if (w[0] != self() * rounds + i || w[last] != self() * rounds + i) add(broken);
      heap.deallocate(p);
    }
  }
};

void expect_none_refused(device d, std::size_t slabs, std::uint32_t length, std::uint32_t rounds) {
  const heap h(d, slabs * slab_bytes);
  const auto lanes = static_cast<std::uint32_t>(slabs / length);
  simt::buffer<std::uint32_t> counts(d, simt::space::device, 2);
  std::uint32_t* c = counts.data();
  simt::run(d, {(lanes + 31) / 32, 32},
            one_each{h.ref(), std::size_t{length} * slab_bytes, lanes, rounds, c, c + 1});
  std::vector<std::uint32_t> n(2);
  counts.copy_to(n);
  EXPECT_EQ(n[0], 0u) << "refused though there is room, of " << lanes * rounds << " runs of "
                      << length << " in " << slabs << " slabs";
  EXPECT_EQ(n[1], 0u) << "two had the same run";
  EXPECT_EQ(h.report().failures, 0u);
  EXPECT_EQ(h.report().largest_free, h.bytes());
}

TEST_P(slab_runs, are_never_refused_while_there_is_room) {
  const auto rounds = static_cast<std::uint32_t>(testing::scaled(200, 10));
  expect_none_refused(where(), 130, 5, rounds);
  expect_none_refused(where(), 192, 3, rounds);
  expect_none_refused(where(), 200, 40, rounds);
  expect_none_refused(where(), 256, 64, rounds);
  expect_none_refused(where(), 300, 75, rounds);
}

// With more lanes than there is room for: some are refused, and then nothing is missing.
struct scramble_for_runs {
  heap_ref heap;
  std::uint32_t rounds, most;
  std::uint32_t *served, *broken;

  GROSR_DEVICE void operator()() const {
    void* held[2] = {};
    std::size_t words[2] = {};
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t random = testing::scramble(self() * 4099 + i), k = i % 2;
      if (held[k] != nullptr) {
        auto* w = static_cast<volatile std::uint32_t*>(held[k]);
        for (std::size_t at = 0; at < words[k]; at += slab_bytes / 4)
          if (w[at] != self() + 1) add(broken);
        heap.deallocate(held[k]);
      }
      const std::size_t bytes =
          random % 5 == 0 ? 1 + random % 4000 : std::size_t{1 + random % most} * slab_bytes;
      held[k] = heap.allocate(bytes);
      words[k] = bytes / 4;
      if (held[k] == nullptr) continue;
      add(served);
      auto* w = static_cast<volatile std::uint32_t*>(held[k]);
      for (std::size_t at = 0; at < words[k]; at += slab_bytes / 4) w[at] = self() + 1;
    }
    for (void* p : held) heap.deallocate(p);
  }
};

void expect_whole_after_scramble(device d, simt::shape grid, std::size_t slabs, std::uint32_t most,
                                 std::uint32_t rounds) {
  const heap h(d, slabs * slab_bytes);
  simt::buffer<std::uint32_t> counts(d, simt::space::device, 2);
  simt::run(d, grid, scramble_for_runs{h.ref(), rounds, most, counts.data(), counts.data() + 1});
  std::vector<std::uint32_t> n(2);
  counts.copy_to(n);
  EXPECT_EQ(n[1], 0u) << "two had the same slab";
  const heap_report r = h.report();
  EXPECT_EQ(n[0] + r.failures, grid.blocks * grid.threads * rounds);
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.double_frees + r.foreign_frees, 0u);
  hoard all(h);
  EXPECT_EQ(all.fill({1, 32}, h.bytes(), 1), 1u) << "slabs were lost";
}

TEST_P(slab_runs, are_all_there_after_more_demand_than_memory) {
  const auto rounds = static_cast<std::uint32_t>(testing::scaled(60, 6));
  expect_whole_after_scramble(where(), {4, 64}, 20, 6, rounds);
  expect_whole_after_scramble(where(), {4, 64}, 200, 90, rounds);
  expect_whole_after_scramble(where(), {8, 128}, 2100, 16, rounds);
}

// What is the longest free run can be had, and nothing longer.
void expect_exact_refusals(device d, std::uint32_t seed, simt::shape grid) {
  const heap h(d, 300 * slab_bytes);
  hoard blocks(h);
  for (std::size_t n : {3u, 11u, 2u, 64u, 5u}) blocks.fill(grid, n * slab_bytes, 1);
  blocks.fill({1, 32}, 2 * slab_bytes);
  blocks.shuffle(seed);
  blocks.free(grid, blocks.size() / 2);
  const std::size_t longest = h.report().largest_free;
  if (longest <= slab_bytes) return;
  hoard more(h);
  EXPECT_EQ(more.fill(grid, longest + 1), 0u);
  EXPECT_GE(more.fill(grid, longest), 1u);
  EXPECT_LT(h.report().largest_free, longest);
  more.free({1, 32});
  EXPECT_EQ(h.report().largest_free, longest);
}

TEST_P(slab_runs, are_refused_only_if_none_is_as_long) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    expect_exact_refusals(where(), seed, {1, 32});
    expect_exact_refusals(where(), seed, {2, 64});
  }
}

// A refusal holds only as long as nothing is freed: one lane frees, then others ask, who were
// refused before; and slabs of an active slab that is empty count too.
struct ask_before_and_after {
  heap_ref heap;
  std::size_t bytes;
  void* given;
  std::uint32_t* told;
  std::uint32_t *early, *late;

  GROSR_DEVICE void operator()() const {
    simt::atomic_ref<std::uint32_t> word(*told);
    if (simt::warp_id() == 0) {
      if (simt::lane_id() != 0) return;
      for (unsigned turn = 0; word.load(simt::acquire) < 3; ++turn)
        simt::pause(turn, "lanes that are refused");
      heap.deallocate(given);
      word.fetch_add(1u << 16, simt::acq_rel);
      return;
    }
    if (simt::lane_id() != 0) return;
    for (std::uint32_t i = 0; i < 4; ++i) {
      void* p = heap.allocate(bytes);
      if (p != nullptr) {
        add(early);  // the free may be under way
        heap.deallocate(p);
      }
      if (i == 1) word.fetch_add(1, simt::acq_rel);
    }
    for (unsigned turn = 0; word.load(simt::acquire) < 1u << 16; ++turn)
      simt::pause(turn, "a free");
    void* p = heap.allocate(bytes);
    if (p == nullptr) return;
    add(late);
    word.fetch_add(1u << 16, simt::acq_rel);
  }
};

void expect_had_after_free(device d, std::size_t slabs, std::size_t freed, std::size_t asked) {
  const heap h(d, slabs * slab_bytes);
  hoard one(h), rest(h);
  ASSERT_EQ(one.fill({1, 32}, freed * slab_bytes, 1), slabs / freed < 32 ? slabs / freed : 32);
  for (std::size_t n : {2u, 1u}) rest.fill({1, 32}, n * slab_bytes);
  simt::buffer<std::uint32_t> counts(d, simt::space::device, 3);
  std::uint32_t* c = counts.data();
  simt::run(d, {1, 128},
            ask_before_and_after{h.ref(), asked * slab_bytes, one[0], c, c + 1, c + 2});
  std::vector<std::uint32_t> n(3);
  counts.copy_to(n);
  const std::uint32_t room = static_cast<std::uint32_t>(freed / asked);
  EXPECT_EQ(n[2], room < 3 ? room : 3)
      << "runs of " << asked << " after " << freed << " were freed";
}

TEST_P(slab_runs, can_be_had_as_soon_as_a_free_returned) {
  expect_had_after_free(where(), 40, 10, 10);
  expect_had_after_free(where(), 130, 65, 65);
  expect_had_after_free(where(), 130, 65, 20);
  expect_had_after_free(where(), 70, 7, 2);
}

// Many more lanes than there is room for ask at once, most of them in vain.
TEST_P(slab_runs, are_had_by_as_many_lanes_as_there_is_room_for) {
  for (std::size_t n : {17u, 33u, 64u}) {
    const heap h(where(), 32 * n * slab_bytes);
    for (std::uint32_t round = 0; round < 2; ++round) {
      hoard blocks(h);
      EXPECT_EQ(blocks.fill({16, 128}, n * slab_bytes, 1), 32u) << "runs of " << n;
      EXPECT_EQ(h.report().free_bytes, 0u);
      blocks.shuffle(round);
      blocks.free({1, 32});
    }
  }
}

TEST(slab_runs_seeded, are_never_refused_while_there_is_room) {
  testing::for_seeds(
      1000,
      [] {
        expect_none_refused(device(), 66, 6, 3);
        expect_none_refused(device(), 132, 33, 3);
        expect_none_refused(device(), 140, 70, 3);
      },
      1000);
}

TEST(slab_runs_seeded, are_all_there_after_more_demand_than_memory) {
  testing::for_seeds(
      1000,
      [] {
        expect_whole_after_scramble(device(), {2, 32}, 9, 4, 3);
        expect_whole_after_scramble(device(), {1, 64}, 130, 80, 3);
      },
      1000);
  testing::for_seeds(
      200,
      [] {
        expect_whole_after_scramble(device(), {2, 64}, 2100, 16, 4);
      },
      50);
}

TEST(slab_runs_seeded, can_be_had_as_soon_as_a_free_returned) {
  testing::for_seeds(
      1000,
      [] {
        expect_had_after_free(device(), 68, 8, 4);
        expect_had_after_free(device(), 140, 70, 70);
      },
      1000);
}

TEST(slab_runs_seeded, of_all_lengths_fill_the_heap_twice) {
  testing::for_seeds(
      1000,
      [] {
        expect_the_last_slab_twice(device(), {2, 32}, 130);
      },
      200);
}

}  // namespace
}  // namespace grosr::alloc
