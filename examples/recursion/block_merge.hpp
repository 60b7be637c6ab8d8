// A tile of keys in block-shared memory, and how a block merges in it: each thread finds where its
// part of the result begins, and merges that into registers.
#pragma once

#include "grosr/run/task.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "recursion/merge_path.hpp"
#include "recursion/unrolled.hpp"

namespace grosr::recursion {

using key = std::uint32_t;

/// Keys that a thread holds, and a block.
inline constexpr unsigned thread_keys = 32;
inline constexpr unsigned tile_keys = run::block_threads * thread_keys;

/// One word in 33 is not used, so that threads which each go through their own keys are in
/// different banks. Where there are fewer keys than fit, the largest there is follows.
struct tile {
  static constexpr key last = ~key{0};
  key word[tile_keys + tile_keys / thread_keys + 1];
  GROSR_DEVICE key& operator[](std::uint32_t i) { return word[i + i / thread_keys]; }
};

/// A thread's keys, in registers.
struct own_keys {
  key k[thread_keys];
  GROSR_DEVICE void to_tile(tile& t, unsigned rank) const {
    unrolled<thread_keys>([&](auto i) { t[rank * thread_keys + i.value] = k[i.value]; });
  }
  GROSR_DEVICE void from_tile(tile& t, unsigned rank) {
    unrolled<thread_keys>([&](auto i) { k[i.value] = t[rank * thread_keys + i.value]; });
  }
};

/// Whole block: brings `count` keys into the tile, key(i) each.
GROSR_DEVICE inline void load(tile& t, std::uint32_t count, unsigned rank, const auto& from) {
  own_keys own;  // all are on their way before the first is used
  unrolled<thread_keys>([&](auto i) {
    const std::uint32_t at = i.value * run::block_threads + rank;
    own.k[i.value] = at < count ? from(at) : tile::last;
  });
  unrolled<thread_keys>([&](auto i) { t[i.value * run::block_threads + rank] = own.k[i.value]; });
  simt::sync_block();
}

/// Whole block: takes `count` keys out of the tile.
GROSR_DEVICE inline void store(tile& t, std::uint32_t count, unsigned rank, key* to) {
  simt::sync_block();
  for (std::uint32_t i = rank; i < count; i += run::block_threads) to[i] = t[i];
}

/// Whole block: merges neighbours. The tile holds sorted runs, of `na` and then `nb` keys, again
/// and again; the last run ends where the tile does.
GROSR_DEVICE inline void merge_in_tile(tile& t, std::uint32_t na, std::uint32_t nb, unsigned rank) {
  const std::uint32_t at = rank * thread_keys;
  const std::uint32_t base = at / (na + nb) * (na + nb);
  std::uint32_t a = merge_path(
      at - base, na, nb, [&](std::uint32_t i) { return t[base + i]; },
      [&](std::uint32_t i) { return t[base + na + i]; });
  std::uint32_t b = base + na + (at - base - a);
  a += base;
  const std::uint32_t a_end = base + na, b_end = a_end + nb;
  key x = t[a], y = t[b];
  own_keys own;
  unrolled<thread_keys>([&](auto i) {
    const bool from_a = b >= b_end || (a < a_end && x <= y);
    own.k[i.value] = from_a ? x : y;
    if (from_a)
      x = t[++a];
    else
      y = t[++b];
  });
  simt::sync_block();
  own.to_tile(t, rank);
  simt::sync_block();
}

/// Whole block: merges two sorted runs of together at most tile_keys. Not inlined, as block_sort():
/// it needs all registers.
GROSR_DEVICE GROSR_NOINLINE inline void block_merge(const key* a, std::uint32_t na, const key* b,
                                                    std::uint32_t nb, key* to, unsigned rank) {
  tile& t = simt::block_shared<tile>();
  load(t, na + nb, rank, [&](std::uint32_t i) { return *(i < na ? a + i : b + (i - na)); });
  merge_in_tile(t, na, tile_keys - na, rank);
  store(t, na + nb, rank, to);
}

}  // namespace grosr::recursion
