// A worker without work: waiting, its block's spinner, its count in the activity word, and how all
// work is found to be done. docs/internals/scheduler.md, "Waiting" and "Quiescence".
#pragma once

namespace grosr::run {

// ---- waiting ----

/// Whole warp without work: waits until there may be some, or has taken a packet.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::wait() {
  // The block's deque counts as this worker's: it rests only when that is empty too.
  std::uint32_t block_work = 0;
  if (leads() && (block_work = nonempty(b_.deques)) != 0 && !ask_for_rendezvous(false))
    spawner_.publish_blocks();
  if (collects(true)) return;
  if (simt::shuffle(simt::full_mask, block_work, 0) != 0) {
    if (leads()) stall();
    simt::sync_warp();
    simt::pause(3, "the block's rendezvous");
    return;
  }
  if (leads()) end_of_stall();
  flush_completions();
  // Before it says that all is done: who waits for that is told how many.
  if (leads() && (w_.failed | w_.rejected) != 0) flush_stats();
  // The sole active worker says that all is done, and keeps its count for a while if it polls: the
  // next packet then needs no fence.
  if (standing_ == standing::active && pace_ != pace::quick) say_if_sole();
  bool holds = false;
  if (back_) {
    bool again = leads() && v_.submission.rings[w_.ring].try_relock(w_.lock);
    holds = simt::shuffle(simt::full_mask, again ? 1u : 0u, 0) != 0;
    back_ = false;
  }
  bool linger = holds && standing_ == standing::quiescent;
  for (;;) {
    if (is_active() && !linger) {
      rest();
      if (leads()) end_of_work();
      simt::sync_warp();
    }
    if (!holds) {
      if (watch() == watched::work) break;
      holds = true;
    }
    if (lead() != led::lingered) break;
    linger = false;
  }
  if (!has_packet()) end_of_spinning();
  simt::sync_warp();
}

/// One lane, whose warp has nothing but block tasks: while another warp of the block waits for
/// room, so does this one.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::stall() {
  if (w_.stalled != 0) return;
  using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  if (word(b_.waiting).load(simt::relaxed) == 0) return;
  w_.stalled = 1;
  spawner_type::begin_wait(&b_, spawner_type::lacks::rendezvous);
}

/// One lane, before its warp takes what it saw elsewhere, or rests.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::end_of_stall() {
  if (w_.stalled == 0) return;
  w_.stalled = 0;
  spawner_type::end_wait(&b_, spawner_type::lacks::rendezvous);
}

