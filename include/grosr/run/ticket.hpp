// What the host waits with: a ticket for tasks that it submitted, a future for the result of one
// that it forked.
#pragma once

#include <chrono>
#include <type_traits>
#include <utility>

#include "grosr/run/detail/host_engine.hpp"

namespace grosr {

/// What a submission is waited for by. A small value, to be copied freely; refers to its runtime,
/// which must live. Thread-safe.
class ticket {
 public:
  ticket() = default;
  ticket(run::host_engine* e, run::ticket_id id) : engine_(e), id_(id) {}

  /// True when the submitted tasks have run (not what they spawned), or will not run because the
  /// stream of the host that they waited for failed. Never blocks.
  bool done() const { return engine_ == nullptr || engine_->done(id_); }

  /// Waits until done(). Throws error(device_lost, watchdog or stopped) if that cannot happen.
  void wait() const {
    if (engine_) engine_->wait(id_, {});
  }

  /// The same with a time limit: false when it passed first.
  bool wait_for(std::chrono::nanoseconds limit) const {
    return engine_ == nullptr || engine_->wait(id_, run::in(limit));
  }

  /// Has the stream, a simt::stream or a cudaStream_t of the runtime's device, wait for the tasks:
  /// what is put into it later begins after them and sees what they wrote, but not what the tasks
  /// that they spawned write. The caller does not wait. If the runtime is aborted, the stream goes
  /// on, a running task may still write for seconds, done() stays false, and wait() throws. Throws
  /// error(misuse, invalid_option) for a stream that cannot wait, error(not_built) if the driver
  /// cannot do it, and as wait() does.
  void record(const simt::any_stream& s) const {
    if (engine_) engine_->record(id_, s);
  }

  /// Once done: whether any of the tasks returned an error or could not run. See runtime::errors().
  bool failed() const { return engine_ != nullptr && engine_->failed(id_); }

 private:
  run::host_engine* engine_ = nullptr;
  run::ticket_id id_;
};

/// The result of a task that the host forked. Refers to its runtime, which must live. Not
/// thread-safe; to be moved, not copied.
template <class Result>
class future {
 public:
  future() = default;
  future(run::host_engine* e, std::uint32_t promise) : engine_(e), promise_(promise) {}
  future(future&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)), promise_(other.promise_) {}
  future& operator=(future&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(promise_, other.promise_);
    return *this;
  }
  ~future() {
    if (engine_) engine_->drop_promise(promise_);
  }

  /// True when the result, or an error in its place, is there. Never blocks.
  bool ready() const { return engine_ == nullptr || engine_->promise_ready(promise_); }
  /// Waits until ready(). Throws error(device_lost, watchdog or stopped) if that cannot happen.
  void wait() const {
    if (engine_) engine_->wait_for_promise(promise_, {});
  }
  /// The same with a time limit: false when it passed first.
  bool wait_for(std::chrono::nanoseconds limit) const {
    return engine_ == nullptr || engine_->wait_for_promise(promise_, run::in(limit));
  }
  /// Waits: 0, or the first error (a negative errno) of the tasks that made the result.
  int status() const {
    wait();
    return engine_ ? engine_->promise_at(promise_).status : 0;
  }
  /// Waits: the result. Throws error(task_failed) when status() is not 0, and error(misuse) of an
  /// empty future: one that nothing was forked for, or that was moved from.
  Result get() const {
    if (engine_ == nullptr) run::throw_empty_future();
    const int s = status();
    if (s != 0) run::throw_task_failed(s);
    if constexpr (!std::is_void_v<Result>) {
      Result r;
      __builtin_memcpy(&r, engine_->promise_at(promise_).value, sizeof r);
      return r;
    }
  }

 private:
  run::host_engine* engine_ = nullptr;
  std::uint32_t promise_ = 0;
};

}  // namespace grosr
