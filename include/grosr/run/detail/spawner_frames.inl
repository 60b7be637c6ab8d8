// The frames of a spawner: claiming and freeing them, results that come, continuations that are
// ready. The protocol is in docs/internals/fork-join.md.
#pragma once

namespace grosr::run {

// ---- claimed and free ----

template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::claim_frame() {
  const auto have = static_cast<std::int32_t>(simt::shared_add(w_.frame_count, ~0u));
  return have > 0 ? w_.frames[have - 1] : wait_for_frame(&b_);
}

/// One lane, for which there was none at hand: a frame, or no_frame when nobody can give one back.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE std::uint32_t spawner<Policy, Tasks...>::wait_for_frame(shared* block) {
  spawner self(simt::in_block_shared(block));
  std::uint32_t frame = no_frame;
  const auto take = [&] {
    lock(self.w_.deques.lock);
    if (self.w_.spare_count == 0)
      self.w_.spare_count =
          take_groups(&self.v_, self.w_.spare, 1, &self.w_.reserve_part, self.id_);
    if (self.w_.spare_count != 0) frame = self.w_.spare[--self.w_.spare_count];
    unlock(self.w_.deques.lock);
    return frame != no_frame;
  };
  if (take()) return frame;
  begin_wait(block, lacks::frame);
  GROSR_NO_UNROLL
  for (unsigned turn = 0;; ++turn) {
    if (turn % 16 == 0) publish_held(block);
    if (room_seen(block, no_kind)) {
      end_wait(block, lacks::frame);
      if (take()) return frame;
      begin_wait(block, lacks::frame);
    }
    if (look_ahead(block, no_kind, 0) == prospect::none) break;
    simt::pause(turn, "room for a continuation");
  }
  end_wait(block, lacks::frame);
  return no_frame;
}

template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::frames_at_hand() const {
  const auto n = static_cast<std::int32_t>(w_.frame_count);
  return n > 0 ? static_cast<std::uint32_t>(n) : 0;
}

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::free_frames(std::uint32_t frame, std::uint32_t n,
                                                         bool cancelled) {
  const std::uint32_t lane = simt::lane_id(), first = frames_at_hand();
  if (lane < n) w_.frames[first + lane] = frame;
  simt::sync_warp();
  if (leads()) {
    w_.frame_count = first + n;
    if (first + n > v_.sizes.frame_keep) spill_frames(&v_, &w_, v_.sizes.frame_keep / 2);
  }
  if (cancelled) end_of_cancel(&b_);
  simt::sync_warp();
}

// ---- results ----

template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::deliver(destination to, int status) {
  if (status == 0 && to && !to.host()) return count_down(to.where());
  return deliver_otherwise(&b_, to, status);
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE std::uint32_t spawner<Policy, Tasks...>::deliver_otherwise(
    shared* block, destination to, int status) {
  spawner self(simt::in_block_shared(block));
  if (!to) return no_frame;
  if (to.host()) {
    promise& r = self.v_.frames.promises[to.where()];
    r.status = status;
    simt::fence<simt::scope::system>(simt::acq_rel);
    simt::atomic_ref<std::uint32_t, simt::scope::system>(r.done).store(1, simt::release);
    return no_frame;
  }
  self.set_status(to.where(), status);
  return self.count_down(to.where());
}

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::set_status(std::uint32_t frame, int status) {
  if (status == 0) return;
  std::int32_t none = 0;
  simt::atomic_ref<std::int32_t>(header_of(frame).status)
      .compare_exchange(none, status, simt::relaxed);
}

/// One lane: a result less is to come; the frame if that was the last.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::count_down(std::uint32_t frame) {
  // R1: this result; pairs with A1 in chain::run(), by who found that they all have come.
  simt::atomic_ref<std::uint32_t> pending(header_of(frame).pending);
  // Where all others have come nobody else counts: this warp goes on with it, and A1 is all it
  // needs.
  if (pending.load(simt::acquire_for_warp()) == 1) return frame;
  return pending.fetch_sub(1, simt::release_for_warp()) == 1 ? frame : no_frame;
}

/// One lane, as await(): the frame whose continuation is to run now, or no_frame.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::ready_after(task_end end) {
  return end.forked == task_end::nothing ? end.frame : await(end.frame, end.forked);
}

/// One lane, which joined and has ended: `n` results are to come for the frame, but for what has
/// come already; the frame if all have. Nobody is spawning in its warp: otherwise another lane
/// could show what was forked between the look at `any_published` and the store.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::await(std::uint32_t frame, std::uint32_t n) {
  simt::atomic_ref<std::uint32_t> pending(header_of(frame).pending);
  // Tasks that were forked in this run mostly lie with this worker, and wait for the run's end.
  if (simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.deques.any_published)
          .load(simt::relaxed) == 0) {
    if (n == 0) return frame;
    pending.store(n, simt::relaxed);
    return no_frame;
  }
  return pending.fetch_sub(still_forking - n, simt::release_for_warp()) == still_forking - n
             ? frame
             : no_frame;
}

