// A spawner puts what tasks spawn into open batches, and from these to the worker's own refs;
// what is done when memory is full; whether a task yields. docs/internals/scheduler.md, "Spawn",
// "Yielding".
#pragma once

namespace grosr::run {

// ---- spawning ----

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE bool spawner<Policy, Tasks...>::spawn(const T& task, std::uint32_t level,
                                                   std::uint32_t depth) {
  if (place(task, level, false)) return true;
  return spawn_slowly(task, level, depth);
}

/// Lanes whose task found no pool batch.
template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE bool spawner<Policy, Tasks...>::spawn_slowly(const T& task, std::uint32_t level,
                                                          std::uint32_t depth) {
  if constexpr (width_of<T>() == width::lane) {
    if (depth < v_.sizes.inline_depth) {
      simt::opaque (&run_inline<T>)(&b_, task, level, depth + 1);
      return true;
    }
    return simt::opaque(&spawn_without_room<T>)(&b_, task, level);  // too deep
  } else {
    // Not by its address: what such a function calls saves the registers that it uses, and that is
    // nearly all that a spawn calls.
    return spawn_without_room(&b_, task, level);
  }
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::spawn_alone(shared* block, T task,
                                                                        std::uint32_t level) {
  return spawner(simt::in_block_shared(block)).spawn(task, level, 0);
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::spawn_if_room(shared* block, T task,
                                                                          std::uint32_t level) {
  spawner self(simt::in_block_shared(block));
  return self.place(task, level, false) || self.place(task, level, true);
}

/// A task that has the registers for itself: the scheduler keeps its own on the stack, once.
template <class T, class Context>
GROSR_DEVICE GROSR_NOINLINE auto call_apart(const T* task, Context* c) {
  const T mine = *task;
  return simt::call(mine, *c);
}

template <class Policy, class... Tasks>
template <bool Apart, class T, class Context>
GROSR_DEVICE int spawner<Policy, Tasks...>::invoke(const T& task, Context& c) {
  const auto call = [&] {
    const simt::doing<task_name<T>> it;
    if constexpr (Apart && has_block_memory<Tasks...>)
      return simt::opaque(&call_apart<T, Context>)(&task, &c);
    else
      return simt::call(task, c);
  };
  if constexpr (!requires { task(c); }) {
    static_assert(always_false<T>,
                  "grosr: a task needs GROSR_DEVICE void (or int) operator()(auto& context) const");
    return 0;
  } else if constexpr (std::is_void_v<decltype(task(c))>) {
    call();
    return 0;
  } else {
    static_assert(std::is_same_v<decltype(task(c)), int>,
                  "grosr: a task returns void, or int: 0 or a negative errno");
    return call();
  }
}

/// Puts a task into the open batch of the type and level. False when there was no pool batch.
template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE bool spawner<Policy, Tasks...>::place(const T& task, std::uint32_t level,
                                                   bool last_resort) {
  note_spawn_code<Policy, Tasks...>();
  constexpr std::uint32_t type = types::template index_of<T>();
  open_batch& open = w_.open[kind_of(type, level)];
  GROSR_NO_UNROLL
  for (;;) {
    const std::uint32_t i = simt::shared_add(open.count, 1);
    if (i < batch_records) {
      write_record(open.at + i * stride_of<T>, task);
      simt::fence<simt::scope::block>(simt::release);  // R1: the record; pairs with A1
      simt::shared_add(open.written, 1);
      return true;
    }
    if (!next_batch(&b_, kind_of(type, level), last_resort)) return false;
  }
}

/// Lanes that found no place: one sees to a batch for records of this kind; false when there is
/// none. What is done mostly is done here, without a call: a function that may call saves its
/// registers to local memory first.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::next_batch(shared* block,
                                                                       std::uint32_t kind,
                                                                       bool last_resort) {
  spawner self(simt::in_block_shared(block));
  const std::uint32_t mask = simt::active_mask_by(kind, false);
  const unsigned leader = simt::lowest_bit(mask);
  std::uint32_t got = 0;
  if (simt::lane_id() == leader) got = self.swap_batch(kind) ? 1 : 0;
  if (simt::shuffle(mask, got, leader) != 0) return true;
  return next_batch_slowly(block, kind, last_resort);
}

/// One lane: puts a batch from the magazine in place of the full one of this kind, if nothing is in
/// the way of that.
template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::swap_batch(std::uint32_t kind) {
  if (w_.slow_spawns != 0) return false;
  if (!simt::shared_try_lock(w_.deques.lock)) return false;
  open_batch& open = w_.open[kind];
  const std::uint32_t type = kind / priority_levels, n = batch_records - open.first;
  bool got = simt::shared_load(open.count) < batch_records;  // another lane has seen to it
  if (!got && w_.magazine_count != 0 &&
      // A1, as in next_batch_slowly().
      (open.batch == no_batch ||
       (simt::shared_load(open.written) == batch_records &&
        keep_private(ref::make(open.batch, false, 0, n, type, kind % priority_levels, false))))) {
    if (open.batch != no_batch) w_.spawned += n;
    const std::uint32_t first =
        set_batch(kind, w_.magazine[--w_.magazine_count], usual_first(kind));
    simt::shared_store(open.written, first);
    simt::shared_store(open.count, first);
    got = true;
  }
  simt::shared_store(w_.deques.lock, 0);
  return got;
}

/// One lane, the warp's lock held: adds a ref to this warp's own or, a block task, to the block's,
/// if nothing is to be published for that.
template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::keep_private(ref r) {
  if (!is_block_type(r.type())) {
    if (long_run() || w_.deques.private_count[r.level()] == private_capacity) return false;
    add_private(w_.deques, r);
    return true;
  }
  if (!try_lock(b_.deques.lock)) return false;
  const bool room = b_.deques.private_count[r.level()] != private_capacity;
  if (room) {
    simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.deques.any_published)
        .store(1, simt::relaxed);
    add_private(b_.deques, r);
  }
  unlock(b_.deques.lock);
  return room;
}

/// One lane, lock held: this batch, without its first places, is the open one of the kind once
/// `written` and `count` say `first`, which this returns.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::set_batch(std::uint32_t kind,
                                                                std::uint32_t batch,
                                                                std::uint32_t first) {
  open_batch& open = w_.open[kind];
  open.batch = batch;
  open.first = first;
  open.at = v_.batch_at(batch) - first * stride_at(kind / priority_levels);
  w_.open_mask |= kind_bit(kind);
  return first;
}

