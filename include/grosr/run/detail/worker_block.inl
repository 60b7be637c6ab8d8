// Rendezvous of workers: how a block's warps come together to run block tasks, or to leave.
// docs/internals/scheduler.md, "Run".
#pragma once

namespace grosr::run {

// ---- rendezvous ----

/// One lane: asks the block's warps to meet at their next step. False: they did not come a moment
/// ago.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::ask_for_rendezvous(bool now) {
  if (!now &&
      simt::clock_ns() < simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.next_rendezvous)
                             .load(simt::relaxed))
    return false;
  simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.rendezvous).store(1, simt::relaxed);
  return true;
}

/// One lane: whether the block's warps are to meet.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::rendezvous_is_called() const {
  return simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.rendezvous).load(simt::relaxed) !=
         0;
}

/// Whole warp: goes to the rendezvous. True when the block leaves. When a warp does not come in
/// time the rendezvous is called off, and everybody goes back to work.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::meet() {
  simt::atomic_ref<std::uint32_t, simt::scope::block> rendezvous(b_.rendezvous),
      arrived(b_.arrived);
  bool held = true;
  if (leads()) {
    arrived.fetch_add(1, simt::acq_rel);
    std::uint64_t began = simt::clock_ns(), deadline = began + Policy::rendezvous_timeout_ns;
    bool published_blocks = false;
    for (unsigned turn = 0;; ++turn) {
      std::uint32_t n = arrived.load(simt::acquire);
      if (n == warps_per_block) break;
      if (!published_blocks && simt::clock_ns() - began > Policy::publish_after_ns) {
        spawner_.publish_blocks();
        published_blocks = true;
      }
      bool off = rendezvous.load(simt::relaxed) == 0;
      if ((off || (simt::clock_ns() > deadline && !must_leave())) &&
          arrived.compare_exchange(n, n - 1, simt::acq_rel)) {
        simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.next_rendezvous)
            .store(simt::clock_ns() + Policy::rendezvous_pause_ns, simt::relaxed);
        rendezvous.store(0, simt::relaxed);
        held = false;
        break;
      }
      // Told to abort, and a task does not end: ends it with everything else. From here, because
      // the host's calls may all be waiting for this kernel.
      if (v_.aborted() && simt::clock_ns() - began > Policy::abort_patience_ns) simt::trap();
      simt::pause(Policy::rendezvous_backoff(turn), "the block's other warps");
    }
  }
  if (!simt::shuffle(simt::full_mask, held ? 1u : 0u, 0)) return false;
  if (leads()) end_of_stall();
  simt::sync_block();
  const std::uint64_t began = simt::cycle_count();
  for (unsigned runs = 0;; ++runs) {
    if (simt::warp_id() == 0) {
      ref r = find_block(began, runs);
      if (leads()) {
        b_.task_ref = r.bits;
        b_.task_failed = 0;
        b_.leaves = !r && must_leave() ? 1 : 0;
        if (!r) b_.rendezvous = b_.arrived = 0;
      }
    }
    simt::sync_block();
    ref r{b_.task_ref};
    if (!r) break;
    run_block(r);
    simt::sync_block();
  }
  bool leaving = b_.leaves != 0;
  simt::sync_block();
  return leaving;
}

// ---- block tasks ----

