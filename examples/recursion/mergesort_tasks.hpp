// Mergesort: sort two halves, merge them. The tasks.
#pragma once

#include "recursion/merge_tasks.hpp"

namespace grosr::recursion {

/// Sorts keys, to where they are or to the same place of the scratch memory, which is as large.
struct merge_sort {
  using result = void;
  key *keys, *scratch;
  std::uint32_t count;
  bool to_scratch;

  GROSR_DEVICE void operator()(auto& context) const {
    key *from = keys, *to = scratch;
    if (count <= tile_keys)
      return context.pass(sort_tile{keys, to_scratch ? scratch : keys, count});
    if (!to_scratch) {
      from = scratch;
      to = keys;
    }
    const std::uint32_t half = half_of(count);
    context.join(merge{from, from + half, to, half, count - half});
    context.fork(merge_sort{keys, scratch, half, !to_scratch});
    context.fork(merge_sort{keys + half, scratch + half, count - half, !to_scratch});
  }
};

}  // namespace grosr::recursion
