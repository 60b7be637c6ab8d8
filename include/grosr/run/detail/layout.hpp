// What the resident scheduler keeps where: the structs that the host, the workers and the monitor
// share, and the `view` through which a kernel reaches them. docs/internals/scheduler.md draws the
// picture.
#pragma once

#include <cstdint>

#include "grosr/alloc/heap_ref.hpp"
#include "grosr/queue/deque.hpp"
#include "grosr/queue/ingress.hpp"
#include "grosr/queue/ring.hpp"
#include "grosr/run/detail/root.hpp"
#include "grosr/run/task.hpp"

namespace grosr::run {

/// Names a batch: where its records lie, which of them are meant, and what they are. 0 is none.
///
///   bits 0-27 where │ 28-38 first │ 39-49 count │ 50-54 type │ 55-57 level │ 61 slot │ 62 whole │
///   63
///
/// `where` is a pool batch, or a slot when the slot bit is set. `whole` marks a line's tasks that
/// were never split: their end completes the line without counting. Bit 63 is always set.
struct ref {
  std::uint64_t bits = 0;

  GROSR_DEVICE static ref make(std::uint32_t where, bool slot, std::uint32_t first,
                               std::uint32_t count, std::uint32_t type, std::uint32_t level,
                               bool whole) {
    return {std::uint64_t{where} | std::uint64_t{first} << 28 | std::uint64_t{count} << 39 |
            std::uint64_t{type} << 50 | std::uint64_t{level} << 55 | std::uint64_t{slot} << 61 |
            std::uint64_t{whole} << 62 | std::uint64_t{1} << 63};
  }
  GROSR_DEVICE explicit operator bool() const { return bits != 0; }
  GROSR_DEVICE std::uint32_t where() const { return static_cast<std::uint32_t>(bits) & 0xfffffffu; }
  GROSR_DEVICE std::uint32_t first() const { return bits >> 28 & 0x7ff; }
  GROSR_DEVICE std::uint32_t count() const { return bits >> 39 & 0x7ff; }
  GROSR_DEVICE std::uint32_t type() const { return bits >> 50 & 0x1f; }
  GROSR_DEVICE std::uint32_t level() const { return bits >> 55 & 0x7; }
  GROSR_DEVICE bool slot() const { return bits >> 61 & 1; }
  GROSR_DEVICE bool whole() const { return bits >> 62 & 1; }
  GROSR_DEVICE ref split() const { return {bits & ~(std::uint64_t{1} << 62)}; }

  /// The first n records; rest() has the others.
  GROSR_DEVICE ref take(std::uint32_t n) const {
    return make(where(), slot(), first(), n, type(), level(), whole() && n == count());
  }
  GROSR_DEVICE ref rest(std::uint32_t n) const {
    return make(where(), slot(), first() + n, count() - n, type(), level(), false);
  }
};

/// Records in a pool batch, and in a slot that has a slab. Slots below runtime_options::slabs have
/// one; the others complete tickets, and tasks that travel inside their line.
inline constexpr std::uint32_t batch_records = 32;
inline constexpr std::uint32_t slab_records = 512;

/// The record layout of ingress: the first words of a line; payload follows.
struct line_header {
  std::uint32_t kind;    ///< type | level << 8 | carries_task << 16
  std::uint32_t count;   ///< tasks
  std::uint32_t slot;    ///< completes this line; holds the records that the line does not carry
  std::uint32_t ticket;  ///< slot that completes the ticket; the same when it is one line
  std::uint32_t ticket_lines;  ///< lines of the ticket
  std::uint32_t generation;    ///< of the slot
  std::uint32_t ticket_generation;
  std::uint32_t reserved;

  /// Whether the line carries its only task as payload.
  GROSR_DEVICE bool carries_task() const { return (kind >> 16 & 1) != 0; }
  GROSR_DEVICE std::uint32_t type() const { return kind & 0xff; }
  GROSR_DEVICE std::uint32_t level() const { return kind >> 8 & 0xff; }

  static std::uint32_t kind_of(std::uint32_t type, std::uint32_t level, bool carries_task) {
    return type | level << 8 | (carries_task ? 1u << 16 : 0u);
  }

