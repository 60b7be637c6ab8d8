// A doorbell on a GPU: a stream of its own waits for the word that the device stores. A thread of
// its own makes the CUDA calls: they may wait for a lock of the driver that somebody holds who
// waits for a kernel, which waits for the thread that is to sleep.
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "simt/context_cuda.hpp"
#include "simt/doorbells_cuda.hpp"
#include "simt/driver_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

struct memory_operations {
  decltype(&cuStreamWriteValue32) write;
  decltype(&cuStreamWaitValue32) wait;

  memory_operations() {
    driver_function("cuStreamWriteValue32", write);
    driver_function("cuStreamWaitValue32", wait);
  }
};

class cuda_doorbell;

// All doorbells of the process, and how many calls under way must not wait for them.
struct doorbells {
  std::mutex lock;
  std::vector<cuda_doorbell*> all;
  std::atomic<int> held{0};
  static doorbells& of_process() {
    static auto* b = new doorbells;  // outlives every doorbell
    return *b;
  }
};

class cuda_doorbell final : public doorbell_backend {
 public:
  cuda_doorbell(device d, std::uint32_t* armed, std::uint32_t* word, std::function<void()> on_ring)
      : device_(d),
        armed_(armed),
        word_(word),
        on_ring_(std::move(on_ring)),
        seen_(d, space::pinned, 1) {
    const on_device here(d.index());
    gpu::at(d.index());
    operations();
    // Streams of one priority share queues of the hardware: a kernel could be queued behind the
    // stream that waits, if that had the usual one.
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), asked());
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), asked());
    thread_ = std::thread([this] { run(); });
    std::lock_guard lock(doorbells::of_process().lock);
    doorbells::of_process().all.push_back(this);
  }

  ~cuda_doorbell() override {
    {
      std::lock_guard lock(doorbells::of_process().lock);
      std::erase(doorbells::of_process().all, this);
    }
    {
      std::lock_guard lock(lock_);
      ending_ = true;
    }
    asked_.notify_all();
    thread_.join();
    release();
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  }

  void arm(std::uint32_t round) override {
    {
      std::lock_guard lock(lock_);
      wanted_ = round;
    }
    asked_.notify_one();
  }

  bool is_armed(std::uint32_t round) const override {
    return atomic_ref<std::uint32_t, scope::system>(*seen_.data()).load(acquire) == round;
  }

  void release() override {
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    released_.store(round, std::memory_order_relaxed);
    atomic_ref<std::uint32_t, scope::system>(*word_).store(round, simt::release);
  }

 private:
  void run() {
    std::unique_lock lock(lock_);
    for (;;) {
      asked_.wait(lock, [&] { return ending_ || wanted_ != round_; });
      if (ending_) return;
      const std::uint32_t round = wanted_;
      lock.unlock();
      while (doorbells::of_process().held.load() != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      round_ = round;  // first: who waits for the stream may keep this thread from coming further
      try {
        order(round);
      } catch (...) {  // the device is lost; who sleeps does so for a limited time
      }
      // Somebody may have begun a call that must not wait, and not have seen this round.
      if (doorbells::of_process().held.load() != 0) release();
      lock.lock();
    }
  }

  void order(std::uint32_t round) {
    const on_device here(device_.index());
    write(armed_, round);
    write(seen_.data(), round);
    check_driver(operations().wait(stream_, address(word_), round, CU_STREAM_WAIT_VALUE_GEQ));
    write(armed_, 0);
    check(cudaLaunchHostFunc(stream_, &cuda_doorbell::end_of_round, this), asked());
  }

  static void end_of_round(void* self) {
    auto* b = static_cast<cuda_doorbell*>(self);
    const std::uint32_t round =
        atomic_ref<std::uint32_t, scope::system>(*b->seen_.data()).load(acquire);
    if (b->on_ring_ && b->released_.load(std::memory_order_relaxed) != round) b->on_ring_();
    std::atomic_ref<std::uint32_t>(b->woken).store(round, std::memory_order_release);
    host::wake_sleepers(&b->woken);
  }

  void write(std::uint32_t* to, std::uint32_t value) {
    check_driver(operations().write(stream_, address(to), value, CU_STREAM_WRITE_VALUE_DEFAULT));
  }
  static CUdeviceptr address(std::uint32_t* p) { return reinterpret_cast<CUdeviceptr>(p); }
  void check_driver(CUresult r) const {
    if (r != CUDA_SUCCESS) check(cudaErrorUnknown, asked());
  }
  std::string asked() const { return "arm a doorbell on " + device_.name(); }
  static const memory_operations& operations() {
    static const memory_operations all;
    return all;
  }

  device device_;
  std::uint32_t *armed_, *word_;
  std::function<void()> on_ring_;
  buffer<std::uint32_t> seen_;  // the newest round that the stream has armed
  cudaStream_t stream_{};
  std::mutex lock_;
  std::condition_variable asked_;
  std::uint32_t wanted_ = 0;
  std::atomic<std::uint32_t> round_{0}, released_{0};
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<doorbell_backend> make_doorbell(device d, std::uint32_t* armed, std::uint32_t* word,
                                                std::function<void()> on_ring) {
  return std::make_unique<cuda_doorbell>(d, armed, word, std::move(on_ring));
}

hold_doorbells::hold_doorbells() {
  doorbells& b = doorbells::of_process();
  b.held.fetch_add(1);
  std::lock_guard lock(b.lock);
  for (cuda_doorbell* one : b.all) one->release();
}

hold_doorbells::~hold_doorbells() { doorbells::of_process().held.fetch_sub(1); }

}  // namespace grosr::simt::cuda_backend
