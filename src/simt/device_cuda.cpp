// cuda:N: which GPUs there are, what they are made of, and how CUDA's errors become GROSR's.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <mutex>

#include "simt/context_cuda.hpp"

namespace grosr::simt::cuda_backend {

int device_count(std::string& why_none) {
  why_none.clear();
  int count = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  int driver = 0;
  if (e == cudaSuccess || e == cudaErrorNoDevice) {
    why_none = "no CUDA-capable device is detected";
  } else if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    why_none = "the CUDA driver is not installed";
  } else {
    why_none = fmt::format("CUDA cannot start: {}", cudaGetErrorString(e));
  }
  return 0;
}

device_properties properties(int index) {
  const std::string asked = fmt::format("ask for the properties of cuda:{}", index);
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, index), asked);
  device_properties p;
  p.description = found.name;
  p.sms = static_cast<unsigned>(found.multiProcessorCount);
  p.max_threads_per_sm = static_cast<unsigned>(found.maxThreadsPerMultiProcessor);
  p.max_threads_per_block = static_cast<unsigned>(found.maxThreadsPerBlock);
  p.architecture = fmt::format("sm_{}{}", found.major, found.minor);
  int khz = 0;
  check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, index), asked);
  p.clock_khz = static_cast<unsigned>(khz);
  p.l2_bytes = static_cast<std::size_t>(found.l2CacheSize);
  const on_device here(index);
  check(cudaMemGetInfo(&p.memory_free, &p.memory), asked);
  return p;
}

std::string pci_address(int index) {
  char text[32] = {};
  if (cudaDeviceGetPCIBusId(text, sizeof text, index) == cudaSuccess) return text;
  cudaGetLastError();
  return {};
}

int make_current(int index) {
  int before = -1;
  check(cudaGetDevice(&before), "ask for the current GPU");
  if (before == index) return -1;
  check(cudaSetDevice(index), fmt::format("select cuda:{}", index));
  return before;
}

void make_current_again(int before) noexcept {
  if (before >= 0) cudaSetDevice(before);
}

void check(cudaError_t e, const std::string& asked) {
  if (e == cudaSuccess) return;
  cudaGetLastError();  // a sticky error stays, any other must not surface in a later call
  throw error(errc::device_lost, fmt::format("could not {}: {} ({})", asked, cudaGetErrorString(e),
                                             cudaGetErrorName(e)));
}

gpu::gpu(int index) {
  const on_device here(index);
  const std::string asked = fmt::format("make the copy stream of cuda:{}", index);
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), asked);
  for (int i = 0; i < 2; ++i) {
    check(allocate_pinned(&bounce[i], bounce_bytes), asked);
    check(cudaEventCreateWithFlags(&bounced[i], cudaEventDisableTiming), asked);
  }
}

gpu& gpu::at(int index) {
  static std::mutex mutex;
  // Never destroyed: at exit the driver may be gone before them.
  static auto& all = *new std::array<std::unique_ptr<gpu>, 64>();
  std::lock_guard lock(mutex);
  auto& entry = all.at(static_cast<std::size_t>(index));
  if (!entry) entry = std::make_unique<gpu>(index);
  return *entry;
}

}  // namespace grosr::simt::cuda_backend

namespace grosr::simt {

on_device::on_device(const device& d) : before_(cuda_backend::make_current(d.index())) {}
on_device::~on_device() { cuda_backend::make_current_again(before_); }

void check_launch(int cuda_error, const std::string& asked) {
  cuda_backend::check(static_cast<cudaError_t>(cuda_error), asked);
}

}  // namespace grosr::simt
