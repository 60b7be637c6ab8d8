// Lengths of paths as the distances of labels.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "grosr/simt/atomic.hpp"

namespace grosr::graphs {

/// What edges cost in waves (wave.hpp). Distances are floats that are not negative, as their bits:
/// in the same order.
struct weighted_cost {
  static constexpr bool may_be_stale = true, may_stand_still = true, yields_hubs = false;
  const float* weight;  ///< null: every edge is 1 long

  GROSR_DEVICE std::uint32_t next(std::uint32_t distance, std::uint32_t edge) const {
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(distance) +
                                        (weight != nullptr ? weight[edge] : 1.0f));
  }
  GROSR_DEVICE static constexpr bool is_finite(std::uint32_t distance) {
    return distance < infinite;
  }
  /// A distance as a number; infinity for one that was not reached.
  static float of(std::uint32_t distance) {
    return is_finite(distance) ? std::bit_cast<float>(distance)
                               : std::numeric_limits<float>::infinity();
  }

  static constexpr std::uint32_t infinite = 0x7f80'0000;
};

}  // namespace grosr::graphs
