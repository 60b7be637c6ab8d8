// What the steps of a breadth-first search see.
#pragma once

#include "grosr/graph/detail/queue.hpp"
#include "grosr/graph/detail/wave.hpp"

namespace grosr::graphs {

struct unit_cost {
  static constexpr bool may_be_stale = false, may_stand_still = false, yields_hubs = true;
  GROSR_DEVICE static constexpr bool is_finite(std::uint32_t) { return true; }
  GROSR_DEVICE std::uint32_t next(std::uint32_t distance, std::uint32_t) const {
    return distance + 1;
  }
};

/// What tells one search from another.
struct bfs_start {
  vertex source;
  std::uint32_t base;   ///< its distance
  std::uint32_t fresh;  ///< labels are to be reset; else they are farther (distance_offsets)
};

struct bfs_view : wave_view<unit_cost> {
  vertex_queue queue[2];
  std::uint32_t capacity;      ///< of each
  std::uint32_t* bits[2];      ///< levels as bitmaps
  std::uint64_t* found_below;  ///< a tally of what a bottom-up step found
  std::uint32_t* next_word;    ///< of those that are not given out beforehand, that nobody has yet
  /// A bit for each vertex without edges, which is never looked for, and for what is no vertex in
  /// the last word; null for directed graphs.
  const std::uint32_t* edgeless;
};

}  // namespace grosr::graphs
