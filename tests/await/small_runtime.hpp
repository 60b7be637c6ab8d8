// A runtime of few workers: calls that hold one would soon hold all.
#pragma once

#include "grosr/run/options.hpp"
#include "grosr/simt/device.hpp"

namespace grosr::testing {

inline runtime_options small(const device& d) {
  runtime_options o;
  if (d.is_cuda()) o.sms = 2;
  o.blocks_per_sm = 1;
  return o;
}

}  // namespace grosr::testing
