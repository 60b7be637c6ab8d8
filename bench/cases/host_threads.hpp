// Threads of the host that do something together, again and again.
#pragma once

#include <barrier>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "measure/samples.hpp"

namespace grosr::tool {

/// They live as long as this does: a thread that submits keeps its ring.
class host_threads {
 public:
  explicit host_threads(unsigned count) : meet_(count + 1), failed_(count) {
    try {
      while (threads_.size() < count)
        threads_.emplace_back([this, i = this->count()] { serve(i); });
    } catch (...) {  // no more can be started
      for (unsigned i = this->count(); i < count; ++i) meet_.arrive_and_drop();
      end();
      throw;
    }
  }
  ~host_threads() { end(); }
  host_threads(const host_threads&) = delete;

  unsigned count() const { return static_cast<unsigned>(threads_.size()); }

  /// Calls job(i) on thread i of count(), and returns when they began together, after all ended.
  /// Throws what one of them threw.
  clock::time_point run(std::function<void(unsigned)> job) {
    job_ = std::move(job);
    meet_.arrive_and_wait();
    meet_.arrive_and_wait();
    const auto began = clock::now();
    meet_.arrive_and_wait();
    for (std::exception_ptr& e : failed_)
      if (e) std::rethrow_exception(std::exchange(e, nullptr));
    return began;
  }

 private:
  void end() {
    job_ = nullptr;
    meet_.arrive_and_wait();
    for (std::thread& t : threads_) t.join();
  }

  void serve(unsigned i) {
    for (;;) {
      meet_.arrive_and_wait();
      if (!job_) return;
      meet_.arrive_and_wait();  // all are awake now
      try {
        job_(i);
      } catch (...) {
        failed_[i] = std::current_exception();
      }
      meet_.arrive_and_wait();
    }
  }

  std::barrier<> meet_;
  std::function<void(unsigned)> job_;
  std::vector<std::exception_ptr> failed_;
  std::vector<std::thread> threads_;
};

/// Where part i of `parts` of n things begins; part i ends where the next one does.
constexpr std::uint32_t part_of(std::uint32_t n, unsigned i, unsigned parts) {
  return static_cast<std::uint32_t>(std::uint64_t{n} * i / parts);
}

}  // namespace grosr::tool
