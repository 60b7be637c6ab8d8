// How much of everything a runtime has: worked out from its options, its task types and the device
// before anything is allocated. Every default, every capacity and every refusal of a number is made
// here, once; engine::allocate() takes what the plan says. Whether the heap is on the device, and
// the trace can be written, is the engine's to ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grosr/run/detail/frame_stack.hpp"
#include "grosr/run/detail/host_engine.hpp"

namespace grosr::run {

/// Of the words `state` and `control` in pinned memory: where the second begins, on a line of its
/// own, and how many there are.
inline constexpr unsigned control_at = 32, state_words = 2 * control_at;

/// Slots for tasks in staging buffers, for tasks in packets, and for tickets of many packets. Each
/// kind is a pool of its own: who holds one of the last kind waits for the others.
/// `returned`: staged too, for packets that the host brings back, which others wait for.
enum class slot_kind { staged, packet, ticket, returned };
inline constexpr unsigned slot_kinds = 4;

/// The slots of a kind. The first `near` of them are tried first.
struct slot_range {
  std::uint32_t first, count, near;
};

/// Records of tasks on their way to the host's ordinary memory.
inline constexpr std::uint32_t swap_records = 1024;

/// What a plan needs to know of the device.
struct device_facts {
  bool is_cuda = false;
  unsigned sms = 1;             ///< multiprocessors
  unsigned blocks_per_sm = 1;   ///< blocks of this runtime's kernel that fit on each
  std::size_t frame_bytes = 0;  ///< of stack that a thread of this kernel takes by itself
  bool calls_apart = false;     ///< and its tasks are called by address
};

/// Memory that the plan asks for: what it holds, where it lies, how much it is.
struct memory_part {
  const char* name;
  simt::space where;
  std::size_t bytes;
};

struct memory_plan {
  /// As they were given, with every default resolved.
  runtime_options options;
  view_sizes sizes;  ///< what kernels are told
  std::uint32_t idle_us, memory_wait_us;
  std::uint32_t trace_capacity;  ///< events a worker; 0: no trace
  bool joins;                    ///< a task type brings a result: there are frames, and roots

  std::uint32_t rings, slots;  ///< of all levels, and kinds
  slot_range slot_ranges[slot_kinds];
  std::uint32_t overflow_batches;
  std::size_t overflow_bytes;
  std::size_t deques, bitmap_words;
  std::size_t frames;         ///< in whole groups
  std::uint32_t sink_groups;  ///< of them, the first: for what found no room
  std::uint32_t stocked;      ///< pool batches that workers begin with; the others are in the ring
  // Cells of rings: powers of two.
  std::uint32_t free_batch_cells, free_overflow_cells, free_frame_cells, spill_cells;

  /// All that is allocated, but for a trace.
  std::vector<memory_part> parts;
  std::size_t device_bytes, pinned_bytes;  ///< the sums of the parts; the first within memory_limit
  std::size_t trace_bytes;                 ///< of device memory, beside the limit
  std::size_t stack_bytes;                 ///< of a thread of the kernel, in whole KiB

  std::uint32_t frame_groups() const { return static_cast<std::uint32_t>(frames / frame_group); }
};

/// The plan for these options: a pure function. Where no task starts others
/// (program::starts_tasks), there is no more task memory than workers begin with, and no overflow.
/// Throws error(invalid_option), whose text says what was asked for, what is possible, and what to
/// do.
memory_plan plan_memory(const runtime_options& asked, std::span<const task_type> types,
                        const device_facts& device, bool starts_tasks);

}  // namespace grosr::run
