#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>

#include "simt/context_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

struct event {
  cudaEvent_t it{};
  explicit event(const std::string& asked, unsigned flags = cudaEventDisableTiming) {
    check(cudaEventCreateWithFlags(&it, flags), asked);
  }
  event(const event&) = delete;
  ~event() {
    cudaEventDestroy(it);
    cudaGetLastError();
  }
};

constexpr std::int64_t second_ns = 1'000'000'000;

std::int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// An event of a device whose time is known by the steady clock. Events tell what time is between
/// them, as a float of milliseconds: to a microsecond where that is not more than some seconds.
struct known_time {
  explicit known_time(const device& d) : asked_("find the time of " + d.name()) {
    stream s(d);
    // The host is slower to see some than others: the quickest is the nearest.
    for (int i = 0; i < 5; ++i) {
      auto e = std::make_unique<event>(asked_, cudaEventDefault);
      const std::int64_t begins = steady_ns();
      check(cudaEventRecord(e->it, native(s)), asked_);
      check(cudaEventSynchronize(e->it), asked_);
      const std::int64_t took = steady_ns() - begins;
      if (at && took >= quickest_) continue;
      quickest_ = took;
      ns = begins + took / 2;
      at = std::move(e);
    }
  }

  std::unique_ptr<event> at;
  std::int64_t ns = 0;

 private:
  const std::string asked_;
  std::int64_t quickest_ = 0;
};

/// The newest of a device. With its device.
std::shared_ptr<known_time> known_time_of(const device& d) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, std::shared_ptr<known_time>>;  // CUDA may end before
  std::lock_guard lock(mutex);
  auto& newest = all[d.index()];
  if (!newest || steady_ns() - newest->ns > second_ns) newest = std::make_shared<known_time>(d);
  return newest;
}

class cuda_time final : public stream_time::place {
 public:
  cuda_time(const device& d, cudaStream_t s, const std::string& asked)
      : since_(known_time_of(d)), event_(std::make_unique<event>(asked, cudaEventDefault)) {
    check(cudaEventRecord(event_->it, s), asked);
  }

  std::optional<std::int64_t> ns() override {
    std::lock_guard lock(mutex_);
    if (event_ == nullptr) return known_;
    float ms = 0;
    const cudaError_t e = cudaEventElapsedTime(&ms, since_->at->it, event_->it);
    if (e != cudaSuccess) {
      cudaGetLastError();
      return std::nullopt;
    }
    known_ = since_->ns + static_cast<std::int64_t>(double{ms} * 1e6);
    event_.reset();
    since_.reset();
    return known_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<known_time> since_;
  std::unique_ptr<event> event_;  // until its time is known
  std::optional<std::int64_t> known_;
};

class cuda_timeline final : public timeline_backend {
 public:
  explicit cuda_timeline(stream& s)
      : device_(s.where()),
        stream_(native(s)),
        asked_("run what was put into a stream of " + device_.name()) {}

  void mark(std::uint64_t number) override {
    const on_device here(device_.index());
    std::lock_guard lock(mutex_);
    retire();
    std::shared_ptr<event> e;
    // One that somebody still waits for is not recorded anew.
    if (!free_.empty() && free_.front().use_count() == 1) {
      e = std::move(free_.front());
      free_.pop_front();
    } else {
      e = std::make_shared<event>(asked_);
    }
    check(cudaEventRecord(e->it, stream_), asked_);
    marks_.push_back({number, std::move(e)});
  }

  std::uint64_t reached() override {
    std::lock_guard lock(mutex_);
    retire();
    return reached_;
  }

  void wait(std::uint64_t number) override {
    if (const auto e = first(number)) check(cudaEventSynchronize(e->it), asked_);
  }

  void hold(stream& other, std::uint64_t number) override {
    const auto e = first(number);
    if (!e) return;
    const on_device here(other.where().index());
    check(cudaStreamWaitEvent(native(other), e->it, 0), asked_);
  }

  std::shared_ptr<stream_time::place> time() override {
    const on_device here(device_.index());
    return std::make_shared<cuda_time>(device_, stream_, asked_);
  }

 private:
  struct marked {
    std::uint64_t number;
    std::shared_ptr<cuda_backend::event> event;
  };

  /// With the lock: takes out the marks that have been come to.
  void retire() {
    while (!marks_.empty()) {
      const cudaError_t e = cudaEventQuery(marks_.front().event->it);
      if (e == cudaErrorNotReady) {
        cudaGetLastError();
        return;
      }
      check(e, asked_);
      reached_ = marks_.front().number;
      free_.push_back(std::move(marks_.front().event));
      marks_.pop_front();
    }
  }

  /// The first mark of that number or a greater one; null: it was come to.
  std::shared_ptr<event> first(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    if (reached_ >= number) return nullptr;
    const auto found =
        std::lower_bound(marks_.begin(), marks_.end(), number,
                         [](const marked& m, std::uint64_t n) { return m.number < n; });
    return found == marks_.end() ? nullptr : found->event;
  }

  const device device_;
  const cudaStream_t stream_;
  const std::string asked_;
  std::mutex mutex_;
  std::deque<marked> marks_;  // not come to, as far as is known, in order
  std::deque<std::shared_ptr<event>> free_;
  std::uint64_t reached_ = 0;
};

}  // namespace

std::unique_ptr<timeline_backend> make_timeline(stream& s) {
  return std::make_unique<cuda_timeline>(s);
}

void queue_copy(stream& s, void* to, const void* from, std::size_t bytes) {
  const on_device here(s.where().index());
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(s)),
        fmt::format("copy {} on {}", in_units(bytes), s.where().name()));
}

#if CUDART_VERSION >= 12080
namespace {

/// False: they are to be put one by one, which harms none that was put already. A stream that
/// captures takes no batch, and drivers older than the toolkit have no such call.
bool queue_batch(stream& s, const copies& all) {
  cudaStreamCaptureStatus captures{};
  if (cudaStreamIsCapturing(native(s), &captures) != cudaSuccess ||
      captures != cudaStreamCaptureStatusNone) {
    cudaGetLastError();
    return false;
  }
  cudaMemcpyAttributes in_order{};
  in_order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
#if CUDART_VERSION >= 13000
  const cudaError_t e = cudaMemcpyBatchAsync(all.to.data(), all.from.data(), all.bytes.data(),
                                             all.bytes.size(), &in_order, &first, 1, native(s));
#else
  std::size_t failed = 0;
  const cudaError_t e =
      cudaMemcpyBatchAsync(const_cast<void**>(all.to.data()), const_cast<void**>(all.from.data()),
                           const_cast<std::size_t*>(all.bytes.data()), all.bytes.size(), &in_order,
                           &first, 1, &failed, native(s));
#endif
  if (e != cudaSuccess) cudaGetLastError();
  return e == cudaSuccess;
}

}  // namespace
#endif

// A call for each copy takes the host longer than a kernel for a few of them; so does a batch of
// short ones. A kernel copies as fast as the bus allows, but on multiprocessors that others may
// need, so long ones are for copy engines.
void queue_copies(stream& s, const copies& all) {
  constexpr std::size_t few = 3, short_on_average = 64 << 10;
  const std::size_t n = all.bytes.size();
  const on_device here(s.where().index());
  if (n >= few && all.all_bytes / n <= short_on_average) return launch_copies(s, all);
#if CUDART_VERSION >= 12080
  if (n > 1 && queue_batch(s, all)) return;
#endif
  for (std::size_t i = 0; i < n; ++i) queue_copy(s, all.to[i], all.from[i], all.bytes[i]);
}

}  // namespace grosr::simt::cuda_backend
