// heap: the owner of memory that device code allocates from.
//
//   grosr::heap heap{device, std::size_t{1} << 30};
//   grosr::simt::run(device, {64, 128}, my_kernel{heap.ref()});
//   std::puts(heap.report().text().c_str());
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "grosr/alloc/heap_ref.hpp"
#include "grosr/simt/device.hpp"
#include "grosr/simt/owner.hpp"

namespace grosr {

namespace alloc {
struct heap_lifetime;
}

/// What is known of one size class.
struct heap_class_report {
  std::size_t block_bytes = 0;   ///< of a block; 0: runs of slabs, of any length
  std::uint64_t live = 0;        ///< blocks in use
  std::uint64_t live_bytes = 0;  ///< of these
  std::uint64_t slabs = 0;       ///< that hold blocks of this class
  std::uint64_t failures = 0;    ///< allocations for which there was no memory, ever
};

/// What a heap holds, taken at one moment; while kernels allocate, figures of different slabs are
/// of different moments.
struct heap_report {
  std::size_t bytes = 0;             ///< that the heap manages
  std::size_t metadata = 0;          ///< that it needs besides
  std::size_t free_bytes = 0;        ///< in slabs that any size may take
  std::size_t largest_free = 0;      ///< in the longest run of free slabs
  std::size_t high_water = 0;        ///< bytes in slabs that were ever in use: at no time were more
  std::uint64_t live = 0;            ///< blocks in use
  std::size_t live_bytes = 0;        ///< of these, as rounded up to their class
  std::uint64_t failures = 0;        ///< allocations for which there was no memory, ever
  std::uint64_t bad_alignments = 0;  ///< allocations with an alignment that is none
  std::uint64_t foreign_frees = 0;   ///< frees of what was no block of this heap
  std::uint64_t double_frees = 0;    ///< frees of blocks, or of memory, that was free already
  std::uint64_t overruns = 0;        ///< blocks of a checked heap freed with a damaged end
  std::vector<heap_class_report> classes;

  /// Share of the bytes in used slabs that no live block has: free slots, and what no slot fits in.
  double internal_fragmentation() const;
  /// Share of the free bytes that the largest free run does not have.
  double external_fragmentation() const;
  /// All of it in lines for people.
  std::string text() const;
};

/// Something that a checked heap found.
struct heap_finding {
  using kind = alloc::fault;  ///< double_free, foreign_free, written_past_end or leak
  kind what{};
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;      ///< asked for; 0 where that was written over or never known
  std::size_t block_bytes = 0;  ///< of its size class; 0: a run of slabs, or no block
  std::string allocated_by;     ///< names given to checked_ref(), or task types
  std::string freed_by;         ///< first freed by, where it was freed twice
  std::string found_by;         ///< who made the call; empty for leaks
  std::string text() const;     ///< one line
};

struct heap_options {
  /// Each block is followed by a canary and a record of who got it: finds blocks freed twice,
  /// foreign pointers, writes past the end, and leaks. Costs 32 bytes a block and some speed.
  /// Kernels use heap::checked_ref().
  bool checked = false;
};

/// Owner of a heap on one device. Movable; what was moved from may only be destroyed or assigned
/// to: its members throw error(misuse). Not thread-safe but where a member says so; what kernels do
/// through its refs is.
class heap {
 public:
  /// `bytes` of plain device memory in slabs of 64 KiB, rounded up, and 1% besides. Throws
  /// error(invalid_option) for less than a slab, error(out_of_memory) for more than there is. Not
  /// while a resident kernel holds the device (park it).
  heap(device d, std::size_t bytes, const heap_options& options = {});
  heap(heap&&) noexcept;
  heap& operator=(heap&&) noexcept;
  /// Waits until the kernels that were launched on the device have ended, for they may use it; a
  /// runtime that was given the heap keeps its memory instead, and waits likewise at its end. Park
  /// other resident runtimes first.
  ~heap();

  /// For kernels. Valid as long as the heap, or a runtime that was given it. Throws error(misuse)
  /// if the heap is checked.
  heap_ref ref() const;

  /// The same for a checked heap. `who` names the kernel in findings; at most 65,535 different
  /// names. Throws error(misuse) if the heap is not checked. Thread-safe.
  checked_heap_ref checked_ref(const std::string& who) const;

  /// What a checked heap found so far, at most 256; report() counts all. Writes past the end are
  /// found when the block is freed or reallocated, others not.
  std::vector<heap_finding> findings() const;

  /// The blocks of a checked heap that nobody freed, at most `most`. Call it when no kernel uses
  /// the heap. Copies every slab with blocks.
  std::vector<heap_finding> leaks(std::size_t most = 256) const;

  /// Copies what it needs from the device: about 1 ms for 10 GB. Runs beside kernels.
  heap_report report() const;

  /// From the host, by a kernel of one warp (some 20 us), also beside resident kernels. As
  /// heap_ref's, but throws error(out_of_memory) where there is no memory and error(invalid_option)
  /// for a bad alignment; null for 0 bytes only. Not for checked heaps: error(misuse). Thread-safe.
  void* allocate(std::size_t bytes, std::size_t alignment = alloc::unit) const;
  void deallocate(void* p) const;

  std::size_t bytes() const;
  const device& where() const;

  /// For runtimes: the view for kernels, whose owners from `owner` on have these names if the heap
  /// is checked. What keeps its memory alive is alloc::lifetime_of().
  alloc::heap_view view(const std::vector<std::string>& owners) const;

 private:
  struct memory;
  struct share;  // in its memory, which may live longer
  friend class heap_resource;
  friend struct alloc::heap_lifetime;
  memory& own() const;
  void check_host_call() const;
  simt::owner<share> share_;
};

}  // namespace grosr
