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
        b_.task_failed = b_.left = b_.near_ends = 0;
        b_.leaves = !r && must_leave() ? 1 : 0;
        if (!r) b_.rendezvous = b_.arrived = 0;
      }
    }
    simt::sync_block();
    ref r{b_.task_ref};
    if (!r) break;
    run_block(r, runs);
    if constexpr (spawner_type::any_near_block) runs += run_near_block(runs + 1);
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

/// Whole block, so many runs into its rendezvous: runs the block task that warp 0 laid into
/// block-shared memory.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::run_block(ref r, unsigned runs) {
  begin_busy();
  ((r.type() == types::template index_of<Tasks>() ? (run_block_typed<Tasks>(r, runs), 0) : 0), ...);
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
GROSR_DEVICE void worker<Policy, Tasks...>::run_block_typed(ref r, [[maybe_unused]] unsigned runs) {
  if constexpr (width_of<T>() == width::block) {
    constexpr std::uint32_t type = types::template index_of<T>();
    loaded<T> l;
    T& task = l.task;
    __builtin_memcpy(&task, b_.record, sizeof(T));
    // What takes long is left to one warp each: warp 0 has found the task and ends the run.
    constexpr unsigned publishes = warps_per_block - 1;
    static_assert(looks != 0 && publishes != 0);
    if (simt::warp_id() == 0) {
      begin_run(type, r.slot(), trace_place(r));
    } else if (leads()) {
      end_of_yield();
      w_.run_began = simt::cycle_count();
      if (simt::warp_id() == publishes) publish_private();
    }
    if constexpr (spawner_type::template may_be_near_block<T>)
      if (leads()) follow_block(type, runs);
    if (leads()) set_alone(type, false);
    simt::sync_warp();
    execute(task, true, r.level(), true);
    if (simt::warp_id() == looks && leads()) b_.seen = v_.poll_signals();
    std::uint32_t left = no_kind;
    if constexpr (spawner_type::template may_be_near_block<T>)
      if (leads()) left = leave_near_block();
    hand_on_block();
    simt::sync_block();
    if constexpr (spawner_type::template may_be_near_block<T>)
      if (leads())
        w_.follows[type] = static_cast<std::uint8_t>(block_left::just_one(b_.left) ? left + 1 : 0);
    if (simt::warp_id() == 0) {
      bool failed = b_.task_failed != 0;
      end_run(type, 1, failed ? 1 : 0);
      if (r.slot()) complete(r, 1, failed ? 1 : 0, false);
    }
  }
}

/// Whole warp, after its part of a block task: others may have what that spawned, unless it is
/// near.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::hand_on_block() {
  bool near = false;
  if constexpr (spawner_type::any_near_block) {
    simt::sync_warp();
    near = simt::shared_load(w_.near_kind) != no_kind;
  }
  if (!near) spawner_.flush(false);
  // Warps that were not active may not rest soon, and what went wrong is to be seen.
  if (simt::warp_id() != 0 && leads() && (w_.failed | w_.rejected) != 0) flush_stats();
  // Only the warp that found the task was active for sure; what others spawned is theirs now.
  if (simt::shuffle(simt::full_mask, (w_.deques.nonempty & ~near_bit) | w_.pushed, 0) != 0)
    activate();
}

// ---- block tasks that are near ----

/// One lane, before a block task of this type, so many runs into a rendezvous: what its warp leaves
/// is near if it is what the last one left. Not when the rendezvous ends after this one.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::follow_block(std::uint32_t type, unsigned runs) {
  w_.deques.any_published = 0;
  if (w_.follows[type] != 0 && w_.open_mask == 0 && runs + 1 < Policy::block_burst_runs)
    spawner_type::open_near(&b_, w_.follows[type] - 1u, 1);
}

/// One lane, after its warp's part of a block task: tells the others what that left, which is near
/// only if it is one block task. The kind of that, or no_kind.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t worker<Policy, Tasks...>::leave_near_block() {
  std::uint32_t kind = no_kind, left = 0;
  if (w_.open_mask != 0 && w_.deques.any_published == 0 && !spawner_.is_near_full())
    kind = spawner_.only_kind(true);
  const bool none = kind != no_kind && spawner_.records_of(kind) == 0;
  if (none) kind = no_kind;
  if (kind != no_kind)
    left = block_left::one + (w_.near_kind == kind ? block_left::near(simt::warp_id()) : 0);
  else if (!none && (w_.open_mask | w_.deques.any_published) != 0)
    left = block_left::several;
  if (kind == no_kind && w_.near_kind != no_kind) spawner_type::end_near(&b_);
  if (w_.must_yield != 0 || spawner_.long_run()) left += block_left::several;
  if (left != 0) simt::shared_add(b_.left, left);
  return kind;
}

