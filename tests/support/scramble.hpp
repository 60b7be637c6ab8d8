// A hash that host and devices share, for choices that look random and are the same everywhere.
#pragma once

#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::testing {

GROSR_DEVICE constexpr std::uint32_t scramble(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

}  // namespace grosr::testing
