// The malloc that a device's own compiler offers in kernels: what a heap is compared with.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>

#include "grosr/simt/launch.hpp"

namespace grosr::simt {

/// CUDA's malloc on a GPU, the C library's on the host. Null when there is no memory.
GROSR_DEVICE inline void* native_allocate(std::size_t bytes) { return malloc(bytes); }
GROSR_DEVICE inline void native_free(void* p) { free(p); }

/// Sets how much memory native_allocate() may hand out on a GPU. Before the first kernel of the
/// process that uses it. Does nothing on the host.
inline void reserve_native_heap(device d, [[maybe_unused]] std::size_t bytes) {
  if (!d.is_cuda()) return;
#if defined(__CUDACC__)
  const on_device here(d);
  check_launch(cudaDeviceSetLimit(cudaLimitMallocHeapSize, bytes),
               "reserve " + std::to_string(bytes) + " bytes for malloc in kernels");
#else
  detail::throw_not_built(d);
#endif
}

}  // namespace grosr::simt
