// A bell on a GPU: a stream of its own waits for the word that the device stores.
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>

#include "simt/context_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

// The driver's functions, asked for by name: libcuda is not linked.
struct memory_operations {
  decltype(&cuStreamWriteValue32) write;
  decltype(&cuStreamWaitValue32) wait;

  memory_operations() {
    get("cuStreamWriteValue32", write);
    get("cuStreamWaitValue32", wait);
  }

  template <class Function>
  static void get(const char* name, Function& f) {
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
};

class cuda_bell final : public bell_backend {
 public:
  explicit cuda_bell(device d) : device_(d), armed_(d, space::pinned, 1) {
    const on_device here(d.index());
    gpu::at(d.index());
    use();
    // Streams of one priority share queues of the hardware: a kernel could be queued behind the
    // stream that waits, if that had the usual one.
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), asked());
    check(cudaStreamCreateWithPriority(&waiting_, cudaStreamNonBlocking, greatest), asked());
    check(cudaStreamCreateWithFlags(&ringing_, cudaStreamNonBlocking), asked());
  }

  ~cuda_bell() override {
    cudaStreamSynchronize(waiting_);
    cudaStreamDestroy(waiting_);
    cudaStreamDestroy(ringing_);
    cudaGetLastError();
  }

  void arm(bell_words* words, std::uint32_t round) override {
    const on_device here(device_.index());
    write(waiting_, &words->armed, round);
    write(waiting_, armed_.data(), round);
    check_driver(use().wait(waiting_, address(&words->bell), round, CU_STREAM_WAIT_VALUE_GEQ));
    write(waiting_, &words->armed, 0);
    round_ = round;
    check(cudaLaunchHostFunc(waiting_, &cuda_bell::woke, this), asked());
  }

  bool is_armed(std::uint32_t round) const override {
    return atomic_ref<std::uint32_t, scope::system>(*armed_.data()).load(acquire) == round;
  }

  void release(bell_words* words, std::uint32_t round) override {
    try {
      const on_device here(device_.index());
      write(ringing_, &words->bell, round);
    } catch (...) {  // the device is lost; who sleeps does so for a limited time
    }
  }

 private:
  static void woke(void* self) {
    auto* b = static_cast<cuda_bell*>(self);
    std::atomic_ref<std::uint32_t>(b->woken).store(b->round_, std::memory_order_release);
    host::wake_sleepers(&b->woken);
  }

  void write(cudaStream_t on, std::uint32_t* to, std::uint32_t value) {
    check_driver(use().write(on, address(to), value, CU_STREAM_WRITE_VALUE_DEFAULT));
  }

  static CUdeviceptr address(std::uint32_t* p) { return reinterpret_cast<CUdeviceptr>(p); }
  void check_driver(CUresult r) const {
    if (r != CUDA_SUCCESS) check(cudaErrorUnknown, asked());
  }
  std::string asked() const { return "arm a bell on " + device_.name(); }
  static const memory_operations& use() {
    static const memory_operations all;
    return all;
  }

  device device_;
  buffer<std::uint32_t> armed_;
  cudaStream_t waiting_{}, ringing_{};
  std::uint32_t round_ = 0;
};

}  // namespace

std::unique_ptr<bell_backend> make_bell(device d) { return std::make_unique<cuda_bell>(d); }

}  // namespace grosr::simt::cuda_backend
