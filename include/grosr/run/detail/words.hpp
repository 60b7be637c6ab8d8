// The packed words of run/: what several things that change or travel together look like in 32 or
// 64 bits. Every shift and mask of them is here; elsewhere they have names. A box says how the bits
// lie, the highest on the left.
//
//   word            where it is                         who writes it
//   signals, hint   device memory, one 64-bit load      any worker
//   activity_count  device memory                       any worker
//   ref             private refs, deques, spills        who holds the records
//   destination     records of tasks with a result      who forks
//   waiter_word     records of calls that are awaited   who awaits
//   slot_count      device memory, by slot              workers that ran tasks of the slot
//   slot_word       pinned memory, by slot              who completes the slot
//   heartbeat_word  pinned memory, by worker            the worker
//   state_word      pinned memory                       block 0; who says that the kernel leaves
//   control_word    pinned memory                       the host
//   waiting_count   device memory                       workers that wait for room
#pragma once

#include <cstdint>

#include "grosr/run/task.hpp"

namespace grosr::run {

// ---- sets of levels: bit l is level l ----

inline constexpr std::uint32_t all_levels = (1u << priority_levels) - 1;
GROSR_DEVICE constexpr std::uint32_t level_bit(std::uint32_t level) { return 1u << level; }
GROSR_DEVICE constexpr bool has_level(std::uint32_t levels, std::uint32_t level) {
  return (levels >> level & 1) != 0;
}
/// The levels that are more urgent.
GROSR_DEVICE constexpr std::uint32_t levels_above(std::uint32_t level) {
  return all_levels & ~((2u << level) - 1u);
}

// ---- sets of open batches: bit type * priority_levels + level ----

static_assert(priority_levels * max_task_types <= 64);

GROSR_DEVICE constexpr std::uint32_t kind_of(std::uint32_t type, std::uint32_t level) {
  return type * priority_levels + level;
}
GROSR_DEVICE constexpr std::uint64_t kind_bit(std::uint32_t kind) {
  return std::uint64_t{1} << kind;
}
inline constexpr std::uint64_t lowest_of_every_type = [] {
  std::uint64_t kinds = 0;
  for (unsigned type = 0; type < max_task_types; ++type)
    kinds |= std::uint64_t{1} << (type * priority_levels);
  return kinds;
}();
/// Those of some levels, of every type.
GROSR_DEVICE constexpr std::uint64_t kinds_of_levels(std::uint32_t levels) {
  return lowest_of_every_type * levels;
}

// ---- hints ----

/// Bits of signals::hints.
///
///   cancelling (17) │ starving (16) │ levels with work for blocks (8-11) │ for warps (0-3)
struct hint {
  static constexpr unsigned first_of_blocks = 8;
  static constexpr std::uint32_t warps = all_levels, blocks = all_levels << first_of_blocks;
  static constexpr std::uint32_t work = warps | blocks;
  /// Set while warps wait for work: workers publish private refs.
  static constexpr std::uint32_t starving = 1u << 16;
  /// Set while a frame is cancelled: tasks look whether theirs is, before they begin.
  static constexpr std::uint32_t cancelling = 1u << 17;

  /// That a level has work, for warps or for blocks.
  GROSR_DEVICE static constexpr std::uint32_t of(std::uint32_t level, bool block) {
    return 1u << (level + (block ? first_of_blocks : 0));
  }
  GROSR_DEVICE static constexpr std::uint32_t for_blocks(std::uint32_t levels) {
    return levels << first_of_blocks;
  }
  /// The levels of which blocks have work; with bits of other things above them.
  GROSR_DEVICE static constexpr std::uint32_t levels_of_blocks(std::uint32_t hints) {
    return hints >> first_of_blocks;
  }
};

/// signals::leave that every kernel obeys.
inline constexpr std::uint32_t leave_abort = 0xffffffffu;

/// What a worker looks at, in one load: 64 bits of device memory. Each word of them is written by
/// itself.
struct alignas(8) signals {
  std::uint32_t hints;  ///< bits of hint
  std::uint32_t leave;  ///< 0, the epoch that is to leave, or leave_abort

