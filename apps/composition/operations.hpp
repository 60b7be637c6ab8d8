// The operations on a device: the same kernels for all ways.
#pragma once

#include "grosr/simt/launch.hpp"
#include "work.hpp"

namespace grosr::composition {

/// Queues one operation on matrices in memory of the stream's device.
void launch_operation(simt::stream& s, operation what, std::uint32_t side, const float* left,
                      const float* right, float* result);

}  // namespace grosr::composition
