// Traffic for allocators: kernels that get, use, check and free blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grosr/alloc/heap.hpp"

namespace grosr::tool {

/// Sizes are drawn from [least, most]; each block is touched in its first `touch` bytes.
struct block_sizes {
  std::uint32_t least, most;
  std::uint32_t touch = 4;
  bool by_octave = false;  ///< each octave from 1 to `most` is as likely as any other
};

/// What a launch did. The time is the device's own, from the first block's begin to the last's end.
struct traffic {
  double us = 0;
  std::uint64_t asked = 0, got = 0;
  std::uint64_t wrong = 0;  ///< blocks whose stamps were not what their owner wrote
};

/// Threads with an array of blocks each, on one device; they get them from a heap, or from the
/// device's own malloc.
class block_traffic {
 public:
  /// `from` null: the device's malloc. `a_thread`: blocks that each thread may have.
  block_traffic(const device& d, const heap* from, std::uint32_t threads, std::uint32_t a_thread);
  ~block_traffic();

  /// Sets how much memory the device's malloc has. Before the first use of it.
  static void reserve_native(const device& d, std::size_t bytes);

  /// Every thread fills its array. With `stamp` it writes its number at both ends of each block,
  /// which must have room for 4 bytes. Blocks of the device's malloc are not stamped or checked.
  traffic allocate(block_sizes sizes, bool stamp = false);
  /// Frees a random `share` of `of` of the blocks; with `check` it checks the stamps of all, which
  /// must have them.
  traffic release(std::uint32_t share, std::uint32_t of, bool check = false);
  /// Fills what release() emptied.
  traffic refill(block_sizes sizes, bool stamp = false);
  /// Every thread does `turns` times: free the oldest block of its array, get a new one, touch it.
  /// At the end all are freed. An array of one: free at once after touching. With `check` blocks
  /// are stamped, checked before they are freed, and of other sizes in every call.
  traffic churn(block_sizes sizes, std::uint32_t turns, bool check = false);
  /// Half of the threads get, stamp and pass on, the others check and free, `turns` blocks each.
  /// All threads must be resident at once; their arrays are not used.
  traffic pass_on(block_sizes sizes, std::uint32_t turns);
  /// After allocate(): what is wrong with where the blocks lie; empty if each thread has its own.
  /// Sizes as they were asked for.
  std::string overlap(block_sizes sizes);
  /// One warp gets blocks of these sizes, of each until there is no memory, and keeps them; not
  /// timed. How many.
  std::uint64_t stuff(const std::vector<std::uint32_t>& sizes);
  /// Frees them.
  void empty();
  /// Every thread asks `turns` times for a block of a size that there is no memory for. What it got
  /// nevertheless is lost.
  traffic ask_in_vain(std::uint32_t bytes, std::uint32_t turns);
  /// One thread gets, stamps, checks and frees one block; not timed.
  traffic get_one(std::size_t bytes);

  std::uint64_t count() const;  ///< blocks that arrays hold in all

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// What is wrong with a heap all of whose blocks were freed; empty if nothing is.
std::string trouble(const heap& h);

}  // namespace grosr::tool
