// Completions on their way to a runtime's kernel: those that come while others are handed over go
// together.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "grosr/queue/completion.hpp"
#include "grosr/run/task.hpp"

namespace grosr::run {

class completions final : public queue::completion_port {
 public:
  /// What it asks the runtime that it belongs to.
  struct owner {
    /// Submits completions of one level as one packet, if there is room for it now. Waits for
    /// nothing, and launches nothing.
    std::function<bool(unsigned level, const queue::completion*, std::uint32_t count)> bring;
    std::function<void()> try_later;  ///< some found no room: hand_over() is to be called again
  };

  explicit completions(owner o) : owner_(std::move(o)) {}
  ~completions() override { close(false); }
  using queue::completion_port::close;
  using queue::completion_port::refuse;

  /// Hands over what has come, the most urgent first. Whether it did some.
  bool hand_over();
  /// Whether some wait for room.
  bool waiting();
  /// Whether calls are under way whose completion was not handed over.
  bool outstanding() const { return outstanding_.load(std::memory_order_relaxed) > 0; }

 private:
  void expect(std::uint32_t count) override {
    outstanding_.fetch_add(count, std::memory_order_relaxed);
  }
  void complete(const queue::completion* ended, std::uint32_t count) override;

  owner owner_;
  std::atomic<std::int64_t> outstanding_{0};
  std::mutex lock_;
  std::array<std::deque<queue::completion>, priority_levels> come_;
  bool busy_ = false;  ///< a thread hands over: it alone takes from come_
};

}  // namespace grosr::run
