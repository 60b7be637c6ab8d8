// Grids that fill a device, or a part of one.
#pragma once

#include "grosr/simt/launch.hpp"

namespace grosr::coprocessor {

/// Fills so many multiprocessors; 0: all.
inline simt::shape grid_of(const device& where, unsigned sms = 0) {
  if (!where.is_cuda()) return {2, 64};
  const auto has = where.properties();
  return {(sms == 0 ? has.sms : sms) * (has.max_threads_per_sm / 256), 256};
}

}  // namespace grosr::coprocessor
