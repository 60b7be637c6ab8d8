// Where a merge can be divided.
#pragma once

#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::recursion {

/// How many of the first `n` keys of the merge of two sorted runs come from the first run, whose
/// keys come first where they are equal. `a(i)`, `b(i)`: the runs' keys, of which there are `na`
/// and `nb`; n is at most na + nb.
template <class A, class B>
GROSR_DEVICE inline std::uint32_t merge_path(std::uint32_t n, std::uint32_t na, std::uint32_t nb,
                                             const A& a, const B& b) {
  std::uint32_t low = n > nb ? n - nb : 0, high = n < na ? n : na;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (a(middle) <= b(n - 1 - middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace grosr::recursion