/// Whole warp, hands empty: one warp of the block, the spinner, looks at device memory until there
/// may be work or it has the poll lock of w_.ring; the others sleep until it wakes them.
template <class Policy, class... Tasks>
GROSR_DEVICE auto worker<Policy, Tasks...>::watch() -> watched {
  using shared_word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  std::uint32_t self = simt::warp_id() + 1, wake = 0;
  if (leads()) begin_scan_wait();
  watched result = watched::nothing;
  const bool eager = Policy::is_eager(simt::block_id());
  if (leads()) wake = shared_word(b_.wake).load(simt::relaxed);
  for (unsigned turn = 0;; ++turn) {
    if (leads()) {
      if (!spins_) {
        std::uint32_t free = 0;
        spins_ = shared_word(b_.spinner).load(simt::relaxed) == 0 &&
                 shared_word(b_.spinner).compare_exchange(free, self, simt::relaxed);
        // Where the last packet came from, the next one is likely.
        if (spins_) {
          w_.ring = shared_word(b_.ring).load(simt::relaxed);
          if (polls_several())
            shared_word(b_.ring).store((w_.ring + v_.sizes.blocks) % rings(), simt::relaxed);
        }
      }
      if (spins_) {
        std::uint64_t now = poll_signals();
        bool mine = eager || Policy::follows_hints(id_ / warps_per_block, turn);
        bool long_ago = scan_due();
        if ((now & interrupts) || ((now & hint::work) && mine))
          result = watched::work;
        else if (v_.submission.rings[w_.ring].try_lock(Policy::poll_stale(w_.ring), w_.lock))
          result = watched::lock;
        else if (long_ago || (polls_several() && turn > 0))
          result = watched::work;
        else if ((now & hint::starving) == 0)
          v_.hints().fetch_or(hint::starving, simt::relaxed);
        if (result == watched::nothing && is_rung()) result = watched::work;
        // Hints are only hints: after a long wait look at more.
        if (long_ago) {
          std::uint32_t found = scan_hints();
          if (result == watched::nothing && finds_overdue()) result = watched::work;
          if (found) v_.hints().fetch_or(found, simt::relaxed);
          if (result == watched::work && !polls_several())  // next time
            shared_word(b_.ring).store(w_.ring = (w_.ring + 1) % rings(), simt::relaxed);
        }
        // Where no packet ever came it does not stay.
        if (result == watched::nothing && w_.lock.seen == 0 && w_.ring != 0)
          w_.ring = (w_.ring + 1) % rings();
      } else if (shared_word(b_.wake).load(simt::relaxed) != wake ||
                 shared_word(b_.rendezvous).load(simt::relaxed) != 0) {
        result = watched::work;
      }
    }
    auto all =
        static_cast<watched>(simt::shuffle(simt::full_mask, static_cast<std::uint32_t>(result), 0));
    if (all != watched::nothing) return all;
    // A packet that comes may be for the whole block.
    const bool soon = eager || (!spins_ && shared_word(b_.polls).load(simt::relaxed) != 0);
    simt::pause(idle_turns(Policy::backoff(soon, turn)), "work");
  }
}

/// Whole warp: it does not poll, and is no longer the block's spinner, if it was.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::end_of_spinning() {
  if (!leads()) return;
  using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  if (polls_) word(b_.polls).store(0, simt::relaxed);
  if (spins_) word(b_.spinner).store(0, simt::relaxed);
  polls_ = spins_ = false;
}

// ---- what tasks collect for others (task.hpp, collector_of) is work that no worker holds. A
// worker that collected some looks before it rests ----

/// Whole warp: has collected things taken, with `all` if it collected some since it last found
/// none, else those that wait for too long. True: it may have work, and does not rest.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::collects(bool all) {
  if constexpr (has_collector) {
    std::uint32_t look = 0;
    if (leads()) look = all ? std::exchange(w_.pushed, 0) : finds_overdue() ? 1 : 0;
    if (simt::shuffle(simt::full_mask, look, 0) == 0) return false;
    activate();
    const collected what = collector::collect(&b_, all);
    const bool some = what != collected::nothing;
    if (leads()) {
      if (some) w_.pushed = 1;  // there may be more than it could
      if (all && what != collected::left) w_.uncollected = 0;
    }
    spawner_.flush(true);
    if (some) simt::pause(0, "those who take what was collected");
    return some;
  }
  return false;
}

/// One lane: whether something waits for too long. This worker has it taken then before it rests.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::finds_overdue() {
  if constexpr (has_collector)
    if (collector::overdue(&b_)) {
      w_.pushed = 1;
      return true;
    }
  return false;
}

/// One lane, which waits: whether there is something new to collect, as finds_overdue().
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::is_rung() {
  if constexpr (collector_rings)
    if (collector::rung(&b_)) {
      w_.pushed = 1;
      return true;
    }
  return false;
}

// ---- the activity word ----

/// Whole warp: counts this worker as active. Before it takes what it saw elsewhere.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::activate() {
  const bool was = is_active();
  standing_ = standing::active;
  if (!leads()) return;
  end_of_stall();
  if (was) return;
  // Relaxed: whoever claims or steals next does so with a release.
  std::uint64_t before = activity_word().fetch_add(activity_count::activation, simt::relaxed);
  w_.sole_activity = activity_count::holders(before) == 0 ? before + activity_count::activation : 0;
}

