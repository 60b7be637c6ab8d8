// The driver's functions, asked for by name: libcuda is not linked.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "simt/context_cuda.hpp"

namespace grosr::simt::cuda_backend {

/// Throws error(not_built) where the driver does not have it.
template <class Function>
void driver_function(const char* name, Function& f) {
  void* p = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t e =
      cudaGetDriverEntryPointByVersion(name, &p, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t e = cudaGetDriverEntryPoint(name, &p, cudaEnableDefault, &found);
#endif
  check(e, std::string("look up ") + name);
  if (found != cudaDriverEntryPointSuccess || p == nullptr)
    throw error(errc::not_built, std::string("look up ") + name +
                                     ": the driver does not have it; install one for CUDA 12");
  f = reinterpret_cast<Function>(p);
}

}  // namespace grosr::simt::cuda_backend
