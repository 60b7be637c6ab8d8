// The choices of a worker that could be made otherwise, and how often and how long: every
// number of the scheduler that was tuned, and every choice. The mechanism (worker.hpp, spawner.hpp)
// is the same for every policy; it is correct for each that keeps the contracts here.
//
// A policy is a type without state: a struct that derives from default_policy, and has members of
// its own where it differs. basic_runtime<Policy, Tasks...> uses it; runtime<Tasks...> uses
// default_policy. Functions are called by the lanes that need the answer, and must give the same
// one in every lane.
//
// Not here are sizes of block-shared memory, which every kernel and the host must agree on: how
// many refs, frames and batches a worker has at hand (local.hpp, view.hpp, frame_stack.hpp).
#pragma once

#include "grosr/run/detail/victim.hpp"

namespace grosr::run {

struct default_policy {
  // ---- what comes first ----

  // A turn is a look for work: a warp's between its bursts of runs, or a block's at the beginning
  // of a rendezvous. Warps and blocks ask the same questions and count their own turns.

  /// In one of so many turns the levels take turns at being first, so that none starves.
  static constexpr unsigned ageing_turns = 32;

  /// Whether a worker looks at what others hold before its own refs. Now and then it must: what
  /// others hold would starve otherwise.
  GROSR_DEVICE static constexpr bool others_first(unsigned turn) {
    return turn % ageing_turns == 0;
  }
  /// The level that a worker looks at after k others. A turn has each level once.
  GROSR_DEVICE static constexpr std::uint32_t level_at(unsigned turn, unsigned k) {
    return (others_first(turn) ? turn / ageing_turns + k : priority_levels - 1 - k) %
           priority_levels;
  }
  // ---- from whom to steal: victim.hpp ----

  static constexpr unsigned steal_attempts = 4;

  /// Whole warp: a ref that `attempt(worker)` gave, or none.
  template <class Attempt>
  GROSR_DEVICE static ref steal(const view& v, std::uint32_t level, bool block, std::uint32_t self,
                                std::uint32_t salt, Attempt&& attempt) {
    return choose_victim(v, level, block, self, salt, steal_attempts, attempt);
  }

  // ---- bursts of runs ----

  /// Runs without a turn between them. Long bursts keep a multiprocessor's instruction cache on
  /// what runs; what else a turn runs does not fit beside it. Short ones where less urgent work
  /// waits, which comes with the turns.
  static constexpr unsigned burst_runs = 128, short_burst_runs = 8;
  static constexpr std::uint64_t burst_cycles = 4 * 1024 * 1024;  // about 2 ms
  /// The same of a rendezvous, which ends when warps have something more urgent. Between two of
  /// them the warps take a turn each, which is as long as three short block tasks.
  static constexpr unsigned block_burst_runs = 128;
  /// Work of these levels ends a burst of `level` after so many runs.
  GROSR_DEVICE static constexpr std::uint32_t levels_that_end_burst(std::uint32_t level,
                                                                    unsigned runs) {
    return runs >= short_burst_runs ? all_levels & ~level_bit(level) : levels_above(level);
  }
  /// Runs of what is near between two looks at the signals.
  static constexpr unsigned near_looks = 8;
  /// Runs of what is near without a turn.
  static constexpr unsigned near_runs = 1024;
  /// A run that takes longer is no longer part of a burst: others may have what it left.
  static constexpr std::uint64_t long_run_cycles = 64 * 1024;  // about 32 us
  /// Records of a type that a pool batch takes before it is handed on: batch_records at most. Wide
  /// tasks go in smaller batches, because a batch is run by one worker.
  GROSR_DEVICE static constexpr std::uint32_t batch_limit(width w) {
    return w == width::lane ? batch_records : w == width::warp ? 8 : 4;
  }

  // ---- yielding ----

  /// The levels for whose work a long task is told to yield.
  GROSR_DEVICE static constexpr std::uint32_t yields_to(std::uint32_t level) {
    return levels_above(level);
  }
  /// One worker at a time yields, for so long or until it has.
  static constexpr std::uint64_t yield_interval_ns = 8192;

