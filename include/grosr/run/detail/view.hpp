// What the resident scheduler keeps where: the structs that the host, the workers and the monitor
// share, and the `view` through which a kernel reaches them. docs/internals/scheduler.md draws the
// picture.
#pragma once

#include <cerrno>
#include <cstdint>

#include "grosr/alloc/heap_ref.hpp"
#include "grosr/queue/call_ring.hpp"
#include "grosr/queue/deque.hpp"
#include "grosr/queue/ring.hpp"
#include "grosr/queue/submission_ring.hpp"
#include "grosr/run/detail/promise.hpp"
#include "grosr/run/detail/words.hpp"
#include "grosr/run/task.hpp"

namespace grosr::run {

/// Records in a pool batch, and in a slot that has a staging buffer. Slots below
/// runtime_options::staging_buffers have one; the others complete tickets, and tasks that travel
/// inside their packet.
inline constexpr std::uint32_t batch_records = 32;
inline constexpr std::uint32_t staging_records = 512;

/// The record layout of submission rings: the first words of a packet; payload follows.
struct packet_header {
  std::uint32_t kind;   ///< type | level << 8 | carries_task << 16 | comes_back << 17
  std::uint32_t count;  ///< tasks
  std::uint32_t slot;   ///< completes this packet; holds the records that the packet does not carry
  std::uint32_t ticket;          ///< slot that completes the ticket; the same when it is one packet
  std::uint32_t ticket_packets;  ///< packets of the ticket; 0: this one, and the slot is the ticket
  std::uint32_t generation;      ///< of the slot
  std::uint32_t ticket_generation;
  std::uint32_t reserved;

  /// Whether the packet carries its only task as payload.
  GROSR_DEVICE bool carries_task() const { return (kind >> 16 & 1) != 0; }
  /// Whether its tasks were swapped out, or are completions: each is counted among the activity
  /// word's holders until a worker has the packet.
  GROSR_DEVICE bool comes_back() const { return (kind >> 17 & 1) != 0; }
  GROSR_DEVICE std::uint32_t type() const { return kind & 0xff; }
  GROSR_DEVICE std::uint32_t level() const { return kind >> 8 & 0xff; }

  static std::uint32_t kind_of(std::uint32_t type, std::uint32_t level, bool carries_task,
                               bool comes_back) {
    return type | level << 8 | (carries_task ? 1u << 16 : 0u) | (comes_back ? 1u << 17 : 0u);
  }

  /// Whole warp: the header of a packet; of `fields` words, the others are 0.
  GROSR_DEVICE static packet_header of(const queue::held_packet& l, unsigned fields = 7) {
    std::uint32_t word[8] = {};
    for (unsigned i = 0; i < 7; ++i)
      if (i < fields) word[i] = l.word(i);
    return {word[0], word[1], word[2], word[3], word[4], word[5], word[6], 0};
  }
};
inline constexpr unsigned packet_payload_word = sizeof(packet_header) / sizeof(std::uint32_t);
inline constexpr unsigned packet_payload_bytes = max_task_bytes;
static_assert(packet_payload_word * 4 + packet_payload_bytes <= sizeof(queue::packet));

/// What the device remembers of a slot while its tasks are spread over several refs.
struct slot_info {
  std::uint32_t total;  ///< tasks
  std::uint32_t ticket;
  std::uint32_t ticket_packets;
  std::uint32_t generation;
  std::uint32_t ticket_generation;
  std::uint32_t reserved;
  std::uint64_t count;  ///< slot_count
};

/// Counters of one worker; all only grow. Device memory.
struct worker_stats {
  std::uint64_t tasks, spawned, batches, stolen, inlined, spilled, failed, rejected, joined,
      swapped, awaited, busy_ns;
  std::uint64_t requests;  ///< added to one by one, not by flush_stats()
};

/// Free pool batches that a worker keeps at hand, at most.
inline constexpr std::uint32_t magazine_capacity = 16;

/// Free frames that travel together between workers and the ring of free ones.
inline constexpr std::uint32_t frame_group = 8;

/// What of a worker survives a kernel's end.
struct worker_save {
  std::uint32_t active;
  std::uint32_t magazine_count, frame_count;
  std::uint32_t magazine[magazine_capacity];
  std::uint32_t frames[frame_group - 1];
};

/// What spawns share that find no room. Device memory.
struct room_state {
  alignas(128) std::uint64_t waiting;  ///< waiting_count
  std::uint32_t waiting_blocks;        ///< blocks of those workers
  std::uint32_t stalled;               ///< of those workers, those that wait for a rendezvous
  queue::call_ring_ref swap;           ///< takes tasks to the host's memory
};

/// What a task did that failed. engine.cpp has the words.
enum class failure : std::uint32_t {
  returned,      ///< it returned an error
  no_place,      ///< it was not run: nobody could make room for it
  no_frame,      ///< nobody could make room for its continuation
  gave_nothing,  ///< it ended without a result
  gave_twice,    ///< it gave or passed twice
  joined_twice,  ///< it joined twice
  gave_and_joined,
  forked_alone,   ///< it forked before it joined
  forked_astray,  ///< it forked into what is no member of what join() returned
};
GROSR_DEVICE constexpr int code_of(failure f) {
  switch (f) {
    case failure::returned:
      return 0;
    case failure::no_place:
      return -ENOSPC;
    case failure::no_frame:
      return -ENOMEM;
    case failure::gave_nothing:
      return -ENODATA;
    case failure::forked_astray:
      return -EFAULT;
    default:
      return -EINVAL;
  }
}

/// A failed task, kept in host memory. `serial` is written last.
struct error_record {
  std::uint32_t type;
  std::int32_t code;
  failure what;
  unsigned char task[max_task_bytes];
  std::uint32_t serial;  ///< 1 + position; 0: not written
};
inline constexpr std::uint32_t errors_kept = 64;

/// What a worker did, for traces.
struct trace_event {
  enum kinds : std::uint32_t {
    run,    ///< tasks, from begin to end
    ready,  ///< a batch of tasks that were spawned was closed, for whoever takes it
    steal,  ///< a batch was taken from worker `count`
    leave,  ///< the worker left the device: it was parked, or the runtime stopped
  };
  static constexpr std::uint32_t in_batch = 1u << 30, in_slot = 1u << 31;

