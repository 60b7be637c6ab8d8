// What is in a slab_set is taken exactly once, however many insert and take at the same time, and a
// set that is left alone with something in it is never found empty.
#include "grosr/alloc/detail/slab_set.hpp"

#include "alloc/blocks.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(slab_sets);

constexpr std::uint32_t sizes[] = {1, 64, 4097};  // 4097: two middle words

// Even warps insert every slab once, odd ones take until all were taken.
struct insert_and_take {
  std::uint64_t* words;
  std::uint32_t slabs, at_once, stride;
  std::uint32_t *taken, *total;

  GROSR_DEVICE void operator()() const {
    const slab_set set(words, slabs);
    const std::uint32_t lanes = simt::grid_size() * simt::block_size() / 2;
    const std::uint32_t me = self() / 64 * 32 + simt::lane_id();
    if (self() / 32 % 2 == 0) {
      for (std::uint32_t i = me; i < slabs; i += lanes) set.insert(i * 37 % slabs);
      return;
    }
    simt::atomic_ref<std::uint32_t> all(*total);
    std::uint32_t leaf = slab_set::none;
    for (std::uint32_t turn = 0; all.load(simt::relaxed) < slabs;) {
      const slab_pick got = set.take(leaf, me * 7, at_once, stride);
      for (std::uint64_t rest = got.mask; rest != 0; rest &= rest - 1)
        add(&taken[got.first + simt::lowest_bit64(rest)]);
      all.fetch_add(simt::popcount64(got.mask), simt::relaxed);
      turn = got.mask != 0 ? 0 : turn + 1;
      if (turn != 0) simt::pause(turn, "slabs in the set");
    }
  }
};

// All lanes take a slab and put it back, again and again.
struct take_and_return {
  std::uint64_t* words;
  std::uint32_t slabs, rounds, stride;
  std::uint32_t *owners, *bad;

  GROSR_DEVICE void operator()() const {
    const slab_set set(words, slabs);
    std::uint32_t leaf = slab_set::none;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const slab_pick got = set.take(leaf, self() * 5 + i, 1 + self() % 2, stride);
      if (got.mask == 0) continue;
      for (std::uint64_t rest = got.mask; rest != 0; rest &= rest - 1) {
        simt::atomic_ref<std::uint32_t> owner(owners[got.first + simt::lowest_bit64(rest)]);
        if (owner.exchange(self() + 1, simt::relaxed) != 0) add(bad);
        if (owner.exchange(0, simt::relaxed) != self() + 1) add(bad);
      }
      set.insert_bits(got.first / 64, got.mask);
    }
  }
};

// One lane takes all there are.
struct drain {
  std::uint64_t* words;
  std::uint32_t slabs;
  std::uint32_t* taken;

  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    const slab_set set(words, slabs);
    std::uint32_t leaf = slab_set::none;
    while (true) {
      const slab_pick got = set.take(leaf, 0, 1, 0);
      if (got.mask == 0) return;
      add(&taken[got.first + simt::lowest_bit64(got.mask)]);
    }
  }
};

struct insert_all {
  std::uint64_t* words;
  std::uint32_t slabs;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = self(); i < slabs; i += simt::block_size())
      slab_set(words, slabs).insert(i);
  }
};

void expect_each_once(const simt::buffer<std::uint32_t>& taken) {
  std::vector<std::uint32_t> times(taken.size());
  taken.copy_to(times);
  for (std::size_t i = 0; i < times.size(); ++i)
    ASSERT_EQ(times[i], 1u) << "slab " << i << " of " << times.size();
}

void expect_taken_once(device d, simt::shape grid, std::uint32_t slabs, std::uint32_t at_once) {
  simt::buffer<std::uint64_t> words(d, simt::space::device, slab_set::words_of(slabs));
  simt::buffer<std::uint32_t> taken(d, simt::space::device, slabs),
      total(d, simt::space::device, 1);
  for (std::uint32_t stride : {0u, 3u}) {
    taken = {d, simt::space::device, slabs};
    total = {d, simt::space::device, 1};
    simt::run(d, grid,
              insert_and_take{words.data(), slabs, at_once, stride, taken.data(), total.data()});
    expect_each_once(taken);
  }
}

void expect_none_lost(device d, simt::shape grid, std::uint32_t slabs, std::uint32_t rounds) {
  simt::buffer<std::uint64_t> words(d, simt::space::device, slab_set::words_of(slabs));
  simt::buffer<std::uint32_t> owners(d, simt::space::device, slabs), bad(d, simt::space::device, 1);
  simt::buffer<std::uint32_t> taken(d, simt::space::device, slabs);
  simt::run(d, {1, 32}, insert_all{words.data(), slabs});
  simt::run(d, grid, take_and_return{words.data(), slabs, rounds, 2, owners.data(), bad.data()});
  simt::run(d, {1, 32}, drain{words.data(), slabs, taken.data()});
  std::uint32_t twice = 0;
  bad.copy_to({&twice, 1});
  EXPECT_EQ(twice, 0u) << "slabs were taken by two at once";
  expect_each_once(taken);
}

TEST_P(slab_sets, give_each_slab_once) {
  for (std::uint32_t slabs : sizes)
    for (std::uint32_t at_once : {1u, 5u, 64u}) expect_taken_once(where(), {4, 64}, slabs, at_once);
}

TEST_P(slab_sets, lose_none_that_come_back) {
  const auto rounds = static_cast<std::uint32_t>(testing::scaled(200, 10));
  for (std::uint32_t slabs : sizes) expect_none_lost(where(), {4, 64}, slabs, rounds);
}

TEST(slab_sets_seeded, give_each_slab_once) {
  testing::for_seeds(
      1000,
      [] {
        expect_taken_once(device(), {2, 64}, 1, 1);
        expect_taken_once(device(), {1, 64}, 64, 3);
      },
      1000);
  testing::for_seeds(
      200,
      [] {
        expect_taken_once(device(), {2, 64}, 4097, 2);
      },
      10);
}

TEST(slab_sets_seeded, lose_none_that_come_back) {
  testing::for_seeds(
      1000,
      [] {
        expect_none_lost(device(), {2, 32}, 1, 4);
        expect_none_lost(device(), {2, 32}, 130, 4);
      },
      1000);
}

}  // namespace
}  // namespace grosr::alloc