// ---- completions that are awaited ----

// As a task that is swapped out (spawner_room.inl): a holder of work from before the host can see
// it until a worker has the packet that brings it.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::expect_completion() {
  simt::atomic_ref<std::uint64_t>(*v_.common.activity).fetch_add(1, simt::acq_rel);
  using count = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  count(w_.awaited).fetch_add(1, simt::relaxed);
  count(w_.deques.any_published).store(1, simt::relaxed);
}
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::expect_none() {
  using count = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  count(w_.awaited).fetch_sub(1, simt::relaxed);
  simt::atomic_ref<std::uint64_t>(*v_.common.activity).fetch_sub(1, simt::acq_rel);
}
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::end_of_completion() {
  simt::atomic_ref<std::uint64_t>(*v_.common.activity).fetch_sub(1, simt::acq_rel);
}

// ---- continuations that are ready ----

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::keep_ready(task_end end) {
  const std::uint32_t frame = ready_after(end);
  simt::sync_warp();  // what await() stored is before what the warp publishes from now on
  const std::uint32_t some = simt::ballot(simt::full_mask, frame != no_frame);
  if (some == 0) return;
  const std::uint32_t first = w_.ready_count;
  if (frame != no_frame) w_.ready[first + simt::rank_in(some, simt::lane_id())] = frame;
  simt::sync_warp();
  if (leads()) w_.ready_count = first + simt::popcount(some);
  simt::sync_warp();
}

template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::take_ready(std::uint32_t& frame, bool all) {
  const std::uint32_t have = w_.ready_count, left = w_.ready_list;
  const std::uint32_t n = have < simt::warp_size ? (all ? have : 0) : simt::warp_size;
  if (n == 0 && (!all || left == no_frame)) return 0;
  if (n == 0)
    frame = left;
  else if (simt::lane_id() < n)
    frame = w_.ready[have - n + simt::lane_id()];
  simt::sync_warp();
  if (leads()) {
    w_.ready_count = have - n;
    if (n == 0) w_.ready_list = header_of(left).pending;
  }
  simt::sync_warp();
  return n == 0 ? 1 : n;
}

/// One lane, inside a task: leaves a frame whose continuation is to run to the run's end.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::defer_ready(std::uint32_t frame) {
  lock(w_.deques.lock);
  header_of(frame).pending = w_.ready_list;
  w_.ready_list = frame;
  unlock(w_.deques.lock);
}

// ---- cancelling ----

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::cancel(shared* block,
                                                                   std::uint32_t frame) {
  spawner self(simt::in_block_shared(block));
  std::int32_t none = 0;
  if (!simt::atomic_ref<std::int32_t>(self.header_of(frame).status)
           .compare_exchange(none, cancelled_here, simt::relaxed))
    return;
  simt::atomic_ref<std::uint32_t>(*self.v_.common.cancelled).fetch_add(1, simt::relaxed);
  self.v_.hints().fetch_or(hint::cancelling, simt::relaxed);
  simt::atomic_ref<std::uint32_t, simt::scope::block>(self.b_.cancelling)
      .store(hint::cancelling, simt::relaxed);
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::is_cancelled(shared* block,
                                                                         destination to) {
  spawner self(simt::in_block_shared(block));
  GROSR_NO_UNROLL
  while (to && !to.host()) {
    const frame_header& h = self.header_of(to.where());
    const std::int32_t status =
        simt::atomic_ref<std::int32_t>(const_cast<std::int32_t&>(h.status)).load(simt::relaxed);
    if (status == cancelled_here || status == -ECANCELED) return true;
    to = destination_of(h.kind_and_destination);
  }
  return false;
}

/// One lane: one that was cancelled is no more. A cancel() that meets this may go unnoticed: what
/// it was to keep from beginning then begins.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::end_of_cancel(shared* block) {
  const view& v = simt::in_block_shared(block).get_view();
  if (simt::atomic_ref<std::uint32_t>(*v.common.cancelled).fetch_sub(1, simt::relaxed) == 1)
    v.hints().fetch_and(~hint::cancelling, simt::relaxed);
}

// ---- what the host is told ----

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::heartbeat_if_due() {
  const std::uint64_t now = simt::cycle_count();
  if (now - w_.heartbeat_at > Policy::heartbeat_cycles) send_heartbeat(w_.heartbeat_type, now);
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::send_heartbeat(shared* block,
                                                                           std::uint32_t type,
                                                                           std::uint64_t now) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  w.heartbeat_type = type;
  w.heartbeat_at = now;
  simt::atomic_ref<std::uint32_t, simt::scope::system>(self.v_.reports.running_host[self.id_])
      .store(heartbeat_word::of(type, ++w.heartbeat_serial), simt::relaxed);
}

}  // namespace grosr::run
