#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "simt/backend.hpp"
#include "simt/host_inquiry.hpp"

namespace grosr::simt {
namespace {

// Launches of all streams that were queued and have not ended.
struct launches {
  std::mutex mutex;
  std::condition_variable none;
  std::size_t count = 0;

  void begin() {
    std::lock_guard lock(mutex);
    ++count;
  }
  void end() {
    std::lock_guard lock(mutex);
    if (--count == 0) none.notify_all();
  }
  // Outlives every stream. A forked child has none of its parent's, and begins anew.
  static launches& of_process() {
    static std::atomic<launches*> all{nullptr};
    launches* found = all.load();
    while (found == nullptr || found->process != this_process()) {
      auto* own = new launches;
      if (all.compare_exchange_strong(found, own)) return *own;
      delete own;
    }
    return *found;
  }

  const long process = this_process();
};

// One thread runs the queued launches in order. The first failure stays: what was queued behind it
// is dropped, and done() and wait() throw it from then on, as a GPU's stream does.
class host_stream final : public stream_backend {
 public:
  ~host_stream() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  bool done() override {
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    return outstanding_ == 0;
  }

  void wait() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return outstanding_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
  }

  std::vector<std::string> waits(std::chrono::nanoseconds limit) override {
    return questions_.ask(limit);
  }

  std::vector<long> threads() override { return questions_.all_threads(); }

  void launch_host(host::launch_shape shape, std::function<void()> kernel) override {
    queue({shape, std::move(kernel), true});
  }

  void call_host(std::function<void()> function) override {
    queue({{}, std::move(function), false});
  }

 private:
  struct item {
    host::launch_shape shape;
    std::function<void()> function;
    bool is_kernel;
  };

  void queue(item i) {
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    start();
    queue_.push_back(std::move(i));
    ++outstanding_;
    launches::of_process().begin();
    wake_.notify_one();
  }

  void start() {
    if (thread_.joinable()) return;
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error& e) {
      throw error(
          errc::out_of_memory,
          fmt::format("a launch on host:0 needs a thread, and none can be started ({}); end "
                      "some, or raise the limit (ulimit -u)",
                      e.code().message()));
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      item next = std::move(queue_.front());
      queue_.pop_front();
      const bool runs = !failure_;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        if (runs && next.is_kernel)
          host::run(next.shape, next.function, &questions_);
        else if (runs)
          next.function();
      } catch (...) {
        thrown = std::current_exception();
      }
      next.function = nullptr;  // somebody may be told by that
      lock.lock();
      if (thrown) failure_ = std::move(thrown);
      if (--outstanding_ == 0) idle_.notify_all();
      launches::of_process().end();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<item> queue_;
  std::size_t outstanding_ = 0;  // queued or running
  bool closing_ = false;
  std::exception_ptr failure_;
  host::inquiry questions_;
  std::thread thread_;
};

}  // namespace

namespace host_backend {
std::unique_ptr<stream_backend> make_stream() { return std::make_unique<host_stream>(); }

void wait_for_kernels() noexcept {
  launches& all = launches::of_process();
  std::unique_lock lock(all.mutex);
  all.none.wait(lock, [&] { return all.count == 0; });
}
}  // namespace host_backend

void stream_backend::launch_host(host::launch_shape, std::function<void()>) {
  throw error(errc::misuse, "launch_host was called on a stream of a GPU; use launch()");
}

void stream_backend::call_host(std::function<void()>) {
  throw error(errc::misuse, "call_host was called on a stream of a GPU; use cudaLaunchHostFunc");
}

struct stream::state {
  device where;
  std::unique_ptr<stream_backend> backend;
};

stream::stream(device d)
    : state_(
          new state{d, d.is_cuda() ? cuda_backend::make_stream(d) : host_backend::make_stream()}) {}
stream::~stream() = default;
stream::stream(stream&&) noexcept = default;
stream& stream::operator=(stream&&) noexcept = default;

device stream::where() const { return state_->where; }
bool stream::done() const { return state_->backend->done(); }
void stream::wait() const { state_->backend->wait(); }
std::vector<long> stream::threads() const { return state_->backend->threads(); }

std::vector<std::string> stream::waits(std::chrono::nanoseconds limit) const {
  return state_->backend->waits(limit);
}
void* stream::native() const { return state_->backend->native(); }
void stream::launch_host(host::launch_shape shape, std::function<void()> kernel) {
  state_->backend->launch_host(shape, std::move(kernel));
}
void stream::call_host(std::function<void()> function) {
  state_->backend->call_host(std::move(function));
}

void wait_for_kernels(device d) noexcept {
  if (d.is_cuda())
    cuda_backend::wait_for_kernels(d);
  else
    host_backend::wait_for_kernels();
}

}  // namespace grosr::simt
