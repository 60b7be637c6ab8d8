// What the CUDA backend keeps for each GPU, and how it reports errors. Nothing process-wide is
// changed: the calling thread's current device is put back after every call.
#pragma once

#include <cuda_runtime.h>

#include <mutex>
#include <string>

#include "simt/backend.hpp"

namespace grosr::simt::cuda_backend {

/// Makes `index` the calling thread's device for the scope. Throws as check() does.
class on_device {
 public:
  explicit on_device(int index) : before_(make_current(index)) {}
  ~on_device() { make_current_again(before_); }
  on_device(const on_device&) = delete;

 private:
  int before_;
};

inline cudaStream_t native(const stream& s) { return static_cast<cudaStream_t>(s.native()); }

/// Throws error(device_lost) unless `e` is success: what was asked, and CUDA's own text.
void check(cudaError_t e, const std::string& asked);

/// Zeroed host memory that every GPU reaches at the same address. Thread-safe.
cudaError_t allocate_pinned(void** p, std::size_t bytes);
/// Gives it back. Waits as cudaFree() does.
void release_pinned(void* p);

/// A GPU's private stream, which waits for no other, and two pinned buffers through which
/// unpinned memory is copied. Made on the first use of the GPU, while no resident kernel can be
/// running yet; kept until the process ends.
struct gpu {
  static constexpr std::size_t bounce_bytes = std::size_t{1} << 20;

  explicit gpu(int index);
  static gpu& at(int index);

  cudaStream_t stream{};
  std::mutex bounce_mutex;
  void* bounce[2]{};
  cudaEvent_t bounced[2]{};  // the last copy from or to bounce[i] is over
};

}  // namespace grosr::simt::cuda_backend
