// Orders words of pinned memory with streams of a GPU: the stream itself stores, and waits.
#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <mutex>

#include "simt/context_cuda.hpp"
#include "simt/driver_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

struct stream_functions {
  decltype(&cuStreamWriteValue32) write;
  decltype(&cuStreamWaitValue32) wait;
  decltype(&cuStreamGetCtx) context;
  decltype(&cuCtxGetCurrent) current;

  stream_functions() {
    driver_function("cuStreamWriteValue32", write);
    driver_function("cuStreamWaitValue32", wait);
    driver_function("cuStreamGetCtx", context);
    driver_function("cuCtxGetCurrent", current);
  }
  static const stream_functions& all() {
    static const stream_functions found;
    return found;
  }
};

std::string text_of(cudaError_t e) {
  return fmt::format("{} ({})", cudaGetErrorString(e), cudaGetErrorName(e));
}

class cuda_stream_order final : public stream_order_backend {
 public:
  explicit cuda_stream_order(device d) : device_(d) { stream_functions::all(); }

  ~cuda_stream_order() override {
    for (cudaStream_t s : streams_)
      if (s != nullptr) cudaStreamDestroy(s);
    cudaGetLastError();
  }

  bool store_at(const moment& when, std::uint32_t* word, std::uint32_t value) override {
    const on_device here(device_.index());
    cudaStream_t s = when.in().native();
    if (when.is_event()) {
      const cudaError_t e = cudaEventQuery(when.event());
      if (e == cudaSuccess) return false;
      cudaGetLastError();
      s = stream_for_event();
      check(cudaStreamWaitEvent(s, when.event(), 0), asked());
    }
    // The write is behind a fence of the system: whoever sees it sees what the stream wrote.
    check_driver(
        stream_functions::all().write(s, address(word), value, CU_STREAM_WRITE_VALUE_DEFAULT));
    return true;
  }

  void wait_for(const any_stream& s, const std::uint32_t* word, std::uint32_t value) override {
    const on_device here(device_.index());
    check_driver(
        stream_functions::all().wait(s.native(), address(word), value, CU_STREAM_WAIT_VALUE_GEQ));
  }

 private:
  // Few: a stream that waits holds one of the GPU's queues, which streams share.
  cudaStream_t stream_for_event() {
    std::lock_guard lock(lock_);
    cudaStream_t& s = streams_[next_++ % std::size(streams_)];
    if (s == nullptr) check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), asked());
    return s;
  }

  static CUdeviceptr address(const std::uint32_t* p) { return reinterpret_cast<CUdeviceptr>(p); }
  std::string asked() const { return "order a runtime on " + device_.name() + " with a stream"; }
  void check_driver(CUresult r) const {
    if (r == CUDA_SUCCESS) return;
    if (r == CUDA_ERROR_NOT_SUPPORTED)
      throw error(errc::not_built,
                  fmt::format("{}: the driver lets no stream wait for memory of the host; use one "
                              "that does, or wait for the ticket and the stream in the program",
                              asked()));
    throw error(errc::device_lost,
                fmt::format("could not {}: CUresult {}", asked(), static_cast<int>(r)));
  }

  device device_;
  std::mutex lock_;
  cudaStream_t streams_[4] = {};
  unsigned next_ = 0;
};

}  // namespace

std::unique_ptr<stream_order_backend> make_stream_order(device d) {
  return std::make_unique<cuda_stream_order>(d);
}

void check_order(device d, CUstream_st* s, const std::string& asked) {
  const on_device here(d.index());
  cudaStreamCaptureStatus status{};
  const cudaError_t e = cudaStreamIsCapturing(s, &status);
  cudaGetLastError();
  if (e == cudaErrorStreamCaptureImplicit ||
      (e == cudaSuccess && status != cudaStreamCaptureStatusNone))
    throw error(errc::misuse, asked +
                                  ": the stream is being captured into a graph, which would order "
                                  "nothing when it runs; end the capture first");
  if (e != cudaSuccess)
    throw error(errc::misuse, fmt::format("{}: the stream cannot be used: {}; give it one that "
                                          "was made and not destroyed",
                                          asked, text_of(e)));
  CUcontext its = nullptr, current = nullptr;
  if (stream_functions::all().context(s, &its) != CUDA_SUCCESS ||
      stream_functions::all().current(&current) != CUDA_SUCCESS || its != current)
    throw error(errc::invalid_option,
                fmt::format("{}: the stream is of another GPU, or context, than the runtime, which "
                            "is on {}; both must be on one device",
                            asked, d.name()));
}

void check_event(device d, CUevent_st* event, const std::string& asked) {
  const on_device here(d.index());
  const cudaError_t e = cudaEventQuery(event);
  cudaGetLastError();
  if (e == cudaSuccess || e == cudaErrorNotReady) return;
  if (e == cudaErrorCapturedEvent || e == cudaErrorStreamCaptureUnsupported)
    throw error(errc::misuse, asked +
                                  ": the event, or this thread's stream, is being captured into a "
                                  "graph; end the capture first");
  if (e == cudaErrorInvalidResourceHandle || e == cudaErrorInvalidValue)
    throw error(errc::misuse, fmt::format("{}: this is no event: {}; give it one that was made, "
                                          "recorded and not destroyed",
                                          asked, text_of(e)));
  check(e, "ask for an event on " + d.name());
}

void wait_for(device d, const moment& when) {
  const on_device here(d.index());
  check(when.is_event() ? cudaEventSynchronize(when.event())
                        : cudaStreamSynchronize(when.in().native()),
        "wait for what was put into a stream of " + d.name());
}

}  // namespace grosr::simt::cuda_backend