  std::uint64_t begin, end;  ///< clock_ns
  std::uint32_t type, count, depth, sm;
  std::uint32_t kind;
  std::uint32_t place;  ///< where the tasks lay: a batch, in_batch, or a slot, in_slot; 0: nowhere
};

// ---- the view, in parts; each says who may read and write what it points to ----

/// How many workers may use the reserves at a time, at most.
inline constexpr std::uint32_t most_reserve_owners = 64;

/// Device memory for words of the whole device, each in a line of its own.
struct common_memory {
  alignas(128) std::uint64_t activity;
  alignas(128) std::uint64_t quiet_since;
  alignas(128) std::uint64_t yield_granted;
  alignas(128) run::signals signals;
  alignas(128) std::uint32_t error_count;
  alignas(128) std::uint32_t reserve_owners[most_reserve_owners];
  alignas(128) std::uint32_t exited;
  alignas(128) std::uint32_t cancelled;
  alignas(128) std::uint32_t bundle_limits[max_task_types];
};

/// Words of the whole device: any worker reads and writes them, by atomics. The host clears them
/// before the first kernel, and at an abort it sets `leave`.
struct common_words {
  std::uint64_t* activity;        ///< activity_count
  run::signals* signals;          ///< hints and `leave`: what every worker looks at
  std::uint64_t* quiet_since;     ///< when the last active worker came to rest (clock_ns)
  std::uint32_t* reserve_owners;  ///< of each part of the reserves: 1 + its owner; 0: nobody
  std::uint32_t* exited;          ///< how many workers have left, of all kernels (wraps)
  std::uint64_t* yield_granted;   ///< when (clock_ns) a task was last told to yield; 0: it has
  std::uint32_t* cancelled;       ///< how many frames are
  std::uint32_t* bundle_limits;   ///< packets of each type that are taken together; 0: as 1
  room_state* room;               ///< for spawns that find none
};

/// Submission rings: a lane each at most, where a warp looks at all of them.
inline constexpr unsigned most_rings_per_level = 8,
                          most_rings = priority_levels * most_rings_per_level;
static_assert(most_rings <= simt::warp_size);

/// How the host and the workers talk. The host writes staging buffers and `control`, and workers
/// read them; workers write slot words, `quiescent` and `state`, and the host reads them. Slots are
/// the workers' own. Rings of level l are [l * rings_per_level, (l + 1) * rings_per_level).
struct submission_words {
  queue::submission_rings_ref rings;
  slot_info* slots;
  const unsigned char* staging;  // pinned
  std::uint32_t* slot_words;  // pinned: slot_word; the host gives back a slot that it did not use
  std::uint32_t* quiescent;   // pinned, one a ring
  std::uint32_t* state;       // pinned: state_word; the host says that a kernel it parked has left
  const std::uint32_t* control;  // pinned: control_word, swap_full
};

/// Memory of tasks that were spawned, and the refs to it. Workers only: the records of a batch
/// belong to the worker that holds a ref to them, a deque's bottom to its worker, and the rest is
/// for any worker, by the protocol of ring, deque or bitmap. The host fills the rings of free
/// batches before the first kernel.
struct task_memory {
  unsigned char* pool;      ///< batches below pool_batches
  unsigned char* overflow;  ///< pinned: the batches above, for when the pool is empty
  queue::ring_ref<std::uint32_t> free_overflow;
  queue::ring_ref<std::uint32_t> free_batches;
  std::uint64_t* deque_words;    ///< [level][worker], block workers after warp workers
  std::uint64_t* deque_entries;  ///< [level][worker][capacity]
  std::uint32_t* bitmaps;        ///< [level][bitmap_words], warps' words, then blocks'
  queue::ring_ref<std::uint64_t> spill[priority_levels];        ///< for warps
  queue::ring_ref<std::uint64_t> block_spill[priority_levels];  ///< for blocks
};

/// Fork and join; nothing unless a task type brings a result. A frame belongs to the worker that
/// took it until its task has forked, then to whoever brings a result; a promise is written once,
/// by the worker that brings its result, and the host reads it when it is done.
struct frame_memory {
  unsigned char* memory;  ///< the first ones, one a worker, are for what found no room
  queue::ring_ref<std::uint32_t> free;  ///< groups of them: frame_stack.hpp
  promise* promises;                    ///< pinned: what the host waits for
};

/// What workers tell of themselves. Each writes its own place; an error record belongs to the
/// worker that counted it. The host reads all of it, and fills `saves` before the first kernel. At
/// an abort one worker reads `running` of all.
struct report_memory {
  worker_stats* stats;
  worker_save* saves;           ///< for the next kernel
  std::uint32_t* running;       ///< device: type + 1, or 0, by worker
  std::uint32_t* running_host;  ///< pinned: heartbeat_word, by worker; at most every 16 us
  error_record* errors;         ///< pinned
  std::uint32_t* error_count;
};

/// Each worker writes its own part; the host reads it when the kernel has left.
struct trace_memory {
  trace_event* events;  ///< null: off; [worker][trace_capacity]
  std::uint32_t* counts;
};

/// How many there are of everything, and how large (memory_plan.hpp). Nobody writes them.
struct view_sizes {
  std::uint32_t rings_per_level, workers, blocks, warp_bitmap_words, block_bitmap_words;
  std::uint32_t deque_capacity, batch_bytes, staging_bytes, magazine_target, pool_reserve,
      pool_batches, inline_depth, frame_stride, frame_reserve, frame_keep;
  std::uint32_t reserve_parts, least_pool_reserve, least_frame_reserve;  ///< the least: of part 0
};

/// Everything a kernel needs; passed by value, and copied to block-shared memory by each block. The
/// host fills it before the first kernel; from then on nobody writes it, but `epoch` for each
/// launch.
struct view {
  common_words common;
  submission_words submission;
  task_memory tasks;
  frame_memory frames;
  void* collected;  ///< see collection; collected_count of them
  report_memory reports;
  // Of both at least one is empty. What tasks get.
  heap_ref heap;                  ///< what the runtime was given, if it is not checked
  checked_heap_ref checked_heap;  ///< if it is
  trace_memory trace;
  view_sizes sizes;
  std::uint32_t epoch, idle_us, trace_capacity, memory_wait_us, collected_count;
  std::uint32_t port;  ///< where completions are taken for it; 0: nowhere