  /// Whether the kernel of this epoch is to leave.
  GROSR_DEVICE constexpr bool says_leave(std::uint32_t epoch) const {
    return leave == epoch || leave == leave_abort;
  }
};

// ---- the activity word ----

/// The device word `activity`: how often workers became active (wraps), and how many things hold
/// work: active workers, refs in spill rings, tasks that are swapped out, and calls that tasks
/// await. The first half tells a publisher that nobody was active in between
/// (docs/internals/scheduler.md, "Quiescence").
///
///   activations (32) │ holders (32)
struct activity_count {
  /// What the activity word grows by when a worker becomes active.
  static constexpr std::uint64_t activation = (std::uint64_t{1} << 32) + 1;
  GROSR_DEVICE static constexpr std::uint32_t holders(std::uint64_t activity) {
    return static_cast<std::uint32_t>(activity);
  }
};

/// The device word room_state::waiting: how many workers have a lane that waits for room for a task
/// or a frame, how many of these for a task, and how often a lane went on, or tried to (wraps). The
/// same word twice means that nobody did in between.
///
///   times (32) │ for a task (16) │ workers (16)
struct waiting_count {
  static constexpr std::uint64_t for_task = std::uint64_t{1} << 16, time = std::uint64_t{1} << 32;
  GROSR_DEVICE static constexpr std::uint32_t workers(std::uint64_t word) { return word & 0xffff; }
  GROSR_DEVICE static constexpr std::uint32_t for_tasks(std::uint64_t word) {
    return word >> 16 & 0xffff;
  }
};

// ---- records ----

/// Names a batch: where its records lie, which of them are meant, and what they are. 0 is none.
///
///   set (63) │ whole (62) │ slot (61) │ level (55-57) │ type (50-54) │ count (39-49) │
///   first (28-38) │ where (0-27)
///
/// `where` is a pool batch, or a slot when the slot bit is set. `whole` marks a packet's tasks that
/// were never split: their end completes the packet without counting. The highest bit is always
/// set.
struct ref {
  std::uint64_t bits = 0;

  static constexpr unsigned first_at = 28, count_at = 39, type_at = 50, level_at = 55;
  static constexpr std::uint32_t where_mask = (1u << 28) - 1, records_mask = (1u << 11) - 1;
  static constexpr std::uint32_t type_mask = (1u << 5) - 1, level_mask = (1u << 3) - 1;
  static constexpr unsigned slot_at = 61, whole_at = 62, set_at = 63;

  GROSR_DEVICE static ref make(std::uint32_t where, bool slot, std::uint32_t first,
                               std::uint32_t count, std::uint32_t type, std::uint32_t level,
                               bool whole) {
    return {std::uint64_t{where} | std::uint64_t{first} << first_at |
            std::uint64_t{count} << count_at | std::uint64_t{type} << type_at |
            std::uint64_t{level} << level_at | std::uint64_t{slot} << slot_at |
            std::uint64_t{whole} << whole_at | std::uint64_t{1} << set_at};
  }
  GROSR_DEVICE explicit operator bool() const { return bits != 0; }
  GROSR_DEVICE std::uint32_t where() const { return static_cast<std::uint32_t>(bits) & where_mask; }
  GROSR_DEVICE std::uint32_t first() const { return bits >> first_at & records_mask; }
  GROSR_DEVICE std::uint32_t count() const { return bits >> count_at & records_mask; }
  GROSR_DEVICE std::uint32_t type() const { return bits >> type_at & type_mask; }
  GROSR_DEVICE std::uint32_t level() const { return bits >> level_at & level_mask; }
  GROSR_DEVICE bool slot() const { return bits >> slot_at & 1; }
  GROSR_DEVICE bool whole() const { return bits >> whole_at & 1; }
  GROSR_DEVICE ref split() const { return {bits & ~(std::uint64_t{1} << whole_at)}; }

