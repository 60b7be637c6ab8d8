// One frame by itself: its copies and its kernels, one at a time, and whether they are right.
#pragma once

#include <string>

#include "ways.hpp"

namespace grosr::gesture {

struct frame_alone {
  double copies_us = 0, kernels_us = 0;  ///< what the device takes for them, on its stream's clock
  std::string wrong;                     ///< where the device's points are not those of plain loops

  double us() const { return copies_us + kernels_us; }
};
/// Medians. Compares all filtered points of a frame, and its summary.
frame_alone measure_alone(const setup& s);

}  // namespace grosr::gesture