  /// Whole warp: the header of a line; of `fields` words, the others are 0.
  GROSR_DEVICE static line_header of(const queue::held_line& l, unsigned fields = 7) {
    std::uint32_t word[8] = {};
    for (unsigned i = 0; i < 7; ++i)
      if (i < fields) word[i] = l.word(i);
    return {word[0], word[1], word[2], word[3], word[4], word[5], word[6], 0};
  }
};
inline constexpr unsigned line_payload_word = sizeof(line_header) / sizeof(std::uint32_t);
inline constexpr unsigned line_payload_bytes = max_task_bytes;
static_assert(line_payload_word * 4 + line_payload_bytes <= sizeof(queue::line));

/// What the device remembers of a slot while its tasks are spread over several refs.
struct slot_info {
  std::uint32_t total;  ///< tasks
  std::uint32_t ticket;
  std::uint32_t ticket_lines;
  std::uint32_t generation;
  std::uint32_t ticket_generation;
  std::uint32_t reserved;
  std::uint64_t count;  ///< failed << 32 | done: of tasks; or, in a ticket's slot, of lines
};

/// What slot_info::count grows by.
GROSR_DEVICE inline std::uint64_t counted(std::uint32_t done, std::uint32_t failed) {
  return std::uint64_t{failed} << 32 | done;
}

/// What a worker tells the host: type + 1, or 0, and a serial number that shows that it goes on.
GROSR_DEVICE inline std::uint32_t told_word(std::uint32_t type_plus_one, std::uint32_t serial) {
  return type_plus_one << 24 | (serial & 0xffffffu);
}

/// A slot's word in host memory: generation << 1 | failed.
GROSR_DEVICE inline std::uint32_t slot_word(std::uint32_t generation, bool failed) {
  return generation << 1 | (failed ? 1u : 0u);
}

/// Counters of one worker; all only grow. Device memory.
struct worker_stats {
  std::uint64_t tasks, spawned, batches, stolen, inlined, spilled, failed, rejected, joined,
      busy_ns;
};

/// Free pool batches that a worker keeps at hand, at most.
inline constexpr std::uint32_t stock_capacity = 16;

/// Free frames that travel together between workers and the ring of free ones.
inline constexpr std::uint32_t frame_group = 8;

/// What of a worker survives a kernel's end.
struct worker_save {
  std::uint32_t active;
  std::uint32_t stock_count, frame_count;
  std::uint32_t stock[stock_capacity];
  std::uint32_t frames[frame_group - 1];
};

/// A failed task, kept in host memory. `serial` is written last.
struct error_record {
  std::uint32_t type;
  std::int32_t code;
  unsigned char task[max_task_bytes];
  std::uint32_t serial;  ///< 1 + position; 0: not written
};
inline constexpr std::uint32_t errors_kept = 64;

struct trace_event {
  std::uint64_t begin, end;  ///< clock_ns
  std::uint32_t type, count, depth, sm;
};

// `state` word in host memory: epoch << 1 | leaving.
// Beside it: set when what ran at an abort was told; and the epoch of the last kernel that all of
// its workers have left.
inline constexpr unsigned state_named = 1, state_left = 2;
// `control` word in host memory: 0, or epoch << 2 | request.
enum class request : std::uint32_t { none = 0, park = 1, abort = 2 };

// The device word `leave`: 0, the epoch that is to leave, or leave_abort.
inline constexpr std::uint32_t leave_abort = 0xffffffffu;

// The device word `board`: how often workers became active (wraps), and how many things hold work:
// active workers, and refs in spill rings. The first half tells a publisher that nobody was active
// in between (docs/internals/scheduler.md, "Quiescence").
inline constexpr std::uint64_t activation = (std::uint64_t{1} << 32) + 1;
GROSR_DEVICE inline std::uint32_t holders(std::uint64_t board) {
  return static_cast<std::uint32_t>(board);
}

// Bits of the device word `hints`: level l has work for warps: bit l; for blocks: bit 8 + l.
GROSR_DEVICE inline std::uint32_t hint_bit(std::uint32_t level, bool block) {
  return 1u << (level + (block ? 8 : 0));
}

/// Set while warps wait for work: workers publish what they could keep.
inline constexpr std::uint32_t hungry_bit = 1u << 16;

/// Set while a frame is cancelled: tasks look whether theirs is, before they begin.
inline constexpr std::uint32_t cancelling_bit = 1u << 17;

/// Everything a kernel needs; passed by value, and copied to block-shared memory by each block.
struct view {
  // Device memory, one line each.
  std::uint64_t* board;        ///< activations << 32 | active workers and refs in spill rings
  std::uint32_t* hints;        ///< hint bits; hints[1] is `leave`
  std::uint64_t* quiet_since;  ///< when the last active worker came to rest (clock_ns)
  std::uint32_t* keeper;       ///< 1 + the worker that may use the pool's margin; 0: nobody
  std::uint32_t* departed;     ///< how many workers have left, of all kernels (wraps)
  std::uint64_t* way_made;     ///< when (clock_ns) a task was last told to make way; 0: it has
  std::uint32_t* cancelled;    ///< how many frames are
  // Ingress: ports of level l are [l * ports_per_level, (l + 1) * ports_per_level).
  queue::ingress_ref* ports;
  slot_info* slots;
  const unsigned char* slabs;    // pinned
  std::uint32_t* slot_words;     // pinned
  std::uint32_t* quiescent;      // pinned, one a port
  std::uint32_t* state;          // pinned, see state_named and state_left
  const std::uint32_t* control;  // pinned
  // Task memory.
  unsigned char* pool;      ///< batches below pool_batches
  unsigned char* overflow;  ///< pinned: the batches above, for when the pool is empty
  queue::ring_ref<std::uint32_t> free_overflow;
  queue::ring_ref<std::uint32_t> free_batches;
  std::uint64_t* deque_words;    ///< [level][worker], block workers after warp workers
  std::uint64_t* deque_entries;  ///< [level][worker][capacity]
  std::uint32_t* bitmaps;        ///< [level][bitmap_words], warps' words, then blocks'
  queue::ring_ref<std::uint64_t> spill[priority_levels];        ///< for warps
  queue::ring_ref<std::uint64_t> block_spill[priority_levels];  ///< for blocks
  // Fork and join; nothing unless a task type brings a result.
  unsigned char* frames;  ///< the first ones, one a worker, are for what found no room
  queue::ring_ref<std::uint32_t> free_frames;  ///< groups of them: frame_stack.hpp
  root* roots;                                 ///< pinned: what the host waits for
  void* collected;                             ///< see collection; collected_count of them
  // Reports.
  worker_stats* stats;
  worker_save* saves;
  std::uint32_t* running;       ///< device: type + 1, or 0, by worker
  std::uint32_t* running_host;  ///< pinned: told_word, by worker; at most every 16 us
  error_record* errors;         ///< pinned
  std::uint32_t* error_count;
  // Of both at least one is empty.
  heap_ref heap;                  ///< what the runtime was given, if it is not checked
  checked_heap_ref checked_heap;  ///< if it is
  trace_event* trace;             ///< null: off; [worker][trace_capacity]
  std::uint32_t* trace_counts;

