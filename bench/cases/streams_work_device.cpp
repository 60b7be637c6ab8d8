#include "cases/streams_work.hpp"

#include <thread>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/wait.hpp"
#include "work/hosted.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace grosr::tool {
namespace {

struct stamp_task {
  static constexpr unsigned number = 0;
  std::uint64_t* to;
  GROSR_DEVICE void operator()(auto&) const { *to = simt::clock_ns(); }
};

struct stamp_kernel {
  std::uint64_t* to;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) *to = simt::clock_ns();
  }
};

/// Waits for the host, then takes the time.
struct held_kernel {
  std::uint32_t* gate;
  std::uint64_t* to;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    simt::atomic_ref<std::uint32_t, simt::scope::system> word(*gate);
    simt::wait_until([&] { return word.load(simt::acquire) != 0; }, simt::forever, nullptr,
                     "the gate");
    *to = simt::clock_ns();
  }
};

}  // namespace

struct stream_hops::inside {
  simt::buffer<std::uint32_t> gate;
  simt::buffer<std::uint64_t> stamps;
  simt::stream first, second;
  hosted<stamp_task> tasks;
#if defined(__CUDACC__)
  cudaEvent_t event{};
#endif

  inside(const device& d, const runtime_options& options)
      : gate(d, simt::space::pinned, 1),
        stamps(d, simt::space::pinned, 3),
        first(d),
        second(d),
        tasks(d, options) {
    simt::fit<1024, 1, stamp_kernel>(d, 32);
    simt::fit<1024, 1, held_kernel>(d, 32);
#if defined(__CUDACC__)
    if (d.is_cuda())
      simt::check_launch(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
#endif
  }
  ~inside() {
#if defined(__CUDACC__)
    if (event != nullptr) cudaEventDestroy(event);
#endif
  }

  void set_gate(std::uint32_t value) const {
    simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(value, simt::release);
  }
  void hold() {
    set_gate(0);
    simt::launch(first, {1, 32}, held_kernel{gate.data(), stamps.data()});
  }
  double between_us(unsigned from, unsigned to) const {
    return (static_cast<double>(stamps[to]) - static_cast<double>(stamps[from])) / 1e3;
  }
};

stream_hops::stream_hops(const device& d, const runtime_options& options)
    : inside_(std::make_unique<inside>(d, options)) {}
stream_hops::~stream_hops() = default;

stream_hops::times stream_hops::hop(std::chrono::microseconds held) {
  inside& in = *inside_;
  in.hold();
  const ticket t = in.tasks.direct().submit_after(in.first, stamp_task{in.stamps.data() + 1});
  t.record(in.first);
  simt::launch(in.first, {1, 32}, stamp_kernel{in.stamps.data() + 2});
  std::this_thread::sleep_for(held);
  in.set_gate(1);
  in.first.wait();
  return {in.between_us(0, 1), in.between_us(1, 2)};
}

double stream_hops::between_streams_us(std::chrono::microseconds held) {
  inside& in = *inside_;
  simt::stream* next = &in.first;
  in.hold();
#if defined(__CUDACC__)
  if (in.event != nullptr) {
    next = &in.second;
    simt::check_launch(cudaEventRecord(in.event, static_cast<cudaStream_t>(in.first.native())),
                       "record an event");
    simt::check_launch(cudaStreamWaitEvent(static_cast<cudaStream_t>(next->native()), in.event, 0),
                       "wait for an event");
  }
#endif
  simt::launch(*next, {1, 32}, stamp_kernel{in.stamps.data() + 2});
  std::this_thread::sleep_for(held);
  in.set_gate(1);
  next->wait();
  in.first.wait();
  return in.between_us(0, 2);
}

any_runtime& stream_hops::runtime() { return inside_->tasks; }

}  // namespace grosr::tool
