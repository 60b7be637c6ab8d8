// Loops that are written out, so that an array they go over stays in registers.
#pragma once

#include <utility>

#include "grosr/simt/config.hpp"

namespace grosr::recursion {

template <unsigned I>
struct constant {
  static constexpr unsigned value = I;
};

/// Calls f(constant<0>{}) to f(constant<N - 1>{}).
template <unsigned N, class F>
GROSR_DEVICE inline void unrolled(F&& f) {
  [&]<unsigned... I>(std::integer_sequence<unsigned, I...>) { (f(constant<I>{}), ...); }
  (std::make_integer_sequence<unsigned, N>{});
}

}  // namespace grosr::recursion
