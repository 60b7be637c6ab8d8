// Sums over the lanes of a warp, all of which call these.
#pragma once

#include "grosr/simt/lanes.hpp"

namespace grosr::warp {

/// The sum of the values of all lanes, in each of them.
template <class T>
GROSR_DEVICE T sum_of_lanes(T value) {
  for (unsigned step = simt::warp_size / 2; step != 0; step /= 2)
    value += simt::shuffle(simt::full_mask, value, simt::lane_id() ^ step);
  return value;
}

/// The sum of the values of this lane and those before it.
template <class T>
GROSR_DEVICE T sum_up_to_lane(T value) {
  const unsigned lane = simt::lane_id();
  for (unsigned step = 1; step < simt::warp_size; step *= 2) {
    const T before = simt::shuffle(simt::full_mask, value, lane >= step ? lane - step : lane);
    if (lane >= step) value += before;
  }
  return value;
}

/// The value of the last lane.
template <class T>
GROSR_DEVICE T of_last_lane(T value) {
  return simt::shuffle(simt::full_mask, value, simt::warp_size - 1);
}

}  // namespace grosr::warp
