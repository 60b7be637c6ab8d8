// What executors ask: which node runs next, and where.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace grosr::flow {

/// A node that has all its inputs, as policies see it. Times in nanoseconds.
struct queued_node {
  std::int64_t since;    ///< when it was queued
  double mean_wait = 0;  ///< moving averages of its last runs
  double mean_run = 0;
  int priority = 0;             ///< its graph's
  std::uint64_t units = ~0ull;  ///< a bit for each unit that it can run on
  const void* graph = nullptr;  ///< which one: graphs share units by priority

  bool can_run_on(std::size_t unit) const { return (units >> unit & 1) != 0; }
};

/// A unit, as policies see it: the threads of the host, then each device.
struct unit_load {
  unsigned running = 0, depth = 1;
  bool is_launching = false;  ///< a thread puts something there, and comes back soon
  bool is_full() const { return running >= depth; }
  bool has_room() const { return !is_full() && !is_launching; }
};

/// Where the inputs of queued nodes lie. A look at each input: policies ask for nodes that may run.
class input_bytes {
 public:
  /// Of a node of the queue: bytes of its inputs that lie in the memory of each unit already. Of
  /// one that runs on devices alone: without those that the host has, too, which every device gets
  /// with one copy. Valid until the next call.
  virtual std::span<const std::size_t> of(std::size_t node) = 0;

 protected:
  ~input_bytes() = default;
};

struct choice {
  std::size_t node;  ///< in the queue
  std::size_t unit;
  const char* reason;
};

/// One policy. Called with the executor's lock.
class scheduling_policy {
 public:
  virtual ~scheduling_policy() = default;
  /// None: nothing can or should run now. The queue is in the order in which nodes came, and some
  /// unit has room.
  virtual std::optional<choice> choose(std::span<const queued_node> queue,
                                       std::span<const unit_load> units, std::int64_t now,
                                       input_bytes& bytes) = 0;
};

/// Of the units that a node can run on and that have room, the one with the least under way for
/// its depth; none.
inline std::optional<std::size_t> least_loaded(const queued_node& n,
                                               std::span<const unit_load> units) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!n.can_run_on(i) || !units[i].has_room()) continue;
    if (!best || std::uint64_t{units[i].running} * units[*best].depth <
                     std::uint64_t{units[*best].running} * units[i].depth)
      best = i;
  }
  return best;
}

std::unique_ptr<scheduling_policy> make_first_available();
std::unique_ptr<scheduling_policy> make_fifo();
std::unique_ptr<scheduling_policy> make_priority();
std::unique_ptr<scheduling_policy> make_data_aware();

}  // namespace grosr::flow