  /// The first n records; rest() has the others.
  GROSR_DEVICE ref take(std::uint32_t n) const {
    return make(where(), slot(), first(), n, type(), level(), whole() && n == count());
  }
  GROSR_DEVICE ref rest(std::uint32_t n) const {
    return make(where(), slot(), first() + n, count() - n, type(), level(), false);
  }
};

// ---- results ----

/// Where a result goes: a slot of a frame, or of what the host waits for. 0 is nowhere.
///
///   set (63) │ host (62) │ see below (40-51) │ byte in it (32-38) │ frame, or promise (0-31)
///
/// In a record of a continuation bits 40 to 51 hold the status of what it waited for: -status. In a
/// frame's header (frame_header::kind_and_destination) bits 40 to 44 hold the continuation's type,
/// 45 to 47 its level.
struct destination {
  std::uint64_t bits = 0;

  static constexpr std::uint64_t is_set = std::uint64_t{1} << 63, on_host = std::uint64_t{1} << 62;
  static constexpr unsigned offset_at = 32, status_at = 40, kind_at = 40;
  static constexpr std::uint32_t offset_mask = (1u << 7) - 1, status_mask = (1u << 12) - 1;
  static constexpr unsigned type_bits = 5, level_bits = 3;

  GROSR_DEVICE static destination in_frame(std::uint32_t frame, std::uint32_t offset) {
    return {is_set | std::uint64_t{offset} << offset_at | frame};
  }
  static destination of_host(std::uint32_t promise) { return {is_set | on_host | promise}; }
  GROSR_DEVICE explicit operator bool() const { return bits != 0; }
  GROSR_DEVICE bool host() const { return (bits & on_host) != 0; }
  GROSR_DEVICE std::uint32_t where() const { return static_cast<std::uint32_t>(bits); }
  GROSR_DEVICE std::uint32_t offset() const {
    return static_cast<std::uint32_t>(bits >> offset_at & offset_mask);
  }
  GROSR_DEVICE destination with_status(int status) const {
    return {bits | std::uint64_t{static_cast<std::uint32_t>(-status) & status_mask} << status_at};
  }
  GROSR_DEVICE int status() const { return -static_cast<int>(bits >> status_at & status_mask); }
  GROSR_DEVICE destination plain() const {
    return {bits & ~(std::uint64_t{status_mask} << status_at)};
  }
};

GROSR_DEVICE inline std::uint64_t with_kind(destination h, std::uint32_t type,
                                            std::uint32_t level) {
  return h.bits | std::uint64_t{type | level << destination::type_bits} << destination::kind_at;
}
GROSR_DEVICE inline destination destination_of(std::uint64_t kind_and_destination) {
  constexpr std::uint64_t kind = (1u << (destination::type_bits + destination::level_bits)) - 1;
  return {kind_and_destination & ~(kind << destination::kind_at)};
}
GROSR_DEVICE inline std::uint32_t type_of(std::uint64_t kind_and_destination) {
  return kind_and_destination >> destination::kind_at & ((1u << destination::type_bits) - 1);
}
GROSR_DEVICE inline std::uint32_t level_of(std::uint64_t kind_and_destination) {
  return kind_and_destination >> (destination::kind_at + destination::type_bits) &
         ((1u << destination::level_bits) - 1);
}

/// What waits for a completion (queue/completion.hpp): a slot of a frame, for a `long`, and the
/// level of the task that waits.
///
///   level (36-37) │ byte in the frame / 8 (32-35) │ frame (0-31)
struct waiter_word {
  static constexpr unsigned place_at = 32, level_at = 36;
  static constexpr std::uint32_t place_mask = 15, level_mask = 3;

  GROSR_DEVICE static constexpr std::uint64_t of(std::uint32_t frame, std::uint32_t offset,
                                                 std::uint32_t level) {
    return frame | std::uint64_t{offset / 8} << place_at | std::uint64_t{level} << level_at;
  }
  GROSR_DEVICE static destination slot_of(std::uint64_t word) {
    return destination::in_frame(static_cast<std::uint32_t>(word),
                                 static_cast<std::uint32_t>(word >> place_at & place_mask) * 8);
  }
  static constexpr std::uint32_t level_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> level_at & level_mask);
  }
};

// ---- completion ----