  GROSR_DEVICE std::uint32_t all_workers() const { return sizes.workers + sizes.blocks; }
  GROSR_DEVICE queue::deque_ref deque(std::uint32_t level, std::uint32_t worker) const {
    std::uint64_t i = std::uint64_t{level} * all_workers() + worker;
    return {tasks.deque_words + i, tasks.deque_entries + i * sizes.deque_capacity,
            sizes.deque_capacity};
  }
  GROSR_DEVICE unsigned char* batch_at(std::uint32_t batch) const {
    return batch < sizes.pool_batches
               ? tasks.pool + std::uint64_t{batch} * sizes.batch_bytes
               : tasks.overflow + std::uint64_t{batch - sizes.pool_batches} * sizes.batch_bytes;
  }
  GROSR_DEVICE unsigned char* frame_at(std::uint32_t frame) const {
    return frames.memory + std::uint64_t{frame} * sizes.frame_stride;
  }
  GROSR_DEVICE std::uint32_t* bitmap(std::uint32_t level, bool block) const {
    return tasks.bitmaps + level * (sizes.warp_bitmap_words + sizes.block_bitmap_words) +
           (block ? sizes.warp_bitmap_words : 0);
  }
  /// Hints and leave, in one load.
  GROSR_DEVICE signals poll_signals() const {
    return simt::atomic_ref<signals>(*common.signals).load(simt::relaxed);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> hints() const {
    return simt::atomic_ref<std::uint32_t>(common.signals->hints);
  }
  GROSR_DEVICE std::uint32_t leave() const {
    return simt::atomic_ref<std::uint32_t>(common.signals->leave).load(simt::relaxed);
  }
  GROSR_DEVICE bool aborted() const { return leave() == leave_abort; }
};

}  // namespace grosr::run