  std::uint32_t ports_per_level, workers, blocks, warp_bitmap_words, block_bitmap_words;
  std::uint32_t deque_capacity, batch_bytes, slab_bytes, stock_target, pool_margin, pool_batches,
      inline_depth, frame_stride, frame_margin, frame_keep;
  std::uint32_t epoch, idle_us, trace_capacity, memory_wait_us, collected_count;

  GROSR_DEVICE std::uint32_t all_workers() const { return workers + blocks; }
  GROSR_DEVICE queue::deque_ref deque(std::uint32_t level, std::uint32_t worker) const {
    std::uint64_t i = std::uint64_t{level} * all_workers() + worker;
    return {deque_words + i, deque_entries + i * deque_capacity, deque_capacity};
  }
  GROSR_DEVICE unsigned char* batch_at(std::uint32_t batch) const {
    return batch < pool_batches ? pool + std::uint64_t{batch} * batch_bytes
                                : overflow + std::uint64_t{batch - pool_batches} * batch_bytes;
  }
  GROSR_DEVICE unsigned char* frame_at(std::uint32_t frame) const {
    return frames + std::uint64_t{frame} * frame_stride;
  }
  GROSR_DEVICE std::uint32_t* bitmap(std::uint32_t level, bool block) const {
    return bitmaps + level * (warp_bitmap_words + block_bitmap_words) +
           (block ? warp_bitmap_words : 0);
  }
  /// hints, and leave in the high half, in one load.
  GROSR_DEVICE std::uint64_t hints_and_leave() const {
    return simt::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(hints))
        .load(simt::relaxed);
  }
  GROSR_DEVICE std::uint32_t leave() const {
    return simt::atomic_ref<std::uint32_t>(hints[1]).load(simt::relaxed);
  }
  GROSR_DEVICE bool aborted() const { return leave() == leave_abort; }
};

}  // namespace grosr::run
