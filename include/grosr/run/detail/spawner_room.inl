// Of spawner: what is done when task memory is full: others may have all that this worker holds; a
// task goes to the host's memory; and how it is known that nobody can make room. Nothing here is on
// a hot path, and no task is lost because time has passed. docs/internals/scheduler.md, "No room".
#pragma once

namespace grosr::run {

/// One lane, whose task found no pool batch: in time it is placed, or in the host's memory. False:
/// it is lost, and that was told.
template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::spawn_without_room(
    shared* block, T task, std::uint32_t level) {
  constexpr std::uint32_t type = types::template index_of<T>();
  spawner self(simt::in_block_shared(block));
  if (self.place(task, level, true)) return true;
  const std::uint32_t kind = kind_of(type, level);
  const std::uint64_t began = simt::clock_ns();
  begin_wait(block, lacks::task);
  prospect ahead = prospect::waits;
  GROSR_NO_UNROLL
  for (unsigned turn = 0;; ++turn) {
    if (turn % 16 == 0) publish_held(block);
    if (room_seen(block, kind)) {
      end_wait(block, lacks::task);
      if (self.place(task, level, true)) return true;
      begin_wait(block, lacks::task);
    }
    ahead = look_ahead(block, kind, began);
    if (ahead == prospect::none) break;
    if (ahead == prospect::swaps && self.swap_out(task, level)) break;
    simt::pause(turn, "room in task memory");
  }
  end_wait(block, lacks::task);
  if (ahead == prospect::none) self.reject(task);
  return ahead != prospect::none;
}

/// One lane: gives a task to the host, which keeps it until it can bring it back as a packet. False
/// while there is no room on the way.
template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE bool spawner<Policy, Tasks...>::swap_out(const T& task, std::uint32_t level) {
  constexpr std::uint32_t type = types::template index_of<T>();
  constexpr unsigned in_first = 3 * queue::record_words, words = stride_of<T> / 4;
  constexpr bool two = words > in_first;
  const queue::call_ring_ref& swap = v_.common.room->swap;
  std::uint64_t ticket = 0;
  if (!swap.try_take(two ? 2 : 1, ticket)) return false;
  // Before the host can see it, and this worker rests; open_packet() takes the count back.
  simt::atomic_ref<std::uint64_t>(*v_.common.activity).fetch_add(1, simt::acq_rel);
  using count = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  count(w_.swapped).fetch_add(1, simt::relaxed);
  count(w_.deques.any_published).store(1, simt::relaxed);
  std::uint32_t w[2 * in_first] = {};
  __builtin_memcpy(w, &task, sizeof(T));
  simt::fence<simt::scope::system>(simt::release);  // what the task is to find, before it
  queue::record r{};
  for (unsigned i = 0; i < in_first; ++i) r.word[i] = w[i];
  r.part[0] = type | level << 8 | (two ? 1u << 16 : 0u);
  swap.write(ticket, r);
  if constexpr (two) {
    for (unsigned i = 0; i < in_first; ++i) r.word[i] = w[in_first + i];
    swap.write(ticket + 1, r);
  }
  return true;
}

/// One lane: its task is lost. The host learns of it, and the task that runs here has failed.
template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void spawner<Policy, Tasks...>::reject(const T& task) {
  if (v_.aborted()) return;  // so is everything
  using count = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  count(w_.rejected).fetch_add(1, simt::relaxed);
  count(w_.failed_lanes).fetch_or(1u << simt::lane_id(), simt::relaxed);
  record_error(v_, types::template index_of<T>(), failure::no_place, -ENOSPC, &task, sizeof(T));
  simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.submission.state[state_word::rejected])
      .store(1, simt::relaxed);
}

// ---- who waits ----

/// One lane: waits for room from now on. It gives its part of the reserves up: another worker may
/// get on with that.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::begin_wait(shared* block, lacks what) {
  spawner self(simt::in_block_shared(block));
  room_state& room = *self.v_.common.room;
  lock(self.w_.deques.lock);
  release_reserve(self.v_, self.w_.reserve_part);
  std::uint64_t more = 0;
  if (self.w_.waiting++ == 0) {
    more = 1;
    if (simt::shared_add(self.b_.waiting, 1) == 0)
      simt::atomic_ref<std::uint32_t>(room.waiting_blocks).fetch_add(1, simt::relaxed);
  }
  if (what == lacks::task && self.w_.waiting_for_task++ == 0) more += waiting_count::for_task;
  if (what == lacks::rendezvous)
    simt::atomic_ref<std::uint32_t>(room.stalled).fetch_add(1, simt::relaxed);
  // W1: what this lane gave back, and the other counts, before its own; pairs with A1 in
  // look_ahead().
  if (more != 0) simt::atomic_ref<std::uint64_t>(room.waiting).fetch_add(more, simt::acq_rel);
  unlock(self.w_.deques.lock);
}

/// One lane: goes on, or tries to. Before it takes room that it has seen.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::end_wait(shared* block, lacks what) {
  spawner self(simt::in_block_shared(block));
  room_state& room = *self.v_.common.room;
  lock(self.w_.deques.lock);
  std::uint64_t change = waiting_count::time;
  if (--self.w_.waiting == 0) {
    change -= 1;
    if (simt::shared_add(self.b_.waiting, ~0u) == 1)
      simt::atomic_ref<std::uint32_t>(room.waiting_blocks).fetch_sub(1, simt::relaxed);
  }
  if (what == lacks::task && --self.w_.waiting_for_task == 0) change -= waiting_count::for_task;
  simt::atomic_ref<std::uint64_t>(room.waiting).fetch_add(change, simt::acq_rel);
  if (what == lacks::rendezvous)
    simt::atomic_ref<std::uint32_t>(room.stalled).fetch_sub(1, simt::relaxed);
  unlock(self.w_.deques.lock);
}

