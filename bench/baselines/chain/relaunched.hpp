// A chain of kernels, each of which starts the next one: a CUDA graph that launches itself again
// from the device.
#pragma once

#include <cstdint>
#include <memory>

#include "grosr/simt/device.hpp"

namespace grosr::tool {

class relaunched_chain {
 public:
  /// Null where a graph cannot be launched from the device.
  static std::unique_ptr<relaunched_chain> make(const device& d);
  ~relaunched_chain();

  /// Runs `hops` kernels, one after the other, and waits. Returns how many ran.
  std::uint32_t run(std::uint32_t hops);

 private:
  relaunched_chain() = default;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::tool