/// Warp 0 of a rendezvous that `began` (cycle_count) so many runs ago: the next block task, its
/// record in b_.record; or none. Only the first look is a turn: ageing would cost a theft for every
/// few tasks. At later ones another warp has looked at the signals (run_block_typed).
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::find_block(std::uint64_t began, unsigned runs) {
  if constexpr (kinds_of_blocks != 0) {
    constexpr std::uint32_t stays = 1u << 31;  // no hint: the kernel need not leave
    std::uint32_t hints = 0, turn = 0;
    if (leads()) {
      const bool first = runs == 0;
      const signals now = first ? v_.poll_signals() : b_.seen;
      const bool long_enough =
          runs >= Policy::block_burst_runs || simt::cycle_count() - began >= Policy::burst_cycles;
      if (!now.says_leave(v_.epoch) && (first || !long_enough)) hints = now.hints | stays;
      turn = first ? ++b_.turns : b_.turns + (Policy::others_first(b_.turns) ? 1 : 0);
    }
    hints = simt::shuffle(simt::full_mask, hints, 0);
    if ((hints & stays) == 0) return {};
    ref r = find_as<as_block>(hints, simt::shuffle(simt::full_mask, turn, 0));
    if (r) {
      activate();
      load_block_task(r);
    }
    return r;
  }
  return {};
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::load_block_task(ref r) {
  if (b_.prefetched != r.bits || b_.published_at_prefetch != published(b_.deques)) load_record(r);
  simt::sync_warp();
  if (!leads()) return;
  b_.prefetched = 0;
  consume(r, 1);
}

/// Whole warp: a block task's record into block-shared memory.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::load_record(ref r) {
  const unsigned lane = simt::lane_id();
  const std::uint32_t stride = spawner_type::stride_at(r.type());
  if (lane < stride / 16) {
    const unsigned char* from = batch_at(r) + r.first() * stride + lane * 16;
    piece p;
    if (r.slot()) {
      simt::bus_word b = simt::bus_load(reinterpret_cast<const simt::bus_word*>(from));
      for (unsigned k = 0; k < 4; ++k) p.w[k] = b.w[k];
    } else {
      p = *reinterpret_cast<const piece*>(from);
    }
    reinterpret_cast<piece*>(b_.record)[lane] = p;
  }
  simt::sync_warp();
}

/// One lane, before a task that may be long: others may take the private refs of this block. Also
/// where they find some already: those may be taken, and nobody is here to publish more then.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::publish_private() {
  const std::uint32_t self = v_.sizes.workers + simt::block_id();
  lock(b_.deques.lock);
  GROSR_NO_UNROLL
  for (std::uint32_t level = 0; level < priority_levels; ++level) {
    const std::uint32_t private_count = b_.deques.private_count[level];
    if (private_count != 0) w_.spilled += publish(v_, b_.deques, self, level, private_count);
  }
  unlock(b_.deques.lock);
}

/// Whole block: runs the block task that warp 0 laid into block-shared memory.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::run_block(ref r) {
  begin_busy();
  ((r.type() == types::template index_of<Tasks>() ? (run_block_typed<Tasks>(r), 0) : 0), ...);
  end_busy();
}

/// One lane, whose warp's part of a block task failed: whether no other warp's did before.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::is_first_failure() {
  return simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.task_failed)
             .exchange(1, simt::relaxed) == 0;
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::run_block_typed(ref r) {
  if constexpr (width_of<T>() == width::block) {
    constexpr std::uint32_t type = types::template index_of<T>();
    loaded<T> l;
    T& task = l.task;
    __builtin_memcpy(&task, b_.record, sizeof(T));
    // What takes long is left to one warp each: warp 0 has found the task and ends the run.
    constexpr unsigned publishes = warps_per_block - 1, looks = warps_per_block / 2;
    static_assert(looks != 0 && publishes != 0);
    if (simt::warp_id() == 0) {
      begin_run(type, r.slot(), trace_place(r));
    } else if (leads()) {
      end_of_yield();
      w_.run_began = simt::cycle_count();
      if (simt::warp_id() == publishes) publish_private();
    }
    simt::sync_warp();
    execute(task, true, r.level(), true);
    if (simt::warp_id() == looks && leads()) b_.seen = v_.poll_signals();
    spawner_.flush(false);
    // Warps that were not active may not rest soon, and what went wrong is to be seen.
    if (simt::warp_id() != 0 && leads() && (w_.failed | w_.rejected) != 0) flush_stats();
    // Only the warp that found the task was active for sure; what others spawned is theirs now.
    if (simt::shuffle(simt::full_mask, w_.deques.nonempty | w_.pushed, 0) != 0) activate();
    simt::sync_block();
    if (simt::warp_id() == 0) {
      bool failed = b_.task_failed != 0;
      end_run(type, 1, failed ? 1 : 0);
      if (r.slot()) complete(r, 1, failed ? 1 : 0, false);
    }
  }
}

}  // namespace grosr::run
