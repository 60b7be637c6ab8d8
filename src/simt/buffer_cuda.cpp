// Memory of a GPU, and copies that no resident kernel can hold up.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simt/context_cuda.hpp"
#include "simt/doorbells_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

std::string text_of_copy(device d, std::size_t bytes) {
  return fmt::format("copy {} on {}", in_units(bytes), d.name());
}

// Memory that CUDA does not know: the driver would copy it in ways that may wait for other work.
bool is_pageable(const void* p) {
  cudaPointerAttributes a{};
  const cudaError_t e = cudaPointerGetAttributes(&a, p);
  if (e != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return a.type == cudaMemoryTypeUnregistered;
}

// Copies piece by piece through two pinned buffers in turn, so that the CPU's half of one piece
// runs beside the bus's half of the other.
void copy_to_gpu(gpu& g, char* to, const char* from, std::size_t bytes, const std::string& asked) {
  std::lock_guard lock(g.bounce_mutex);
  for (unsigned turn = 0; bytes > 0; turn ^= 1) {
    const std::size_t piece = std::min(bytes, gpu::bounce_bytes);
    check(cudaEventSynchronize(g.bounced[turn]), asked);
    std::memcpy(g.bounce[turn], from, piece);
    check(cudaMemcpyAsync(to, g.bounce[turn], piece, cudaMemcpyDefault, g.stream), asked);
    check(cudaEventRecord(g.bounced[turn], g.stream), asked);
    to += piece;
    from += piece;
    bytes -= piece;
  }
  check(cudaStreamSynchronize(g.stream), asked);
}

void copy_from_gpu(gpu& g, char* to, const char* from, std::size_t bytes,
                   const std::string& asked) {
  std::lock_guard lock(g.bounce_mutex);
  std::size_t asked_for = 0, arrived = 0;
  for (unsigned turn = 0; arrived < bytes; turn ^= 1) {
    for (; asked_for < bytes && asked_for < arrived + 2 * gpu::bounce_bytes;) {
      const unsigned half = (asked_for / gpu::bounce_bytes) & 1;
      const std::size_t piece = std::min(bytes - asked_for, gpu::bounce_bytes);
      check(cudaMemcpyAsync(g.bounce[half], from + asked_for, piece, cudaMemcpyDefault, g.stream),
            asked);
      check(cudaEventRecord(g.bounced[half], g.stream), asked);
      asked_for += piece;
    }
    const std::size_t piece = std::min(bytes - arrived, gpu::bounce_bytes);
    check(cudaEventSynchronize(g.bounced[turn]), asked);
    std::memcpy(to + arrived, g.bounce[turn], piece);
    arrived += piece;
  }
}

}  // namespace

void* allocate(device d, space s, std::size_t bytes) {
  const on_device here(d.index());
  gpu& g = gpu::at(d.index());
  void* p = nullptr;
  const cudaError_t e = s == space::device ? cudaMalloc(&p, bytes) : allocate_pinned(&p, bytes);
  if (e == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    if (s == space::pinned)
      throw error(errc::out_of_memory,
                  fmt::format("{} of pinned host memory asked for on {}: the system has no more; "
                              "ask for less, or raise the limits of the process (ulimit -v, -l)",
                              in_units(bytes), d.name()));
    std::size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    throw error(
        errc::out_of_memory,
        fmt::format("{} of device memory asked for on {}, which has {} ({} free); ask for less",
                    in_units(bytes), d.name(), in_units(total), in_units(available)));
  }
  check(e, fmt::format("allocate {} on {}", in_units(bytes), d.name()));
  if (s == space::pinned) return p;
  try {
    const std::string asked = fmt::format("clear {} on {}", in_units(bytes), d.name());
    check(cudaMemsetAsync(p, 0, bytes, g.stream), asked);
    check(cudaStreamSynchronize(g.stream), asked);
  } catch (...) {
    cudaFree(p);
    throw;
  }
  return p;
}

void release(device d, space s, void* p) noexcept {
  try {
    const on_device here(d.index());
    const hold_doorbells no_doorbells;
    if (s == space::device)
      cudaFree(p);
    else
      release_pinned(p);
  } catch (...) {  // the device is lost, and its memory with it
  }
  cudaGetLastError();
}

void copy(device d, void* to, const void* from, std::size_t bytes) {
  const bool to_pageable = is_pageable(to), from_pageable = is_pageable(from);
  if (to_pageable && from_pageable) {
    std::memmove(to, from, bytes);
    return;
  }
  const on_device here(d.index());
  gpu& g = gpu::at(d.index());
  const std::string asked = text_of_copy(d, bytes);
  if (from_pageable)
    return copy_to_gpu(g, static_cast<char*>(to), static_cast<const char*>(from), bytes, asked);
  if (to_pageable)
    return copy_from_gpu(g, static_cast<char*>(to), static_cast<const char*>(from), bytes, asked);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, g.stream), asked);
  check(cudaStreamSynchronize(g.stream), asked);
}

}  // namespace grosr::simt::cuda_backend
