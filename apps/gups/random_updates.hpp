// What several ways have in common.
#pragma once

#include "coprocessor/grid.hpp"
#include "grosr/simt/buffer.hpp"
#include "updates.hpp"

namespace grosr::gups {

using coprocessor::grid_of;

/// The next of a sequence of random numbers: Marsaglia, "Xorshift RNGs", 2003, scaled.
struct random_numbers {
  std::uint64_t state;
  GROSR_DEVICE explicit random_numbers(std::uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u | 1) {
    next();
    next();
  }
  GROSR_DEVICE std::uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
  }
};

/// What is added to the element that a random number names; never zero.
GROSR_DEVICE inline std::uint64_t addend_of(std::uint64_t x, bool back) {
  return back ? 0 - (x | 1) : x | 1;
}

inline unsigned shift_of(std::uint64_t elements) {
  unsigned bits = 0;
  while (std::uint64_t{1} << bits < elements) ++bits;
  return 64 - bits;
}

/// How many elements are not zero.
std::uint64_t wrong_in(const simt::buffer<std::uint64_t>& table, const device& where);

}  // namespace grosr::gups