/// One lane, waiting, while others of its warp may spawn: lets other workers have all that this one
/// holds, open batches too.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::publish_held(shared* block) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  lock(w.deques.lock);
  GROSR_NO_UNROLL
  for (std::uint64_t rest = w.open_mask; rest != 0; rest &= rest - 1) {
    const std::uint32_t kind = simt::lowest_bit64(rest);
    open_batch& open = w.open[kind];
    if (open.batch == no_batch) continue;
    simt::atomic_ref<std::uint32_t, simt::scope::block> count(open.count), written(open.written);
    // No lane gets a place from now on: it comes to next_batch(), and waits for the lock.
    std::uint32_t n = count.exchange(nowhere, simt::relaxed);
    if (n == open.first) {
      count.store(n, simt::relaxed);
      continue;
    }
    n = n < batch_records ? n : batch_records;
    // A1, as in next_batch().
    simt::wait_until([&] { return written.load(simt::acquire) == n; }, simt::forever, nullptr,
                     "another lane's record");
    if (self.is_near(kind))
      close_near(block, n, true);
    else
      self.close(kind, n - open.first, true);
  }
  if (self.is_near_full()) push_near(block, true);
  w.spilled += publish_all(self.v_, w.deques, self.id_, 0);
  self.publish_blocks();
  unlock(w.deques.lock);
}

/// One lane, waiting: whether it is worth to try again: a batch, or a place in the open one of the
/// kind; or, no_kind, a frame.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::room_seen(shared* block,
                                                                      std::uint32_t kind) {
  spawner self(simt::in_block_shared(block));
  const view& v = self.v_;
  local& w = self.w_;
  lock(w.deques.lock);
  const std::uint32_t at_hand = kind != no_kind ? w.magazine_count : w.spare_count;
  unlock(w.deques.lock);
  if (at_hand != 0) return true;
  if (kind == no_kind) return v.frames.free.ready() != 0;
  const std::uint32_t taken =
      simt::atomic_ref<std::uint32_t, simt::scope::block>(w.open[kind].count).load(simt::relaxed);
  return v.tasks.free_batches.ready() != 0 || v.tasks.free_overflow.ready() != 0 ||
         taken < batch_records;
}

/// One lane, waiting, for a task of this kind since then, or, no_kind, for a frame: what may become
/// of it.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE auto spawner<Policy, Tasks...>::look_ahead(shared* block,
                                                                       std::uint32_t kind,
                                                                       std::uint64_t began)
    -> prospect {
  spawner self(simt::in_block_shared(block));
  const view& v = self.v_;
  if (v.aborted()) return prospect::none;
  simt::atomic_ref<std::uint64_t> waiting(v.common.room->waiting), activity(*v.common.activity);
  // A1: pairs with W1.
  const std::uint64_t before = waiting.load(simt::acquire), holders = activity.load(simt::acquire);
  const std::uint32_t workers = waiting_count::workers(before);
  const bool all = workers == v.sizes.workers;
  // Each waits while it is active. Whoever rests, or is stalled, may find work that others hold.
  const bool all_active = all || activity_count::holders(holders) == workers;
  const bool swap_full =
      simt::atomic_ref<std::uint32_t, simt::scope::system>(
          const_cast<std::uint32_t&>(v.submission.control[control_word::swap_full]))
          .load(simt::relaxed) != 0;
  if (kind != no_kind && !swap_full)
    return all_active || simt::clock_ns() - began > Policy::swap_after_ns ? prospect::swaps
                                                                          : prospect::waits;
  // Workers that leave the device give no frame back before the next kernel.
  if (kind == no_kind && v.poll_signals().says_leave(v.epoch)) return prospect::none;
  // Those that wait for room for a task go on by way of the host.
  if (!all_active || (!swap_full && waiting_count::for_tasks(before) != 0)) return prospect::waits;
  const bool some_look =
      !all || simt::atomic_ref<std::uint32_t>(v.common.room->stalled).load(simt::relaxed) != 0;
  if (some_look && self.others_have_work()) return prospect::waits;
  const bool room = room_seen(block, kind);
  // Nobody went on, or became active, meanwhile: so nobody does that anybody waits for.
  if (room || waiting.load(simt::acquire) != before ||
      (!all && activity.load(simt::acquire) != holders))
    return prospect::waits;
  return prospect::none;
}

/// One lane: whether there is work that workers which rest could find.
template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::others_have_work() const {
  const std::uint32_t blocks_waiting =
      simt::atomic_ref<std::uint32_t>(v_.common.room->waiting_blocks).load(simt::relaxed);
  GROSR_NO_UNROLL
  for (std::uint32_t level = 0; level < priority_levels; ++level) {
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < v_.all_workers(); ++i) {
      // For block tasks a block whose warps all can come.
      const bool could = i < v_.sizes.workers || blocks_waiting < v_.sizes.blocks;
      if (could && v_.deque(level, i).size() != 0) return true;
    }
    GROSR_NO_UNROLL
    for (std::uint32_t p = 0; p < v_.sizes.rings_per_level; ++p) {
      const queue::submission_ring_ref ring =
          v_.submission.rings[level * v_.sizes.rings_per_level + p];
      if (ring.waiting() || ring.unseen()) return true;
    }
  }
  return false;
}

}  // namespace grosr::run