  // ---- what a worker looks at, and how often ----

  /// After so many turns, or runs_a_turn times as many runs in bursts:
  static constexpr unsigned signal_turns = 4;     ///< it looks at hints, if runs are short
  static constexpr unsigned one_ring_turns = 16;  ///< it polls a ring if that is overdue
  static constexpr unsigned all_turns = 64;       ///< all overdue rings; it tells its counts
  static constexpr unsigned runs_a_turn = 8;
  /// After a run that took longer it looks at hints.
  static constexpr std::uint64_t signal_cycles = 4096;  // about 2 us
  /// A ring that nobody polled for so long is overdue. Where no packet ever came, none is likely;
  /// but ring 0 has the host's words, too.
  GROSR_DEVICE static constexpr queue::poll_age poll_stale(unsigned ring) {
    return {4096, ring == 0 ? 4096u : 65536u};
  }
  /// A poller that handed out all that was there looks again after so long: the host writes faster
  /// while nobody looks.
  static constexpr unsigned look_away_ns = 1000;
  /// After a run of single packets' tasks that took longer, a worker takes one of the type at a
  /// time.
  static constexpr std::uint64_t bundle_cycles = 16 * 1024;  // about 8 us
  /// While it waits: what hints may have missed.
  static constexpr std::uint64_t scan_every_cycles = 128 * 1024;  // about 64 us
  /// It tells the host what runs, or that it goes on, no more often.
  static constexpr std::uint64_t report_cycles = 32 * 1024;           // about 16 us
  static constexpr std::uint64_t heartbeat_cycles = 8 * 1024 * 1024;  // about 4 ms

  // ---- waiting ----

  /// Polls until a worker that has done all gives up its count in the activity word.
  static constexpr unsigned linger_polls = 8;  // about 8 us
  /// Polls of a ring where a block goes round several.
  static constexpr unsigned polls_of_several = 4;
  /// Whether the spinner of a block does not back off, and follows every hint.
  GROSR_DEVICE static constexpr bool is_eager(std::uint32_t block) { return block < 96; }
  /// Whether another spinner follows hints at this look: not all at once, so that little work does
  /// not wake everybody.
  GROSR_DEVICE static constexpr bool follows_hints(std::uint32_t block, unsigned look) {
    return (block + look) % 8 == 0;
  }
  /// How long to back off between looks: the `turn` of simt::pause(). `soon`: work may come any
  /// moment.
  GROSR_DEVICE static constexpr unsigned backoff(bool soon, unsigned look) {
    return soon ? 0 : look < 4 ? look : 6;
  }
  /// The same for a warp that waits for the others of its block.
  GROSR_DEVICE static constexpr unsigned rendezvous_backoff(unsigned look) {
    return look < 3 ? look : 3;
  }
  /// How long a spawn that found no room waits for others to make some, while any may, before its
  /// task goes to the host's memory.
  static constexpr std::uint64_t swap_after_ns = 100'000;

  // ---- rendezvous ----

  static constexpr std::uint64_t rendezvous_timeout_ns = 100'000;  ///< until it is called off
  static constexpr std::uint64_t publish_after_ns = 4'000;  ///< others may have the tasks then
  static constexpr std::uint64_t rendezvous_pause_ns =
      1'000'000;  ///< after one that was called off

  // ---- leaving ----

  /// Whether the kernel leaves the device that had nothing to do for so long.
  GROSR_DEVICE static constexpr bool parks_after(std::uint64_t quiet_us, std::uint32_t idle_us) {
    return quiet_us > idle_us;
  }
  /// After an abort, when a task does not end, the kernel is ended.
  static constexpr std::uint64_t abort_patience_ns = 1'000'000'000;

  // ---- the kernel ----

  /// Blocks an SM that the compiler must leave registers for. Tasks that fork or send messages gain
  /// more by registers than by warps, others do not (docs/internals/fork-join.md, "What was tried",
  /// and messages.md, "What bounds the rate").
  static constexpr unsigned least_blocks(bool holds_much) { return holds_much ? 4 : 6; }
};

}  // namespace grosr::run
