// Cilksort: sort four quarters; merge the first two and the last two; merge those. The tasks.
#pragma once

#include "recursion/merge_tasks.hpp"

namespace grosr::recursion {

/// Four sorted runs of `quarter` keys, the last ones perhaps shorter: two merges into the scratch
/// memory, and one back.
struct merge_pairs {
  using result = void;
  key *keys, *scratch;
  std::uint32_t count, quarter;

  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    const std::uint32_t half = 2 * quarter;
    context.join(merge{scratch, scratch + half, keys, half, count - half});
    const std::uint32_t third = count - half < quarter ? count - half : quarter;
    context.fork(merge{keys, keys + quarter, scratch, quarter, quarter});
    context.fork(
        merge{keys + half, keys + half + third, scratch + half, third, count - half - third});
    return 0;
  }
};

/// Sorts keys to where they are; the scratch memory is as large.
struct cilk_sort {
  using result = void;
  key *keys, *scratch;
  std::uint32_t count;

  GROSR_DEVICE void operator()(auto& context) const {
    if (count <= tile_keys) return context.pass(sort_tile{keys, keys, count});
    const std::uint32_t half = half_of(count);
    if (half == tile_keys) {  // two tiles
      context.join(merge{scratch, scratch + half, keys, half, count - half});
      context.fork(sort_tile{keys, scratch, half});
      context.fork(sort_tile{keys + half, scratch + half, count - half});
      return;
    }
    const std::uint32_t quarter = half_of(half);
    context.join(merge_pairs{keys, scratch, count, quarter});
    for (std::uint32_t at = 0; at < count; at += quarter) {
      const std::uint32_t left = count - at;
      context.fork(cilk_sort{keys + at, scratch + at, left < quarter ? left : quarter});
    }
  }
};

}  // namespace grosr::recursion
