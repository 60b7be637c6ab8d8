// What sorts by merging are made of: tasks that sort a tile, and that merge two runs of any length.
#pragma once

#include "recursion/block_sort.hpp"
#include "recursion/joined.hpp"

namespace grosr::recursion {

struct sort_tile {
  using result = void;
  static constexpr grosr::width width = grosr::width::block;
  const key* from;
  key* to;
  std::uint32_t count;
  GROSR_DEVICE void operator()(auto& context) const { block_sort(from, count, to, context.rank()); }
};

struct merge_tile {
  using result = void;
  static constexpr grosr::width width = grosr::width::block;
  const key *a, *b;
  key* to;
  std::uint32_t na, nb;
  GROSR_DEVICE void operator()(auto& context) const {
    block_merge(a, na, b, nb, to, context.rank());
  }
};

/// Half of `count` keys, in whole tiles: the larger half, but less than all.
GROSR_DEVICE constexpr std::uint32_t half_of(std::uint32_t count) {
  return ((count - 1) / tile_keys + 1 + 1) / 2 * tile_keys;
}

/// Merges two sorted runs: finds where the result's halves begin, and forks a merge for each.
struct merge {
  using result = void;
  const key *a, *b;
  key* to;
  std::uint32_t na, nb;

  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (na + nb <= tile_keys) {
      context.pass(merge_tile{a, b, to, na, nb});
      return 0;
    }
    const std::uint32_t half = half_of(na + nb);
    const std::uint32_t i = merge_path(
        half, na, nb, [&](std::uint32_t k) { return a[k]; }, [&](std::uint32_t k) { return b[k]; });
    const std::uint32_t j = half - i;
    context.join(joined{});
    context.fork(merge{a, b, to, i, j});
    context.fork(merge{a + i, b + j, to + half, na - i, nb - j});
    return 0;
  }
};

}  // namespace grosr::recursion
