// A worker comes to the device, stays and leaves: what the host asks for, parking, aborting.
// docs/internals/scheduler.md, "Park and resume". The host's side is src/run/residency.cpp.
//
// The kernel leaves in three steps, and all of them are here:
//   1. The poller of ring 0 decides: the host asks for it (obey_control), or nothing has run for too
//      long (idles_too_long, park). It says so to submitters (say_leaving), and sets `leave`.
//   2. Each worker sees `leave` when it looks, and calls a rendezvous of its block, which finds
//      nothing that must be run first, and the block leaves the loop.
//   3. A worker saves what outlives the kernel (exit), and is counted (join_exit).
#pragma once

namespace grosr::run {

// ---- coming ----

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::enter() {
  std::uint32_t active = 0;  // when the last kernel ended
  if (simt::lane_id() == 0) {
    w_.deques = {};
    w_.open_mask = 0;
    w_.near = near_state::none;
    w_.near_kind = no_kind;
    w_.alone_at = 0;
    w_.filled_at = 0;
    for (auto& f : w_.follows) f = 0;
    for (auto& b : w_.bundle_limits) b = 1;
    w_.slow_spawns = v_.trace.events != nullptr ? slow_for_trace : 0;
    w_.ready_list = no_frame;
    w_.spawned = w_.inlined = w_.spilled = w_.rejected = w_.failed = w_.joined = 0;
    w_.tasks = w_.batches = w_.stolen = w_.swapped = w_.awaited = 0;
    w_.failed_lanes = w_.waiting = w_.waiting_for_task = w_.stalled = w_.reserve_part = 0;
    w_.busy_ns = 0;
    w_.heartbeat_at = w_.sole_activity = 0;
    w_.scans = 0;
    w_.scanned = simt::cycle_count();
    w_.heartbeat_type = w_.heartbeat_serial = w_.must_yield = 0;
    w_.pushed = w_.uncollected = v_.reports.saves[id_].active;  // it may have
    w_.quick_types = w_.goes_alone = 0;
    w_.ring = simt::block_id() % rings();
    w_.spare_count = w_.ready_count = 0;
    for (auto& o : w_.open) {
      o.batch = no_batch;
      o.count = nowhere;
      o.first = 0;
    }
    adopt(w_.deques, id_);
    active = v_.reports.saves[id_].active;
    w_.magazine_count = v_.reports.saves[id_].magazine_count;
    w_.frame_count = v_.reports.saves[id_].frame_count;
  }
  if (simt::lane_id() < frame_group - 1)
    w_.frames[simt::lane_id()] = v_.reports.saves[id_].frames[simt::lane_id()];
  if (simt::lane_id() < magazine_capacity)
    w_.magazine[simt::lane_id()] = v_.reports.saves[id_].magazine[simt::lane_id()];
  standing_ = simt::shuffle(simt::full_mask, active, 0) != 0 ? standing::active : standing::resting;
  if (simt::thread_id() == 0) {
    b_.deques = {};
    b_.rendezvous = b_.arrived = b_.leaves = b_.spinner = b_.wake = b_.cancelling = b_.polls = 0;
    b_.ring = simt::block_id() % rings();
    b_.prefetched = b_.waiting = 0;
    b_.turns = 0;
    b_.next_rendezvous = 0;
    adopt(b_.deques, v_.sizes.workers + simt::block_id());
    if (simt::block_id() == 0) {
      quiet_now();
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.submission.state)
          .store(state_word::there(v_.epoch), simt::release);
    }
  }
  simt::sync_block();
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::adopt(deque_local& d, std::uint32_t index) const {
  GROSR_NO_UNROLL
  for (unsigned l = 0; l < priority_levels; ++l) {
    d.owner[l] = v_.deque(l, index).adopt();
    bool block = index >= v_.sizes.workers;
    std::uint32_t i = block ? index - v_.sizes.workers : index;
    simt::atomic_ref<std::uint32_t> word(v_.bitmap(l, block)[i / 32]);
    if (d.owner[l].bottom != d.owner[l].top_seen) {
      d.nonempty |= level_bit(l);
      d.marked |= level_bit(l);
      word.fetch_or(1u << i % 32, simt::relaxed);
      set_bit(v_.common.signals->hints, hint::of(l, block));
    } else {
      word.fetch_and(~(1u << i % 32), simt::relaxed);
    }
  }
}

// ---- staying or leaving ----

/// One lane, ring 0 held: does what the host asks for.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::obey_control() {
  std::uint32_t c = simt::atomic_ref<std::uint32_t, simt::scope::system>(
                        const_cast<std::uint32_t&>(*v_.submission.control))
                        .load(simt::relaxed);
  if (!control_word::concerns(c, v_.epoch)) return;
  const control_request asked = control_word::asked(c);
  simt::atomic_ref<std::uint32_t> leave(v_.common.signals->leave);
  if (asked == control_request::park) {
    say_leaving();
    leave.store(v_.epoch, simt::release);
  } else if (asked == control_request::abort && !v_.aborted()) {
    name_running(v_);
    leave.store(leave_abort, simt::release);
  }
}

/// One lane: tells the host what runs on every worker, before an abort changes it.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void worker<Policy, Tasks...>::name_running(const view& v) {
  using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
  for (std::uint32_t w = 0; w < v.sizes.workers; ++w)
    word(v.reports.running_host[w])
        .store(heartbeat_word::of(
                   simt::atomic_ref<std::uint32_t>(v.reports.running[w]).load(simt::relaxed), 0),
               simt::relaxed);
  word(v.submission.state[state_word::named])
      .store(v.epoch, simt::release);  // N1: pairs with running_at_abort()
}

