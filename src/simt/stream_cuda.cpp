#include <cuda_runtime.h>
#include <fmt/format.h>

#include "simt/context_cuda.hpp"
#include "simt/doorbells_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

class cuda_stream final : public stream_backend {
 public:
  explicit cuda_stream(device d) : device_(d) {
    const on_device here(d.index());
    gpu::at(d.index());  // whatever copies will need, before a kernel can be resident
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
          "make a stream on " + d.name());
  }

  ~cuda_stream() override {
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  }

  bool done() override {
    const cudaError_t e = cudaStreamQuery(stream_);
    if (e == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(e, "run the kernels launched on " + device_.name());
    return true;
  }

  void wait() override {
    check(cudaStreamSynchronize(stream_), "run the kernels launched on " + device_.name());
  }

  void* native() override { return stream_; }

 private:
  device device_;
  cudaStream_t stream_{};
};

}  // namespace

std::unique_ptr<stream_backend> make_stream(device d) { return std::make_unique<cuda_stream>(d); }

void wait_for_kernels(device d) noexcept {
  try {
    const on_device here(d.index());
    const hold_doorbells no_doorbells;
    cudaDeviceSynchronize();
  } catch (...) {  // the device is lost, and runs nothing
  }
  cudaGetLastError();
}

}  // namespace grosr::simt::cuda_backend
