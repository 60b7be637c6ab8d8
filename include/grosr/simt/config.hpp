// What tells the two backends apart. Only simt/ may use the macros marked (simt).
#pragma once

#include <cstddef>
#include <cstdint>

// Marks a function that runs on a device: on a GPU when compiled by nvcc, in a host lane otherwise.
#if defined(__CUDACC__)
#define GROSR_DEVICE __host__ __device__
#define GROSR_NOINLINE __noinline__
#else
#define GROSR_DEVICE
#define GROSR_NOINLINE __attribute__((noinline))
#endif

// Before a loop in a kernel that is not hot: keeps its body single, for the instruction cache.
#if defined(__CUDA_ARCH__)
#define GROSR_NO_UNROLL _Pragma("unroll 1")
#else
#define GROSR_NO_UNROLL
#endif

// (simt) True in code that is being compiled for a GPU.
#if defined(__CUDA_ARCH__)
#define GROSR_ON_GPU 1
#else
#define GROSR_ON_GPU 0
#endif

namespace grosr::simt {

/// True in code that runs on a GPU.
GROSR_DEVICE constexpr bool on_gpu() { return GROSR_ON_GPU != 0; }

/// Lanes in a warp, on every backend.
inline constexpr unsigned warp_size = 32;

/// Mask of a whole warp.
inline constexpr std::uint32_t full_mask = 0xffffffffu;

/// A place in the source, so that a wait or a collective can say where it stands.
struct site {
  const char* file;
  unsigned line;

  GROSR_DEVICE static constexpr site here(const char* file = __builtin_FILE(),
                                          unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

#if defined(__CUDACC__)
namespace detail {
template <class F, class... Arguments>
__device__ decltype(auto) call_on_gpu(F&& f, Arguments&&... arguments) {
  return f(arguments...);
}
}  // namespace detail
#endif

/// f(arguments...), which does not compile for a GPU when f lacks GROSR_DEVICE. A plain call from a
/// function that runs on both sides would, to code that does nothing.
template <class F, class... Arguments>
GROSR_DEVICE inline decltype(auto) call(F&& f, Arguments&&... arguments) {
#if GROSR_ON_GPU
  return detail::call_on_gpu(f, arguments...);
#else
  return f(arguments...);
#endif
}

/// The same pointer, but the compiler does not know that: a call through it is not a cycle that
/// keeps the caller from being inlined.
template <class T>
GROSR_DEVICE inline T* opaque(T* p) {
#if GROSR_ON_GPU
  asm volatile("" : "+l"(p));
#else
  asm volatile("" : "+r"(p));
#endif
  return p;
}

}  // namespace grosr::simt
