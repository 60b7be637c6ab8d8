// Elements through one channel, without a scheduler: what reserving, making ready, taking and
// freeing cost.
#pragma once

#include <cstdint>

#include "cases/reserve_by.hpp"
#include "grosr/queue/batch_buffer.hpp"

namespace grosr::channels {

struct exchange_result {
  double us = 0;  ///< the kernel
  std::uint64_t served = 0, left = 0;
  bool right = false;  ///< each element was served once and whole
};

/// Every warp pushes `steps` times an element of 32 bytes a lane, and serves the batches that it
/// made full. Throws grosr::error.
exchange_result exchange(const device& d, unsigned blocks, std::uint32_t steps,
                         std::uint32_t capacity, element_layout l, reserve_by by);

}  // namespace grosr::channels
