// A loop whose rounds are block-wide tasks: a range of tiles is divided until one is left.
#pragma once

#include "recursion/joined.hpp"

namespace grosr::recursion {

/// One round: Work says tile(number, rank), which the whole block calls.
template <class Work>
struct one_tile {
  using result = void;
  static constexpr grosr::width width = grosr::width::block;
  Work work;
  std::uint32_t number;
  GROSR_DEVICE void operator()(auto& context) const { work.tile(number, context.rank()); }
};

/// Tiles `first` to `last` of the work.
template <class Work>
struct for_each_tile {
  using result = void;
  static constexpr std::uint32_t ways = 8;
  Work work;
  std::uint32_t first, last;

  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (last - first == 1) {
      context.pass(one_tile<Work>{work, first});
      return 0;
    }
    context.join(joined{});
    const std::uint32_t step = (last - first + ways - 1) / ways;
    for (std::uint32_t at = first; at < last; at += step)
      context.fork(for_each_tile{work, at, at + step < last ? at + step : last});
    return 0;
  }
};

}  // namespace grosr::recursion
