// For CUDA calls that wait until a GPU has nothing to do: no bell keeps them waiting meanwhile.
#pragma once

namespace grosr::simt::cuda_backend {

/// While it lives no bell is armed, on any GPU.
class hold_bells {
 public:
  hold_bells();
  ~hold_bells();
  hold_bells(const hold_bells&) = delete;
};

}  // namespace grosr::simt::cuda_backend
