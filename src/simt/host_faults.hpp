// The stack on which faults of a launch's thread are told: that of a lane may be full.
#pragma once

#include <memory>

namespace grosr::simt::host {

/// While it lives, the calling thread has an alternate signal stack, if faults are told and it has
/// none of its own.
class fault_stack {
 public:
  fault_stack();
  ~fault_stack();
  fault_stack(const fault_stack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;
};

}  // namespace grosr::simt::host
