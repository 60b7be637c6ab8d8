// The loop of a worker, a turn of which looks, finds, runs and hands on; what it looks at
// between runs, and its accounts. docs/internals/scheduler.md, "A worker's turn".
#pragma once

namespace grosr::run {

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::loop() {
  enter();
  // Work that is not done at every turn is due after so many turns, or so many runs in bursts.
  unsigned turn = 1, runs = 0, burst = 0;
  auto every = [&](unsigned turns) {
    const unsigned bursts = turns * Policy::runs_a_turn;
    return turn % turns == 0 || (runs - burst) / bursts != runs / bursts;
  };
  for (;; ++turn, burst = std::exchange(burst_runs_, 0u), runs += burst) {
    hand_ = hand::empty;
    outcome_ = outcome::other;
    ref r{};
    if (pace_ != pace::quick) {
      // A look at what can interrupt. After short runs every fourth turn is soon enough.
      bool ran_long = pace_ != pace::idle && run_cycles_ > Policy::long_run_cycles;
      if (ran_long || every(Policy::all_turns))
        poll_overdue(all_rings());
      else if (every(Policy::one_ring_turns))
        poll_overdue(1u << (id_ + turn / Policy::one_ring_turns +
                            runs / (Policy::one_ring_turns * Policy::runs_a_turn)) %
                               rings());
      if (pace_ == pace::idle || run_cycles_ > Policy::signal_cycles ||
          every(Policy::signal_turns)) {
        std::uint64_t now = 0;
        if (leads()) now = rendezvous_is_called() ? rendezvous_called : poll_signals();
        now = simt::shuffle(simt::full_mask, now, 0);
        hints_ = static_cast<std::uint32_t>(now);
        if (now & interrupts) {
          flush_completions();
          if ((now & leave_now) && leads()) ask_for_rendezvous(true);
          if (meet()) break;
          continue;
        }
        if (leads()) publish_own();
        simt::sync_warp();
      }
      r = find(turn);
    }
    bool waited = !r && !has_packet();
    if (waited) wait();
    simt::sync_warp();
    bool packet = has_packet();
    // A block task that waits for a rendezvous does not wait for what this warp runs now.
    if ((packet || r) && leads()) {
      end_of_stall();
      spawner_.publish_blocks();
    }
    if (packet) r = open_packet(packet_);
    if (r) run(r);
    bool found = packet || r;
    // One task that left nothing: the next packet may be on its way.
    const bool nothing_left = outcome_ == outcome::nothing_left, meets = outcome_ == outcome::meets;
    const bool alone = hand_ != hand::packet_of_many;
    const bool quick = nothing_left && waited && alone && !every(Policy::all_turns);
    if (found && !nothing_left) {
      simt::sync_warp();
      // For a packet's block task the block meets first: others see it when that takes longer, or
      // when one of the warps runs something else.
      bool blocks = leads() && nonempty(b_.deques) != 0 && !meets;
      bool spawned = leads() && (w_.open_mask != 0 || blocks);
      if (simt::shuffle(simt::full_mask, spawned ? 1u : 0u, 0)) spawner_.flush(blocks);
    }
    // When a worker had nothing and now has work, the others should look too, unless a packet came
    // alone.
    if (found && pace_ == pace::idle && (!waited || !alone)) wake_others();
    pace_ = quick ? pace::quick : found && !meets ? pace::busy : pace::idle;
    if (every(Policy::all_turns)) collects(false);
    if (every(Policy::all_turns) && leads()) {
      flush_stats();
      release_reserve_unless_needed(v_, w_.reserve_part);
    }
  }
  exit();
}

/// One lane: the hints, and whether to leave or to meet.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint64_t worker<Policy, Tasks...>::poll_signals() const {
  const signals both = v_.poll_signals();
  std::uint64_t now = both.hints;
  if (both.says_leave(v_.epoch)) now |= leave_now;
  using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  const std::uint32_t cancelling = both.hints & hint::cancelling;
  if (word(b_.cancelling).load(simt::relaxed) != cancelling)
    word(b_.cancelling).store(cancelling, simt::relaxed);
  if (rendezvous_is_called()) now |= rendezvous_called;
  return now;
}

/// One lane, between runs: publishes private refs when somebody waits for work or runs are long;
/// repeats this worker's hints, which a thief may have cleared.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::publish_own() {
  if ((hints_ & hint::starving) || run_cycles_ > Policy::long_run_cycles)
    w_.spilled += publish_half(v_, w_.deques, id_);
  std::uint32_t missing = w_.deques.marked & ~hints_;
  if (missing) v_.hints().fetch_or(missing, simt::relaxed);
}

/// Whole warp: lets the block's other warps look for work.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::wake_others() {
  if (!leads()) return;
  simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.wake).fetch_add(1, simt::relaxed);
  clear_hint(hint::starving);  // those who still wait say so again
}

// ---- accounts ----

/// Whole warp, around what it runs.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::begin_busy() {
  if (leads()) w_.busy_began = simt::clock_ns();
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::end_busy() {
  if (leads()) w_.busy_ns += simt::clock_ns() - w_.busy_began;
}

/// One lane: writes the counters where the host can copy them from.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::flush_stats() {
  worker_stats& s = v_.reports.stats[id_];
  const worker_stats was = s;  // nobody else writes it; all loads are under way together
  const auto put = [](std::uint64_t& to, std::uint64_t value) {
    simt::atomic_ref<std::uint64_t>(to).store(value, simt::relaxed);
  };
  put(s.tasks, was.tasks + w_.tasks + w_.inlined + w_.joined);
  put(s.spawned, was.spawned + w_.spawned + w_.inlined + w_.swapped + w_.awaited);
  put(s.batches, was.batches + w_.batches);
  put(s.stolen, was.stolen + w_.stolen);
  put(s.inlined, was.inlined + w_.inlined);
  put(s.spilled, was.spilled + w_.spilled);
  put(s.failed, was.failed + w_.failed);
  put(s.rejected, was.rejected + w_.rejected);
  put(s.joined, was.joined + w_.joined);
  put(s.swapped, was.swapped + w_.swapped);
  put(s.awaited, was.awaited + w_.awaited);
  put(s.busy_ns, was.busy_ns + w_.busy_ns);
  w_.busy_ns = 0;
  w_.tasks = w_.batches = w_.stolen = w_.failed = 0;
  w_.spawned = w_.inlined = w_.spilled = w_.rejected = w_.joined = w_.swapped = w_.awaited = 0;
}

/// One lane, before a wait: nothing runs here any more.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::end_of_work() {
  simt::atomic_ref<std::uint32_t>(v_.reports.running[id_]).store(0, simt::relaxed);
  release_reserve(v_, w_.reserve_part);
  if (w_.heartbeat_type != 0 &&
      (tells_rest || w_.run_began - w_.heartbeat_at > Policy::report_cycles))
    spawner_.send_heartbeat(0, w_.run_began);
  if ((w_.batches | w_.inlined | w_.failed | w_.rejected) != 0) flush_stats();
}

}  // namespace grosr::run