/// Lane p: packets claimed of ring p so far.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t worker<Policy, Tasks...>::packets_claimed(simt::order o) const {
  return simt::lane_id() < rings() ? v_.submission.rings[simt::lane_id()].claimed(o) : 0;
}

/// Whole warp, active, hands empty, nothing running: says that all is done if no other worker was
/// active since this one became it.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::say_if_sole() {
  std::uint32_t claimed = packets_claimed(simt::relaxed);
  simt::sync_warp();  // together: the fence is slow, and apart they make it twice
  simt::fence<simt::scope::system>(simt::acq_rel);
  simt::sync_warp();  // every lane's claims before the activity word
  publish_if_sole(claimed, leads() ? activity_word().load(simt::relaxed) : 0);
}

/// Whole warp, active, with nothing in hand or deques, the block's included. `claimed` is what
/// packets_claimed() gave after it became active, `activity` what lane 0 loaded from the activity
/// word after that and a system fence by every lane: if no other worker was active since this one
/// became it, all those packets are done, and it says so.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::publish_if_sole(std::uint32_t claimed,
                                                            std::uint64_t activity) {
  bool sole = leads() && activity == w_.sole_activity;
  sole = simt::shuffle(simt::full_mask, sole ? 1u : 0u, 0) != 0;
  standing_ = sole ? standing::quiescent : standing::active;
  if (sole) publish_quiescent(claimed);
  return sole;
}

/// Whole warp, active, hands and deques empty: stops being active. The last one publishes what is
/// complete.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::rest() {
  if (!is_active()) return;
  const bool published = standing_ == standing::quiescent;
  standing_ = standing::resting;
  bool done = published && leave_activity(w_.sole_activity);
  while (!done) {
    std::uint64_t before = 0, after = 0;
    if (leads()) before = activity_word().load(simt::acquire);
    before = simt::shuffle(simt::full_mask, before, 0);
    if (activity_count::holders(before) != 1) {
      // Most are not the last. A worker that finds that it was after all takes its count back.
      if (leads()) {
        done = activity_count::holders(activity_word().fetch_sub(1, simt::acq_rel)) != 1;
        if (!done) activity_word().fetch_add(activity_count::activation, simt::acq_rel);
      }
      done = simt::shuffle(simt::full_mask, done ? 1u : 0u, 0) != 0;
      continue;
    }
    // Q1: packets claimed so far. Claimers were active before they claimed.
    std::uint32_t claimed = packets_claimed(simt::acquire);
    simt::sync_warp();
    // Q2: the activity word again. The same word: nobody else was active meanwhile, so all those
    // packets, and whatever their tasks spawned, are done: only who is active holds work.
    if (leads()) after = activity_word().load(simt::acquire);
    if (simt::shuffle(simt::full_mask, after, 0) != before) continue;
    // What all workers did, before the words that say so; pairs with engine::wait_all(). Every
    // lane fences what it stores.
    simt::fence<simt::scope::system>(simt::acq_rel);
    publish_quiescent(
        claimed);  // Q3: before the count drops, so that a later publisher writes later
    done = leave_activity(before);
  }
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::publish_quiescent(std::uint32_t claimed) const {
  if (simt::lane_id() < rings())
    simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.submission.quiescent[simt::lane_id()])
        .store(claimed, simt::relaxed);
  simt::sync_warp();
}

/// Whole warp, after publish_quiescent(). Q4: false when somebody became active since the activity
/// word was `seen` (lane 0's): what it claimed is not in what was published.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::leave_activity(std::uint64_t seen) const {
  bool done = false;
  if (leads()) {
    simt::fence<simt::scope::system>(simt::seq_cst);
    quiet_now();
    done = activity_word().compare_exchange(seen, seen - 1, simt::acq_rel);
  }
  return simt::shuffle(simt::full_mask, done ? 1u : 0u, 0) != 0;
}

}  // namespace grosr::run
