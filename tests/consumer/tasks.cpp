// Device code of another project: a task that a runtime of its own runs.
#include <cstdio>
#include <grosr/run/runtime.hpp>
#include <grosr/simt/buffer.hpp>
#include <grosr/version.hpp>

struct square {
  float* x;
  GROSR_DEVICE void operator()(auto&) const { *x *= *x; }
};

int main() {
  // A library with CUDA, and device code that nvcc did not compile, would do nothing on a GPU.
#if defined(__CUDACC__)
  constexpr bool by_nvcc = true;
#else
  constexpr bool by_nvcc = false;
#endif
  const bool has_cuda = grosr::build().backends.find("cuda") != std::string_view::npos;
  if (by_nvcc != has_cuda) {
    std::printf("the library has %s, and nvcc %s this file\n", has_cuda ? "CUDA" : "no CUDA",
                by_nvcc ? "compiled" : "did not compile");
    return 1;
  }
  const grosr::device device = grosr::device::best();
  grosr::simt::buffer<float> x(device, grosr::simt::space::pinned, 1);
  x[0] = 3;
  grosr::runtime<square> runtime{device};
  runtime.submit(square{x.data()}).wait();
  std::printf("%g\n", x[0]);
  return x[0] == 9 ? 0 : 1;
}