/// slot_info::count: of tasks; or, in a ticket's slot, of packets.
///
///   failed (32) │ done (32)
struct slot_count {
  GROSR_DEVICE static constexpr std::uint64_t of(std::uint32_t done, std::uint32_t failed) {
    return std::uint64_t{failed} << 32 | done;
  }
  GROSR_DEVICE static constexpr std::uint32_t done(std::uint64_t count) {
    return static_cast<std::uint32_t>(count);
  }
  GROSR_DEVICE static constexpr bool any_failed(std::uint64_t count) { return count >> 32 != 0; }
};

/// A slot's word in pinned memory.
///
///   generation (31) │ failed (1)
struct slot_word {
  static constexpr std::uint32_t generation_mask = (1u << 31) - 1;

  GROSR_DEVICE static constexpr std::uint32_t of(std::uint32_t generation, bool failed) {
    return generation << 1 | (failed ? 1u : 0u);
  }
  static constexpr std::uint32_t generation(std::uint32_t word) { return word >> 1; }
  static constexpr bool failed(std::uint32_t word) { return (word & 1) != 0; }
  /// Whether the slot has come to a generation, or beyond: both have 31 bits that wrap together.
  static constexpr bool reached(std::uint32_t word, std::uint32_t wanted) {
    return static_cast<std::int32_t>(of(generation(word), false) - of(wanted, false)) >= 0;
  }
};

// ---- what the kernel and the host tell each other ----

/// A heartbeat: what a worker runs, and that it goes on.
///
///   type + 1, or 0 (8) │ serial number (24)
struct heartbeat_word {
  static constexpr unsigned type_at = 24;
  static constexpr std::uint32_t serial_mask = (1u << type_at) - 1;

  GROSR_DEVICE static constexpr std::uint32_t of(std::uint32_t type_plus_one,
                                                 std::uint32_t serial) {
    return type_plus_one << type_at | (serial & serial_mask);
  }
  static constexpr std::uint32_t type_plus_one(std::uint32_t word) { return word >> type_at; }
};

/// The word `state` in pinned memory: which kernel is there, and whether it leaves. Beside it
/// (`named`): set when what ran at an abort was told; and (`left`) the epoch of the last kernel
/// that all of its workers have left; and (`rejected`) set when a task found no place at all.
///
///   epoch (31) │ leaving (1)
struct state_word {
  static constexpr unsigned named = 1, left = 2, rejected = 3;  // places in view::state

  GROSR_DEVICE static constexpr std::uint32_t there(std::uint32_t epoch) { return epoch << 1; }
  GROSR_DEVICE static constexpr std::uint32_t leaving(std::uint32_t epoch) {
    return epoch << 1 | 1u;
  }
  /// Whether it is about the kernel of this epoch.
  static constexpr bool is_of(std::uint32_t word, std::uint32_t epoch) {
    return (word & ~1u) == there(epoch);
  }
};

enum class control_request : std::uint32_t { none = 0, park = 1, abort = 2 };

/// The word `control` in pinned memory: what the host asks of a kernel, and of those before it.
/// Beside it (`swap_full`): whether the host takes no more tasks into its memory for now. And
/// (`stay`) the epoch of the kernel that does not leave because it is idle; 0: none.
///
///   epoch (30) │ request (2)
struct control_word {
  static constexpr unsigned epoch_at = 2;
  static constexpr unsigned swap_full = 1, stay = 2;  // places in view::control

  static constexpr std::uint32_t of(std::uint32_t epoch, control_request r) {
    return epoch << epoch_at | static_cast<std::uint32_t>(r);
  }
  GROSR_DEVICE static constexpr control_request asked(std::uint32_t word) {
    return static_cast<control_request>(word & ((1u << epoch_at) - 1));
  }
  /// Whether it is asked of the kernel of this epoch, or of one behind it: that starts when this
  /// one has left. Epochs have 30 bits here, and wrap.
  GROSR_DEVICE static constexpr bool concerns(std::uint32_t word, std::uint32_t epoch) {
    return static_cast<std::int32_t>(((word >> epoch_at) - epoch) << epoch_at) >= 0;
  }
};

}  // namespace grosr::run
