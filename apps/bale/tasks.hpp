// What tasks of all programs use: the arrays of a program, sums.
#pragma once

#include "ranks/tasks.hpp"
#include "warp/sums.hpp"

namespace grosr::bale {

using ranks::shared, ranks::warp_share;

/// Arrays of a program: a struct, of which each rank has a copy in the first array of its world. So
/// a task does not have to carry the number of that array.
inline constexpr std::uint32_t words_of_arrays = 64, number_of_arrays = 0;
template <class Arrays>
GROSR_DEVICE const Arrays& arrays_of(const auto& world) {
  static_assert(sizeof(Arrays) <= words_of_arrays * 8);
  return *reinterpret_cast<const Arrays*>(world.local(ranks::numbered_words(number_of_arrays)));
}

/// A matrix whose rows the ranks have in turn. On each rank: where the nonzeros of each of its rows
/// begin, and where the last one ends; and of each nonzero its column and the number of its row on
/// this rank.
struct matrix_on_ranks {
  net::layout rows;
  net::array_ref<std::uint32_t> offsets, columns, sources;

  GROSR_DEVICE std::uint32_t rows_here(const auto& world) const {
    return static_cast<std::uint32_t>(rows.size_of(world.rank()));
  }
  GROSR_DEVICE std::uint32_t nonzeros_here(const auto& world) const {
    return world.local(offsets)[rows_here(world)];
  }
};

/// The number of a row among those of all ranks.
GROSR_DEVICE std::uint32_t number_of(const auto& world, const matrix_on_ranks& m,
                                     std::uint32_t row) {
  return static_cast<std::uint32_t>(m.rows.index_of({world.rank(), row}));
}

/// A piece of a rank's list, whose elements a warp adds up.
struct piece {
  std::uint32_t number, pieces;

  /// Calls visit(i, before) with the sum of the elements before i; `sum` is that of all pieces
  /// before this one. Gives the sum with this piece.
  GROSR_DEVICE std::uint32_t add_up(std::uint64_t count, std::uint32_t sum, const auto& element,
                                    const auto& visit) const {
    const std::uint64_t begin = count * number / pieces, end = count * (number + 1) / pieces;
    GROSR_NO_UNROLL
    for (std::uint64_t at = begin; at < end; at += simt::warp_size) {
      const std::uint64_t i = at + simt::lane_id();
      const std::uint32_t value = i < end ? element(i) : 0, up_to = warp::sum_up_to_lane(value);
      if (i < end) visit(i, sum + up_to - value);
      simt::sync_warp();
      sum += warp::of_last_lane(up_to);
    }
    return sum;
  }
};

}  // namespace grosr::bale
