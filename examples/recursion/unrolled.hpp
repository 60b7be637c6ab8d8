// Loops that are written out, so that an array they go over stays in registers.
#pragma once

#include <type_traits>
#include <utility>

#include "grosr/simt/config.hpp"

namespace grosr::recursion {

/// Calls f with a std::integral_constant for each of 0 to N - 1.
template <unsigned N, class F>
GROSR_DEVICE inline void unrolled(F&& f) {
  [&]<unsigned... I>(std::integer_sequence<unsigned, I...>) {
    (f(std::integral_constant<unsigned, I>{}), ...);
  }
  (std::make_integer_sequence<unsigned, N>{});
}

}  // namespace grosr::recursion
