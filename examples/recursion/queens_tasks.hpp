// N queens: a task places a queen in each of its columns of one row, and forks what is below.
#pragma once

#include "grosr/run/runtime.hpp"

namespace grosr::recursion {

/// Queens placed so far, as one row sees them: bit i is its i-th column.
struct queens_row {
  std::uint32_t columns, left, right;  ///< taken: straight above, and along both diagonals

  GROSR_DEVICE queens_row below(std::uint32_t queen) const {
    return {columns | queen, (left | queen) << 1, (right | queen) >> 1};
  }
  GROSR_DEVICE std::uint32_t free(std::uint32_t n) const {
    return simt::first_bits(n) & ~(columns | left | right);
  }
};

/// Solutions for the `rows` rows from this one down, at most 12; without a stack: only the columns
/// of the queens are kept, 5 bits each, and rows are computed backwards.
GROSR_DEVICE inline std::uint64_t count_queens(const queens_row& top, std::uint32_t n,
                                               std::uint32_t rows) {
  if (rows == 0) return 1;
  const std::uint32_t board = simt::first_bits(n);
  std::uint32_t columns = top.columns, tried = 0, depth = 0;
  std::uint64_t left = top.left, right = std::uint64_t{top.right} << 32;  // nothing shifts out
  std::uint64_t queens = 0, count = 0;
  GROSR_NO_UNROLL
  for (;;) {
    std::uint32_t free = board & ~tried & ~columns & ~static_cast<std::uint32_t>(left) &
                         ~static_cast<std::uint32_t>(right >> 32);
    if (depth + 1 == rows) {
      count += simt::popcount(free);
      free = 0;
    }
    if (free != 0) {
      const std::uint32_t at = simt::lowest_bit(free), queen = 1u << at;
      queens = queens << 5 | at;
      columns |= queen;
      left = (left | queen) << 1;
      right = (right | std::uint64_t{queen} << 32) >> 1;
      tried = 0;
      ++depth;
    } else {
      if (depth == 0) return count;
      --depth;
      const std::uint32_t queen = 1u << (queens & 31);
      queens >>= 5;
      columns ^= queen;
      left = left >> 1 ^ queen;
      right = right << 1 ^ std::uint64_t{queen} << 32;
      tried = queen | (queen - 1);
    }
  }
}

inline constexpr unsigned queens_branches = 7;  ///< as many counts as a continuation holds

struct queens_sum {
  using result = std::uint64_t;
  std::uint64_t count[queens_branches];
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    std::uint64_t all = 0;
    for (std::uint64_t c : count) all += c;
    context.give(all);
    return 0;
  }
};

struct queens_place {
  using result = std::uint64_t;
  queens_row row;
  std::uint32_t candidates;     ///< columns of this row to place a queen in; not 0
  std::uint16_t n, rows, base;  ///< rows from this one down; the last `base` are counted in place

  GROSR_DEVICE void operator()(auto& context) const {
    if (rows <= base) return context.give(count_queens(row, n, rows));
    auto& next = context.join(queens_sum{});
    const unsigned all = simt::popcount(candidates);
    std::uint32_t left = candidates;
    for (unsigned i = 0; left != 0;) {
      queens_place below = *this;
      if (all > queens_branches) {  // more than there are slots: by halves
        below.candidates = i == 0 ? simt::lowest_bits(left, all / 2) : left;
        left &= ~below.candidates;
      } else {
        const std::uint32_t queen = left & ~(left - 1);
        left ^= queen;
        below.row = row.below(queen);
        below.candidates = below.row.free(n);
        --below.rows;
        if (below.candidates == 0 && rows > 1) continue;  // no queen fits below
      }
      context.fork(below, &next.count[i++]);
    }
  }
};

}  // namespace grosr::recursion
