// How much memory the program has, watched by a thread of the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace grosr::refine {

/// Bytes of physical memory that the process has now (its resident set).
std::uint64_t resident_bytes();

/// Looks every 2 ms, from construction on.
class footprint {
 public:
  footprint();
  ~footprint();
  footprint(const footprint&) = delete;

  /// The most there was since the last such question.
  std::uint64_t most();

 private:
  std::atomic<std::uint64_t> most_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace grosr::refine