/// One lane, lock held, in a long run, which has filled a batch: its children do not wait for its
/// end, nor what else the worker has. Those that wait are no more than those that have been
/// published, or fill the private refs; and a run that fills few batches keeps none back. Whether
/// there are many.
template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::publish_children(std::uint32_t level) {
  const std::uint64_t now = simt::cycle_count();
  if (w_.filled_at < w_.run_began || now - w_.filled_at > Policy::long_run_cycles)
    w_.publish_at = 1;
  w_.filled_at = now;
  const auto taken = [&](std::uint32_t l) { return v_.deque(l, id_).size(simt::relaxed) == 0; };
  if (w_.deques.private_count[level] >= w_.publish_at && taken(level)) {
    GROSR_NO_UNROLL
    for (std::uint32_t l = 0; l < priority_levels; ++l)
      if (const std::uint32_t n = w_.deques.private_count[l]; n != 0 && taken(l))
        w_.spilled += publish(v_, w_.deques, id_, l, n);
    if (w_.publish_at < private_capacity) w_.publish_at *= 2;
  }
  return w_.publish_at == private_capacity;
}

/// The same, whatever is in the way.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::next_batch_slowly(shared* block,
                                                                              std::uint32_t kind,
                                                                              bool last_resort) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  const std::uint32_t mask = simt::active_mask_by(kind, false);
  const unsigned leader = simt::lowest_bit(mask);
  std::uint32_t got = 0;
  if (simt::lane_id() == leader) {
    lock(w.deques.lock);
    open_batch& open = w.open[kind];
    simt::atomic_ref<std::uint32_t, simt::scope::block> count(open.count), written(open.written);
    if (count.load(simt::relaxed) < batch_records) {
      got = 1;  // another lane has seen to it
    } else {
      bool many = false;
      if (open.batch != no_batch) {
        // A1: pairs with R1 in place(): who took a place before writes without waiting for anything.
        simt::wait_until([&] { return written.load(simt::acquire) == batch_records; },
                         simt::forever, nullptr, "another lane's record");
        if (self.is_near(kind))
          self.keep_near();
        else
          self.close(kind, batch_records - open.first, true);
        if (!is_block_type(kind / priority_levels) && self.long_run()) {
          if (self.is_near_full()) push_near(block, true);
          many = self.publish_children(kind % priority_levels);
        }
      }
      std::uint32_t batch = take_batch(self.v_, w, self.id_), first = 0;
      if (batch == no_batch && last_resort) batch = take_overflow(self.v_);
      got = batch != no_batch ? 1 : 0;
      if (got != 0)
        first = self.set_batch(kind, batch, many ? 0 : usual_first(kind));
      else
        open.batch = no_batch;
      written.store(first, simt::relaxed);
      count.store(got != 0 ? first : nowhere, simt::release);
    }
    unlock(w.deques.lock);
  }
  return simt::shuffle(mask, got, leader) != 0;
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void spawner<Policy, Tasks...>::write_record(unsigned char* to, const T& task) {
  piece p[stride_of<T> / 16] = {};
  __builtin_memcpy(p, &task, sizeof(T));
  auto* out = reinterpret_cast<piece*>(to);
  for (unsigned i = 0; i < stride_of<T> / 16; ++i) out[i] = p[i];
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::run_inline(shared* block, T task,
                                                                       std::uint32_t level,
                                                                       std::uint32_t depth) {
  using count = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  spawner self(simt::in_block_shared(block));
  count(self.w_.inlined).fetch_add(1, simt::relaxed);
  count(self.w_.deques.any_published).store(1, simt::relaxed);
  context_type c(self, width::lane, level, depth);
  int status = invoke<false>(task, c);
  if (status != 0) note_failure(block, task, status);
  if constexpr (is_forked<T> || delivers<T>) {
    const std::uint32_t ready = self.ready_after(c.end());
    if (ready != no_frame) self.defer_ready(ready);
  }
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void spawner<Policy, Tasks...>::run_in_place(const T& task, std::uint32_t level) {
  static_assert(width_of<T>() == width::lane && !is_forked<T> && !delivers<T>);
  context_type c(*this, width::lane, level, never_inline);
  // The lane's bit is that of the task in which this one runs.
  const std::uint32_t mine = 1u << simt::lane_id();
  const simt::atomic_ref<std::uint32_t, simt::scope::block> failed(w_.failed_lanes);
  const bool was_set = (failed.load(simt::relaxed) & mine) != 0;
  if (was_set) [[unlikely]]
    failed.fetch_and(~mine, simt::relaxed);
  const int status = invoke<true>(task, c);
  if (status != 0) note_failure(&b_, task, status);
  if ((failed.load(simt::relaxed) & mine) != 0) [[unlikely]] {
    failed.fetch_and(~mine, simt::relaxed);
    if (status == 0) count_failure();
  }
  if (was_set) [[unlikely]]
    failed.fetch_or(mine, simt::relaxed);
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void spawner<Policy, Tasks...>::note_failure(const T& task, int status) {
  note_failure(&b_, task, status);
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::note_failure(shared* block, T task,
                                                                         int status) {
  spawner self(simt::in_block_shared(block));
  simt::atomic_ref<std::uint32_t, simt::scope::block>(self.w_.failed).fetch_add(1, simt::relaxed);
  record_error(self.v_, types::template index_of<T>(), failure::returned, status, &task, sizeof(T));
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::note_misuse(shared* block, T task,
                                                                        failure what,
                                                                        bool continuation) {
  spawner self(simt::in_block_shared(block));
  using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  if (continuation)
    self.count_failure();
  else
    word(self.w_.failed_lanes).fetch_or(1u << simt::lane_id(), simt::relaxed);
  record_error(self.v_, types::template index_of<T>(), what, code_of(what), &task, sizeof(T));
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::keep_error(shared* block, T task,
                                                                       int status) {
  spawner self(simt::in_block_shared(block));
  record_error(self.v_, types::template index_of<T>(), failure::returned, status, &task, sizeof(T));
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::record_error(const view& v,
                                                                         std::uint32_t type,
                                                                         failure what, int code,
                                                                         const void* task,
                                                                         std::uint32_t bytes) {
  std::uint32_t i =
      simt::atomic_ref<std::uint32_t>(*v.reports.error_count).fetch_add(1, simt::relaxed);
  if (i >= errors_kept) return;
  error_record& e = v.reports.errors[i];
  e.type = type;
  e.code = code;
  e.what = what;
  auto* from = static_cast<const unsigned char*>(task);
  for (std::uint32_t k = 0; k < bytes; ++k) e.task[k] = from[k];
  simt::atomic_ref<std::uint32_t, simt::scope::system>(e.serial).store(i + 1, simt::release);
}

// ---- what was spawned ----

/// One lane: the open batch of this kind has n records, all written.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::close(std::uint32_t kind, std::uint32_t n,
                                                   bool locked) {
  open_batch& open = w_.open[kind];
  w_.spawned += n;
  const ref r =
      ref::make(open.batch, false, 0, n, kind / priority_levels, kind % priority_levels, false);
  record_now(v_, id_, trace_event::ready, r, n);
  push_any(r, locked);
  open.batch = no_batch;
}

/// One lane, nobody spawning: closes every open batch.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::close_all() {
  GROSR_NO_UNROLL
  for (std::uint64_t rest = w_.open_mask; rest != 0; rest &= rest - 1) {
    const std::uint32_t kind = simt::lowest_bit64(rest);
    if (w_.open[kind].batch != no_batch) close_open(kind);
  }
  w_.open_mask = 0;
}

/// One lane, nobody spawning: closes the batch of a kind, all of whose records are written.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::close_open(std::uint32_t kind) {
  const std::uint32_t n = w_.open[kind].count;
  close(kind, (n < batch_records ? n : batch_records) - w_.open[kind].first, false);
  w_.open[kind].count = nowhere;
}

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::push_any(ref r, bool locked) {
  std::uint32_t spilled;
  if (is_block_type(r.type())) {
    simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.deques.any_published)
        .store(1, simt::relaxed);
    lock(b_.deques.lock);
    spilled = push_ref(v_, b_.deques, v_.sizes.workers + simt::block_id(), r);
    unlock(b_.deques.lock);
  } else {
    if (!locked) lock(w_.deques.lock);
    spilled = push_ref(v_, w_.deques, id_, r);
    if (!locked) unlock(w_.deques.lock);
  }
  w_.spilled += spilled;
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::put_back(shared* block, ref r) {
  spawner(simt::in_block_shared(block)).push_any(r, false);
}

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::flush(bool with_blocks) {
  simt::sync_warp();
  // A loop of the whole warp, for only one lane's would break it up.
  std::uint64_t rest = leads() ? w_.open_mask : 0;
  rest = simt::shuffle(simt::full_mask, rest, 0);
  GROSR_NO_UNROLL
  for (; rest != 0; rest &= rest - 1) {
    const std::uint32_t kind = simt::lowest_bit64(rest);
    if (leads() && w_.open[kind].batch != no_batch) close_open(kind);
  }
  if (leads()) w_.open_mask = 0;
  if (leads() && with_blocks) publish_blocks();
  simt::sync_warp();
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::publish_for_others(shared* block,
                                                                               std::uint32_t level,
                                                                               bool starving) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  const bool alone = w.deques.private_count[level] == 0;
  self.close_all();
  const std::uint32_t private_count = w.deques.private_count[level];
  if (starving && private_count > 1)
    w.spilled += publish(self.v_, w.deques, self.id_, level, private_count / 2);
  if (!alone || private_count != 1) return;
  // The run before did so, too: a chain, most likely.
  if (any_near && w.alone_at + 1 == w.batches) {
    const ref r{w.deques.private_refs[level][0]};
    open_near(block, kind_of(r.type(), level), r.count());
  }
  w.alone_at = w.batches;
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::publish_own(shared* block) {
  spawner self(simt::in_block_shared(block));
  if (keeps_near) end_near(block);
  self.close_all();
  self.w_.spilled += publish_all(self.v_, self.w_.deques, self.id_, 0);
  self.publish_blocks();
}

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::publish_own() {
  publish_own(&b_);
}

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::publish_blocks() {
  if (nonempty(b_.deques) == 0) return;
  lock(b_.deques.lock);
  w_.spilled += publish_all(v_, b_.deques, v_.sizes.workers + simt::block_id(), 0);
  unlock(b_.deques.lock);
}

// ---- what tasks ask ----

template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::others_wait() const {
  return (v_.poll_signals().hints & hint::starving) != 0;
}

template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::should_yield(std::uint32_t level) {
  const std::uint32_t levels = Policy::yields_to(level);
  const std::uint32_t above = levels | hint::for_blocks(levels);
  if (simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.must_yield).load(simt::relaxed) != 0)
    return true;
  const signals now = v_.poll_signals();
  if (now.says_leave(v_.epoch)) return true;
  const std::uint32_t hints = now.hints & above;
  if (hints != 0) return try_grant_yield(&b_, hints);
  return poll_above(&b_, levels) && try_grant_yield(&b_, above);
}

/// Any lane: takes in a packet of one of these levels from a ring that nobody polled for a while.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::poll_above(shared* block,
                                                                       std::uint32_t levels) {
  spawner self(simt::in_block_shared(block));
  const view& v = self.v_;
  // Another one each time, for all that ask may be few.
  std::uint32_t one =
      (self.id_ + static_cast<std::uint32_t>(simt::cycle_count() >> 13)) % v.sizes.rings_per_level;
  GROSR_NO_UNROLL
  for (std::uint32_t l = 0; l < priority_levels; ++l) {
    if (!has_level(levels, l)) continue;
    const unsigned number = l * v.sizes.rings_per_level + one;
    const queue::submission_ring_ref ring = v.submission.rings[number];
    queue::poll_lock lock{};
    if (!ring.try_lock(Policy::poll_stale(number), lock) || !ring.accept_one(lock)) continue;
    // H1, as in worker::accept().
    v.hints().fetch_or(hint::of(l, false), simt::acq_rel);
    return true;
  }
  return false;
}

/// Lanes that are together, while more urgent work waits: whether this worker yields for it.
/// One at a time, until that one has found something or 8 us have passed: who waits is mostly
/// one task, and those who ask are all workers. Warps that a block task waits for all do.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE bool spawner<Policy, Tasks...>::try_grant_yield(shared* block,
                                                                            std::uint32_t hints) {
  spawner self(simt::in_block_shared(block));
  const view& v = self.v_;
  std::uint32_t mask = simt::active_mask();
  unsigned leader = simt::lowest_bit(mask);
  std::uint32_t mine = 0;
  if (simt::lane_id() == leader) {
    using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
    if ((hints & hint::blocks) != 0 && word(self.b_.rendezvous).load(simt::relaxed) != 0) mine = 1;
    simt::atomic_ref<std::uint64_t> yield_granted(*v.common.yield_granted);
    std::uint64_t last = yield_granted.load(simt::relaxed), now = simt::clock_ns();
    if (mine == 0 && now - last > Policy::yield_interval_ns &&
        yield_granted.compare_exchange(last, now, simt::relaxed))
      mine = 1;
    if (mine != 0) word(self.w_.must_yield).store(1, simt::relaxed);
  }
  return simt::shuffle(mask, mine, leader) != 0;
}

template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::note_pushed() {
  using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  word(w_.pushed).store(1, simt::relaxed);
  word(w_.uncollected).store(1, simt::relaxed);
}

template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::take_alone() {
  simt::atomic_ref<std::uint32_t, simt::scope::block> alone(w_.goes_alone);
  return alone.exchange(0, simt::relaxed) != 0;
}

template <class Policy, class... Tasks>
GROSR_DEVICE bool spawner<Policy, Tasks...>::wait_for_memory() const {
  std::uint64_t limit_ns = std::uint64_t{v_.memory_wait_us} * 1000;
  return v_.heap.wait_for_free(limit_ns) || v_.checked_heap.wait_for_free(limit_ns);
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE checked_heap_ref spawner<Policy, Tasks...>::get_checked_heap() const {
  alloc::heap_view v = v_.checked_heap.view();
  v.owner += types::template index_of<T>();
  return checked_heap_ref(v);
}

}  // namespace grosr::run
