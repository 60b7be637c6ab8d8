// How many mappings kernels may make: Linux bounds those of a process, and without any the program
// can start no thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace grosr::sys {

/// Leaves a part of what Linux allows to the program. Any thread may call.
class map_room {
 public:
  /// `eighths`: how much of it kernels and the program may have together before calls are refused.
  explicit map_room(unsigned eighths) : eighths_(eighths) {}

  /// Whether a call may be made that makes, or divides, mappings. Most answers count down what
  /// there was at the last look at the process.
  bool take();

 private:
  const unsigned eighths_;
  std::mutex lock_;
  std::uint64_t left_ = 0;                         // calls, until the next look
  std::chrono::steady_clock::time_point again_{};  // not before, since there was no room
};

}  // namespace grosr::sys
