// What a way takes besides time: processors, threads, memory, the GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "grosr/simt/device.hpp"

namespace grosr::gesture {

/// Of this process, so far.
struct cpu_time {
  double user_s = 0, system_s = 0;
  static cpu_time now();
};

/// Of this process.
unsigned thread_count();

/// How busy a GPU is, as NVIDIA's management library tells it. A thread asks it until the end.
class gpu_meter {
 public:
  /// Null where there is no such library, or it does not know which GPU it is.
  static std::unique_ptr<gpu_meter> make(const device& d);
  ~gpu_meter();

  /// Mean percent of the time since the call before, in which a kernel ran. None: too short.
  std::optional<double> percent();

 private:
  struct state;
  explicit gpu_meter(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace grosr::gesture
