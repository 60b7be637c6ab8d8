// The heap of a graph on one device, from which functions allocate blocks.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "flow/block_pool.hpp"
#include "grosr/alloc/heap.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::flow {

/// Blocks that lie there own it, and the graph does. Thread-safe.
class block_heap : public std::enable_shared_from_this<block_heap> {
 public:
  /// Throws as heap().
  block_heap(device d, std::size_t bytes);
  /// Waits for all that uses what was given back, and for the kernels of the device.
  ~block_heap();

  const heap_ref& ref() const { return ref_; }
  std::size_t bytes() const { return heap_.bytes(); }
  /// That blocks have, or had and were not freed yet.
  std::size_t in_use() const { return in_use_.load(std::memory_order_relaxed); }

  /// What a function has allocated becomes a view, which gives it back to its pool at its end.
  block_buffer lend(void* data, std::size_t bytes);
  /// Memory of lend(), to be freed when its users are done. For who may hold locks.
  void give_back(block_buffer b) noexcept;

  /// Has `t` wait until what was given back is free: what is done with, and, where there is little
  /// room, all of it. Throws error(device_lost).
  void free_before(simt::timeline& t);
  /// What it holds when all that is done with is free.
  heap_report report();

 private:
  /// With the lock of frees. `all`: also what is not done with, for which that stream waits.
  void free_given_back(bool all);

  const grosr::heap heap_;
  const heap_ref ref_;
  std::atomic<std::size_t> in_use_{0};
  std::mutex given_back_mutex_;
  std::vector<block_buffer> given_back_;
  std::mutex frees_mutex_;  // one thread at a time puts something there
  simt::timeline frees_;
  simt::stream_point freed_;  // behind the last of them
};

}  // namespace grosr::flow
