// cuda:N: launches kernels whose types other files know.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include "simt/context_cuda.hpp"

namespace grosr::simt::cuda_backend {

void launch(const device& d, void* stream, shape grid, const void* entry, const void* kernel) {
  const on_device here(d.index());
  void* parameters[] = {const_cast<void*>(kernel)};
  check(cudaLaunchKernel(entry, dim3(grid.blocks), dim3(grid.threads), parameters, 0,
                         static_cast<cudaStream_t>(stream)),
        "launch a kernel on " + d.name());
}

kernel_fit fit(const device& d, const void* entry, unsigned threads) {
  const on_device here(d.index());
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, entry), "load a kernel on " + d.name());
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry, static_cast<int>(threads), 0),
        "ask for the occupancy of a kernel on " + d.name());
  kernel_fit f;
  f.blocks_per_sm = static_cast<unsigned>(blocks);
  f.registers = static_cast<unsigned>(attributes.numRegs);
  f.shared_bytes = static_cast<unsigned>(attributes.sharedSizeBytes);
  f.local_bytes = attributes.localSizeBytes;
  return f;
}

std::size_t reserve_stack(const device& d, std::size_t bytes) {
  const on_device here(d.index());
  std::size_t now = 0;
  check(cudaDeviceGetLimit(&now, cudaLimitStackSize), "read the stack limit");
  if (now < bytes) {
    check(cudaDeviceSetLimit(cudaLimitStackSize, bytes),
          fmt::format("reserve {} bytes of stack a lane", bytes));
    now = bytes;
  }
  int lanes = 0;
  check(cudaDeviceGetAttribute(&lanes, cudaDevAttrMaxThreadsPerMultiProcessor, d.index()),
        "ask how many threads a multiprocessor holds");
  return now * static_cast<std::size_t>(lanes) * d.properties().sms;
}

}  // namespace grosr::simt::cuda_backend
