// Kernels that do nothing but keep all multiprocessors of a device busy for a time.
#pragma once

#include <cstdint>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::cryptfs {

/// Launches them one at a time. Not thread-safe.
class busy_kernel {
 public:
  explicit busy_kernel(const device& d);

  /// A launch of so many steps a thread, which is waited for. Throws grosr::error.
  void run(std::uint64_t steps);

 private:
  const simt::shape grid_;
  simt::stream stream_;
  simt::buffer<std::uint32_t> never_;
};

/// How many steps take about so long where nothing else is on the device.
struct busy_time {
  std::uint64_t steps = 1;
  double us = 0;  ///< that they take, as measured
};
busy_time calibrate(const device& d, double us);

}  // namespace grosr::cryptfs
