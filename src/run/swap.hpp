// Where tasks go for which no room is left in a runtime's memory: the host's ordinary memory. The
// device sends them through a ring of records; a thread takes them, keeps them, the newest on top,
// and brings them back as packets of submission when there is room. The same thread hands over
// completions that found none. docs/internals/scheduler.md, "No room".
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "grosr/queue/call_ring.hpp"
#include "grosr/run/detail/host_engine.hpp"

namespace grosr::run {

class swap_space {
 public:
  /// What it asks the runtime that it belongs to; none of it waits for the device.
  struct owner {
    /// Submits tasks of one type and level as one packet: its ticket, or nothing when there is no
    /// room for it.
    std::function<std::optional<ticket_id>(unsigned, unsigned, const void*, std::uint32_t)>
        bring_back;
    std::function<bool(ticket_id)> done;
    std::function<bool()> has_kernel;  ///< one that may send tasks, asked to leave or not
    std::function<bool()> leaves;      ///< it was asked to: what it still sends has no limit
    std::function<bool()> complete;    ///< hands completions over that found no room before; if any
    std::function<bool()> completions;  ///< whether there are such
  };

  /// `bytes`: of each task type. `full` is set while no more tasks are taken. Throws
  /// error(out_of_memory).
  swap_space(device d, std::uint32_t records, std::vector<std::uint32_t> bytes, std::size_t limit,
             std::uint32_t& full, owner o);
  ~swap_space();
  swap_space(const swap_space&) = delete;

  void start();
  /// Ends the thread.
  void stop();
  /// A kernel was launched.
  void wake();

  queue::call_ring_ref records() const { return records_.ref(); }
  static std::size_t pinned_bytes(std::uint32_t records) {
    return std::size_t{records} * queue::record_words * sizeof(simt::bus_word) + 8;
  }
  /// Grows with each task that is taken, and each packet that is brought back.
  std::uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }

 private:
  /// Tasks of one type and level, side by side; as many as one packet brings back.
  struct stack {
    std::vector<std::vector<std::byte>> packets;
  };

  void work();
  bool take();
  bool give();
  bool keep(std::uint32_t kind, const std::byte* task, std::size_t bytes);

  queue::call_ring records_;
  std::vector<std::uint32_t> bytes_;
  const std::size_t limit_;
  std::uint32_t& full_;
  owner owner_;
  std::vector<stack> stacks_;  // by kind_of(type, level)
  std::size_t held_ = 0;       // bytes
  // Of a task in two records: what the first says, while the second is to come.
  bool half_ = false;
  std::uint32_t first_ = 0;
  std::array<std::byte, 2 * 3 * queue::record_words * sizeof(std::uint32_t)> task_{};
  std::vector<ticket_id> out_;  // packets brought back that are not done
  std::atomic<std::uint64_t> moved_{0};

  std::mutex lock_;
  std::condition_variable wake_;
  bool woken_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace grosr::run