/// Whole block, after a block task, the `runs`-th of the rendezvous: if that left one which is
/// near, runs that, and then what this leaves, as long as it is near. Nothing is near then. How
/// many ran.
template <class Policy, class... Tasks>
GROSR_DEVICE unsigned worker<Policy, Tasks...>::run_near_block(unsigned runs) {
  const std::uint32_t left = simt::shared_load(b_.left);
  if (!block_left::any_near(left)) return 0;
  unsigned more = 0;
  if (block_left::just_one(left)) {
    begin_busy();
    // By its address, as run_near().
    more = simt::opaque(&run_near_block_out_of_line)(&b_, block_left::warp(left), runs);
    end_busy();
  }
  if (leads()) spawner_type::end_near(&b_);
  hand_on_block();
  return more;
}

/// One lane, at a rendezvous, nobody spawning in the block: whether it may have tasks that are not
/// near. They have their turn when this rendezvous and others have ended.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::block_has_others() const {
  std::uint32_t others = 0;
  for (std::uint32_t l = 0; l < priority_levels; ++l)
    others |= b_.deques.private_count[l] |
              static_cast<std::uint32_t>(b_.deques.owner[l].bottom - b_.deques.owner[l].top_seen);
  return others != 0;
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE unsigned worker<Policy, Tasks...>::run_near_block_out_of_line(
    shared* block, unsigned owner, unsigned runs) {
  // By a shuffle: what the compiler cannot find out again, it keeps.
  worker self(simt::in_block_shared(block), simt::shuffle(simt::full_mask, simt::warp_id(), 0));
  const std::uint32_t kind = simt::shared_load(self.b_.warps[owner].near_kind),
                      type = kind / priority_levels;
  if (simt::thread_id() == 0) {
    self.b_.task_failed = 0;  // the one before is counted
    simt::atomic_ref<std::uint32_t>(self.v_.reports.running[self.id_])
        .store(type + 1, simt::relaxed);
  }
  // Warp 0 says when the others have their turn. Nobody changes the block's deques before all are
  // in the loop.
  unsigned most = Policy::near_runs, more = 0;
  if (simt::thread_id() == 0 && self.block_has_others()) most = Policy::block_burst_runs - runs;
  ((type == types::template index_of<Tasks>()
        ? (more = self.template run_near_block_as<Tasks>(kind, owner, most), 0)
        : 0),
   ...);
  return more;
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE unsigned worker<Policy, Tasks...>::run_near_block_as(std::uint32_t kind,
                                                                  unsigned owner, unsigned most) {
  unsigned runs = 0;
  if constexpr (spawner_type::template may_be_near_block<T>) {
    constexpr std::uint32_t first =
        spawner_type::first_near(kind_of(types::template index_of<T>(), 0));
    const std::uint32_t level = kind % priority_levels;
    const bool owns = self_warp() == owner;
    loaded<T> l;
    T& task = l.task;
    const std::uint64_t all_began = simt::cycle_count();
    for (bool goes_on = true; goes_on;) {
      const std::uint64_t began = simt::cycle_count();
      read_record(b_.warps[owner].stage, task);
      simt::sync_block();  // the record is in every thread's registers
      if (leads()) {
        if (owns) w_.open[kind].count = w_.open[kind].written = first;
        w_.run_began = began;
      }
      simt::sync_warp();
      execute(task, true, level, true);
      ++runs;
      if (leads() && (runs >= most || near_block_ends(kind, owns, runs, began, all_began)))
        simt::shared_store(b_.near_ends, 1);
      simt::sync_block();
      goes_on = simt::shared_load(b_.near_ends) == 0;
    }
    if (simt::thread_id() == 0) {
      w_.tasks += runs;
      w_.spawned += runs;
      w_.batches += runs;
      w_.failed += b_.task_failed;
    }
  }
  return runs;
}

/// One lane, after its warp's part of a block task that was near: whether the next must not be, as
/// far as this warp knows.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::near_block_ends(std::uint32_t kind, bool owns,
                                                            unsigned runs, std::uint64_t began,
                                                            std::uint64_t all_began) {
  using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  const std::uint32_t level = kind % priority_levels;
  // One condition: all loads are under way together.
  const std::uint32_t near = static_cast<std::uint32_t>(owns ? near_state::open : near_state::none);
  const std::uint32_t against = w_.must_yield | w_.deques.any_published |
                                word(b_.task_failed).load(simt::relaxed) |
                                (static_cast<std::uint32_t>(w_.near) ^ near);
  const std::uint64_t kinds = w_.open_mask ^ (owns ? kind_bit(kind) : 0);
  const std::uint32_t records = owns ? w_.open[kind].count - spawner_type::first_near(kind) : 1;
  const std::uint64_t now = simt::cycle_count();
  bool ends = (against | kinds) != 0 || records == 0 || now - began > Policy::long_run_cycles;
  if (runs % Policy::near_looks == 0) {
    ends = ends || (nonempty(w_.deques) & ~near_bit) != 0;
    if (self_warp() == looks) {
      const signals seen = v_.poll_signals();
      const std::uint32_t before = Policy::levels_that_end_burst(level, runs);
      b_.seen = seen;
      ends = ends || (seen.hints & (hint::cancelling | before | hint::for_blocks(before))) != 0 ||
             seen.says_leave(v_.epoch) || now - all_began > Policy::burst_cycles;
    }
  }
  return ends;
}

}  // namespace grosr::run
