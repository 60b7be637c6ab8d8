// For CUDA calls that wait until a GPU has nothing to do: no doorbell keeps them waiting meanwhile.
#pragma once

namespace grosr::simt::cuda_backend {

/// While it lives no doorbell is armed, on any GPU.
class hold_doorbells {
 public:
  hold_doorbells();
  ~hold_doorbells();
  hold_doorbells(const hold_doorbells&) = delete;
};

}  // namespace grosr::simt::cuda_backend
