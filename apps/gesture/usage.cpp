#include "usage.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

namespace grosr::gesture {

cpu_time cpu_time::now() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {s(u.ru_utime), s(u.ru_stime)};
}

unsigned thread_count() {
  unsigned n = 0;
  std::error_code bad;
  for (auto it = std::filesystem::directory_iterator("/proc/self/task", bad);
       !bad && it != std::filesystem::directory_iterator(); it.increment(bad))
    ++n;
  return n;
}

// ---- the management library, of which no header need be there ----

struct gpu_meter::state {
  struct rates {
    unsigned gpu, memory;
  };
  using call = int (*)();
  using ask = int (*)(void*, rates*);

  void* library = nullptr;
  void* gpu = nullptr;
  call shut_down = nullptr;
  ask rates_of = nullptr;
  std::mutex mutex;
  double sum = 0;
  unsigned count = 0;
  std::atomic<bool> ends{false};
  std::thread asks;

  template <class F>
  bool find(F& f, const char* name) {
    f = reinterpret_cast<F>(::dlsym(library, name));
    return f != nullptr;
  }
  bool open(int index) {
    library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    call init = nullptr;
    int (*handle)(unsigned, void**) = nullptr;
    int (*count_of)(unsigned*) = nullptr;
    if (!find(init, "nvmlInit_v2") || !find(shut_down, "nvmlShutdown") ||
        !find(handle, "nvmlDeviceGetHandleByIndex_v2") ||
        !find(count_of, "nvmlDeviceGetCount_v2") ||
        !find(rates_of, "nvmlDeviceGetUtilizationRates") || init() != 0) {
      shut_down = nullptr;
      return false;
    }
    // Its numbers are CUDA's where CUDA sees all GPUs.
    unsigned gpus = 0;
    if (count_of(&gpus) != 0 || (gpus != 1 && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr))
      return false;
    rates r{};
    return handle(gpus == 1 ? 0 : static_cast<unsigned>(index), &gpu) == 0 &&
           rates_of(gpu, &r) == 0;
  }
  void sample() {
    while (!ends) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      rates r{};
      if (rates_of(gpu, &r) != 0) continue;
      std::lock_guard lock(mutex);
      sum += r.gpu;
      ++count;
    }
  }
  ~state() {
    ends = true;
    if (asks.joinable()) asks.join();
    if (shut_down != nullptr) shut_down();
    if (library != nullptr) ::dlclose(library);
  }
};

gpu_meter::gpu_meter(std::unique_ptr<state> s) : state_(std::move(s)) {}
gpu_meter::~gpu_meter() = default;

std::unique_ptr<gpu_meter> gpu_meter::make(const device& d) {
  if (!d.is_cuda()) return nullptr;
  auto s = std::make_unique<state>();
  if (!s->open(d.index())) return nullptr;
  s->asks = std::thread([at = s.get()] { at->sample(); });
  return std::unique_ptr<gpu_meter>(new gpu_meter(std::move(s)));
}

std::optional<double> gpu_meter::percent() {
  std::lock_guard lock(state_->mutex);
  // A rate is of up to a second before it is asked for.
  const auto mean = state_->count >= 10 ? std::optional(state_->sum / state_->count) : std::nullopt;
  state_->sum = 0;
  state_->count = 0;
  return mean;
}

}  // namespace grosr::gesture