/// One lane, polling `ring`, with the activity word as it has just loaded it: whether the runtime
/// has nothing to do for so long that the kernel may leave. Only who polls ring 0 says so.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::idles_too_long(unsigned ring,
                                                           std::uint64_t activity) const {
  return ring == 0 && v_.idle_us != 0 && activity_count::holders(activity) == 0 &&
         Policy::parks_after(quiet_for(), v_.idle_us);
}

/// Whole warp, ring 0 held (so only one parks): leaves the GPU unless there is work after all.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::park() {
  // Looked for twice: to submitters, `leaving` is gone, so it is not said while work is seen.
  if (!has_entered() || work_waits()) return false;
  if (leads()) say_leaving();
  simt::sync_warp();
  bool busy = work_waits();
  if (leads()) {
    if (busy)
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.submission.state)
          .store(state_word::there(v_.epoch), simt::relaxed);
    else
      simt::atomic_ref<std::uint32_t>(v_.common.signals->leave).store(v_.epoch, simt::release);
  }
  return !busy;
}

/// Whole warp: whether block 0 has said that this kernel is there. Before, it could still say so
/// after somebody has said that it leaves.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::has_entered() const {
  bool there = leads() && simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.submission.state)
                                  .load(simt::relaxed) == state_word::there(v_.epoch);
  return simt::any(simt::full_mask, there);
}

/// Whole warp: whether a packet was not taken, a worker is active, or the host has this kernel
/// stay.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::work_waits() const {
  unsigned lane = simt::lane_id();
  // Packets first, the activity word last: a worker that takes a packet is active before it does.
  bool busy =
      lane < rings() && (v_.submission.rings[lane].unseen() || v_.submission.rings[lane].waiting());
  busy = simt::any(simt::full_mask, busy);
  if (!busy && leads()) {
    // P4: after P1; pairs with the fence in engine::stay().
    const std::uint32_t stays =
        simt::atomic_ref<std::uint32_t, simt::scope::system>(
            const_cast<std::uint32_t&>(v_.submission.control[control_word::stay]))
            .load(simt::relaxed);
    busy = stays == v_.epoch || activity_count::holders(activity_word().load(simt::acquire)) != 0;
  }
  return simt::any(simt::full_mask, busy);
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::say_leaving() {
  simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.submission.state)
      .store(state_word::leaving(v_.epoch), simt::relaxed);
  simt::fence<simt::scope::system>(simt::seq_cst);  // P1: pairs with the fence in submit
}

template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::must_leave() const {
  return v_.poll_signals().says_leave(v_.epoch);
}

/// One lane: the runtime came to rest, or woke, now.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::quiet_now() const {
  simt::atomic_ref<std::uint64_t>(*v_.common.quiet_since).store(simt::clock_ns(), simt::relaxed);
}

/// One lane: microseconds since then.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint64_t worker<Policy, Tasks...>::quiet_for() const {
  std::uint64_t since = simt::atomic_ref<std::uint64_t>(*v_.common.quiet_since).load(simt::relaxed);
  std::uint64_t now = simt::clock_ns();
  return now > since ? (now - since) / 1000 : 0;
}

// ---- leaving ----

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::exit() {
  simt::sync_warp();
  if (!leads()) return;
  record_now(v_, id_, trace_event::leave, {}, 0);
  w_.frame_count = spawner_.frames_at_hand();
  while (w_.spare_count != 0) w_.frames[w_.frame_count++] = w_.spare[--w_.spare_count];
  spill_frames(&v_, &w_, 0);
  publish_all(v_, w_.deques, id_, 0);
  if (simt::warp_id() == 0) publish_all(v_, b_.deques, v_.sizes.workers + simt::block_id(), 0);
  release_reserve(v_, w_.reserve_part);
  worker_save& save = v_.reports.saves[id_];
  save.active = is_active() ? 1 : 0;
  save.magazine_count = w_.magazine_count;
  save.frame_count = w_.frame_count;
  for (std::uint32_t i = 0; i < w_.frame_count; ++i) save.frames[i] = w_.frames[i];
  for (std::uint32_t i = 0; i < w_.magazine_count; ++i) save.magazine[i] = w_.magazine[i];
  flush_stats();
  if (tells_rest && w_.heartbeat_type != 0 && !v_.aborted())  // an abort's names stay
    spawner_.send_heartbeat(0, simt::cycle_count());
  join_exit();
}

/// One lane, leaving: after an abort, when not all workers leave in time, ends them.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::join_exit() const {
  simt::atomic_ref<std::uint32_t> exited(*v_.common.exited);
  std::uint32_t all = v_.epoch * v_.sizes.workers;  // of every kernel so far
  if (exited.fetch_add(1, simt::relaxed) + 1 == all)
    simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.submission.state[state_word::left])
        .store(v_.epoch, simt::relaxed);
  if (!v_.aborted()) return;
  std::uint64_t began = simt::clock_ns();
  for (unsigned turn = 0; exited.load(simt::relaxed) != all; ++turn) {
    if (simt::clock_ns() - began > Policy::abort_patience_ns) {
      simt::trap();
      return;  // on the host, where nothing ends them
    }
    simt::pause(6, "the other workers");
  }
}

}  // namespace grosr::run
