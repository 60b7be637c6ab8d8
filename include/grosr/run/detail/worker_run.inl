// A worker runs tasks: what a warp does with a ref, from loading its records to what became of
// them. docs/internals/scheduler.md, "Run".
#pragma once

namespace grosr::run {

/// Whole warp: runs what `r` names, or its first tasks, and says which of a slot are done.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::run(ref r) {
  if (pending_slot_ != no_slot && !(r.slot() && r.where() == pending_slot_)) flush_completions();
  begin_busy();
  ran result = run_refs(r);
  if (has_near()) {
    const ran more = run_near(result.cycles);
    result.runs += more.runs;
    result.cycles = more.cycles;
  }
  end_busy();
  run_cycles_ = result.cycles;
  burst_runs_ = result.runs;
  if (r.slot() && result.done != 0)
    complete(r.whole() && result.done == r.count() ? r : r.split(), result.done, result.failures,
             r.count() > result.done);
}

/// Whole warp: runs what `r` names (lane and warp types), after putting back what is more than
/// one run of it; then more of what was spawned here, for a while, as long as nothing happens
/// elsewhere. Out of line, for the registers that the scheduler holds.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE auto worker<Policy, Tasks...>::run_refs(ref r) -> ran {
  worker self(simt::block_shared<shared>());
  ran result{};
  const std::uint64_t began = simt::cycle_count();
  GROSR_NO_UNROLL
  for (; r; ++result.runs) {
    signals seen{};
    std::uint64_t published = 0;
    if (leads()) {
      seen = self.v_.poll_signals();
      published = self.v_.deque(r.level(), self.id_).size(simt::relaxed);
      const bool starving = (seen.hints & hint::starving) != 0;
      result.others_wait = starving || published == 0;
      self.set_alone(r.type(), starving && r.count() == 1);
    }
    ((r.type() == types::template index_of<Tasks>() ? (self.template run_typed<Tasks>(r, result), 0)
                                                    : 0),
     ...);
    const burst_state burst{began, seen, published != 0, result.runs};
    const std::uint32_t level = r.level();
    const bool goes_on = !r.slot() && result.runs < Policy::burst_runs;
    GROSR_NO_UNROLL
    for (bool all = !goes_on || self.run_cycles_ > Policy::long_run_cycles;; all = true) {
      self.run_ready(all);
      if (all && spawner_type::any_forks)  // continuations are part of the run
        self.run_cycles_ =
            simt::shuffle(simt::full_mask, simt::cycle_count() - self.w_.run_began, 0);
      r = goes_on ? self.next_private(level, burst) : ref{};
      // Continuations may start what comes next.
      if (r || all || !self.any_ready()) break;
    }
  }
  result.cycles = self.run_cycles_;
  return result;
}

/// Whole warp, nobody spawning: whether a batch is near.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::has_near() const {
  return spawner_type::any_near && simt::shared_load(w_.near_kind) != no_kind;
}

/// Whole warp, after a run of so many cycles while a batch was near: runs what is near, and then
/// what that spawns, as long as it is near. Nothing is near then.
template <class Policy, class... Tasks>
GROSR_DEVICE auto worker<Policy, Tasks...>::run_near(std::uint64_t cycles) -> ran {
  if constexpr (!spawner_type::any_near) return {};
  // docs/internals/scheduler.md, "The short way", says why by its address.
  if constexpr (((spawner_type::template may_be_near<Tasks> && width_of<Tasks>() == width::warp) ||
                 ...))
    return simt::opaque(&run_near_out_of_line)(&b_, cycles);
  else
    return run_near_out_of_line(&b_, cycles);
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE auto worker<Policy, Tasks...>::run_near_out_of_line(
    shared* block, std::uint64_t cycles) -> ran {
  // By a shuffle: what the compiler cannot find out again, it keeps.
  worker self(simt::in_block_shared(block), simt::shuffle(simt::full_mask, simt::warp_id(), 0));
  const std::uint32_t kind = simt::shared_load(self.w_.near_kind), type = kind / priority_levels;
  ran result{};
  result.cycles = cycles;
  if (leads())
    simt::atomic_ref<std::uint32_t>(self.v_.reports.running[self.id_])
        .store(type + 1, simt::relaxed);
  ((type == types::template index_of<Tasks>() ? (self.template run_near_as<Tasks>(kind, result), 0)
                                              : 0),
   ...);
  if (leads()) spawner_type::end_near(block);
  result.cycles = simt::shuffle(simt::full_mask, result.cycles, 0);
  return result;
}

/// Whole warp, nobody spawning, after a run of so many cycles, and so many runs of what was near in
/// so many: whether the worker goes on with that, which forks or not. It has nothing else, and
/// nobody waits for it.
template <class Policy, class... Tasks>
template <bool Forks>
GROSR_DEVICE bool worker<Policy, Tasks...>::near_goes_on(std::uint32_t kind, std::uint64_t cycles,
                                                         unsigned runs,
                                                         std::uint64_t all_cycles) const {
  using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
  const std::uint32_t level = kind % priority_levels;
  // One condition: all loads are under way together.
  const std::uint32_t against =
      word(b_.rendezvous).load(simt::relaxed) | nonempty(b_.deques) | w_.must_yield |
      w_.deques.private_count[level] |
      (static_cast<std::uint32_t>(w_.near) ^ static_cast<std::uint32_t>(near_state::open));
  const std::uint64_t kinds = w_.open_mask ^ kind_bit(kind);
  const std::uint32_t records = w_.open[kind].count - spawner_type::first_near(kind);
  bool stays = (against | kinds) == 0 && records != 0 && cycles <= Policy::long_run_cycles;
  if constexpr (Forks)  // as may_fork()
    stays = stays && w_.magazine_count >= fork_magazine && spawner_.frames_at_hand() >= fork_frames;
  if (runs % Policy::near_looks == Policy::near_looks - 1) {
    const signals seen = v_.poll_signals();
    const std::uint32_t ends = Policy::levels_that_end_burst(level, runs);
    stays = stays && (seen.hints & (hint::cancelling | hint::blocks | ends)) == 0 &&
            (nonempty(w_.deques) & ends) == 0 && !seen.says_leave(v_.epoch) &&
            runs < Policy::near_runs && all_cycles < Policy::burst_cycles;
    // Where all have work, what is near is collected.
    if constexpr (has_collector) stays = stays && (seen.hints & hint::starving) != 0;
  }
  return simt::ballot(simt::full_mask, stays) == simt::full_mask;
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::run_near_as(std::uint32_t kind, ran& result) {
  if constexpr (spawner_type::template may_be_near<T>) {
    constexpr bool warp_wide = width_of<T>() == width::warp;
    constexpr std::uint32_t first =
        spawner_type::first_near(kind_of(types::template index_of<T>(), 0));
    const std::uint32_t level = kind % priority_levels;
    const unsigned lane = simt::lane_id();
    open_batch& open = w_.open[kind];
    loaded<T> l;
    T& task = l.task;
    std::uint32_t done = 0, failures = 0, runs = 0;
    const std::uint64_t all_began = simt::cycle_count();
    std::uint64_t now = all_began;
    while (near_goes_on<is_forked<T>>(kind, result.cycles, runs, now - all_began)) {
      const std::uint64_t began = simt::cycle_count();
      const std::uint32_t n = warp_wide ? 1 : simt::shared_load(open.count);
      const bool mine = warp_wide || lane < n;
      if (mine) read_record(w_.stage + (warp_wide ? 0 : lane * stride_of<T>), task);
      simt::sync_warp();  // the records are in registers
      if (leads()) {
        open.count = open.written = first;
        w_.run_began = began;
        w_.deques.any_published = 0;
        set_alone(kind / priority_levels, n == 1 && result.cycles <= Policy::bundle_cycles);
      }
      simt::sync_warp();
      const std::uint32_t bad = execute(task, mine, level, warp_wide || spawner_type::any_forks);
      failures += warp_wide ? (bad != 0 ? 1 : 0) : simt::popcount(bad);
      done += n;
      ++runs;
      now = simt::cycle_count();
      result.cycles = now - began;
    }
    if (leads()) {
      if (runs != 0) set_quick(kind / priority_levels, result.cycles);
      w_.tasks += done;
      w_.spawned += done;
      w_.failed += failures;
      w_.batches += runs;
    }
    result.runs = runs;
  }
}

/// Whole warp, after a run: the newest private ref, or what it has just spawned,
/// if all is as it was: nothing more urgent is there, and nothing for blocks, and what ran was
/// short.
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::next_private(std::uint32_t level,
                                                        const burst_state& burst) {
  std::uint64_t got = 0;
  if (leads()) {
    const std::uint32_t hints = burst.seen.hints;
    const std::uint32_t ends_burst = Policy::levels_that_end_burst(level, burst.runs);
    std::uint32_t& private_count = w_.deques.private_count[level];
    if ((hints & (hint::cancelling | ends_burst | hint::blocks)) == 0 &&
        !burst.seen.says_leave(v_.epoch) && (nonempty(w_.deques) & (ends_burst | near_bit)) == 0 &&
        (w_.open_mask & (kinds_of_levels(ends_burst) | kinds_of_blocks)) == 0 &&
        w_.must_yield == 0 && run_cycles_ <= Policy::long_run_cycles &&
        simt::cycle_count() - burst.began < Policy::burst_cycles && nonempty(b_.deques) == 0 &&
        v_.trace.events == nullptr &&
        simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.rendezvous).load(simt::relaxed) ==
            0) {
      const bool starving = (hints & hint::starving) != 0 && !burst.published;
      if (starving || (private_count == 0 && w_.open_mask != 0))
        spawner_type::publish_for_others(&b_, level, starving);
      // A ref from the host is run by the worker that completes it.
      if (private_count != 0 && !ref{w_.deques.private_refs[level][private_count - 1]}.slot())
        got = w_.deques.private_refs[level][--private_count];
    }
  }
  return {simt::shuffle(simt::full_mask, got, 0)};
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::run_typed(ref r, ran& result) {
  if constexpr (is_forked<T>)
    if (!may_fork(r)) return;
  if constexpr (width_of<T>() == width::lane) run_lanes<T>(r, result);
  if constexpr (width_of<T>() == width::warp) run_warp<T>(r, result);
  // Block types are run by rendezvous.
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::run_lanes(ref r, ran& result) {
  constexpr std::uint32_t type = types::template index_of<T>(), stride = stride_of<T>;
  constexpr std::uint32_t most = stage_bytes / stride / simt::warp_size * simt::warp_size;
  const unsigned lane = simt::lane_id();
  std::uint32_t total = 0;
  loaded<T> l;
  T& task = l.task;
  if (r.slot()) {
    total = r.count() < most ? r.count() : most;
    fetch(&b_, r.take(total), total * stride, stride);
    if (leads()) consume(r, total);
  } else {
    // Fill up from this worker's newest refs while they are of the same kind.
    GROSR_NO_UNROLL
    for (ref part = r; part; part = total < simt::warp_size ? pop_same(r) : ref{}) {
      std::uint32_t room = simt::warp_size - total, n = part.count() < room ? part.count() : room;
      if (lane - total < n)
        read_record(batch_at(part) + (part.first() + lane - total) * stride, task);
      simt::sync_warp();  // the records are in registers: the batch may be split or freed
      if (leads()) consume(part, n);
      total += n;
    }
    if (leads() && total != 1) set_alone(type, false);
  }
  begin_run(type, r.slot(), trace_place(r));
  std::uint32_t done = 0, failures = 0;
  GROSR_NO_UNROLL
  for (;;) {
    const std::uint32_t n = total - done < simt::warp_size ? total - done : simt::warp_size;
    if (r.slot() && lane < n) read_record(w_.stage + (done + lane) * stride, task);
    done += n;
    simt::sync_warp();  // this worker's batches are whole again: lanes may spawn
    failures += simt::popcount(execute(task, lane < n, r.level(), r.slot()));
    if (done == total) break;
    if (went_long()) {  // others may want the rest, or something more urgent
      if (leads()) spawner_type::put_back(&b_, r.take(total).rest(done));
      break;
    }
  }
  end_run(type, done, failures);
  result.done = done;
  result.failures = failures;
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::run_warp(ref r, ran& result) {
  constexpr std::uint32_t type = types::template index_of<T>();
  loaded<T> l;
  T& task = l.task;
  if (r.slot()) fetch(&b_, r.take(1), stride_of<T>, stride_of<T>);
  read_record(r.slot() ? w_.stage : batch_at(r) + r.first() * stride_of<T>, task);
  simt::sync_warp();
  if (leads()) {
    // Most batches of wide tasks hold several, each of which is run by itself.
    if (r.count() > 1)
      w_.spilled += push_ref(v_, w_.deques, id_, r.rest(1));
    else if (!r.slot())
      free_batch(v_, w_, r.where());
    // Tasks this wide may be long: the others of a packet do not wait for it, nor, where others
    // have nothing to do, those of a large batch.
    if (r.count() > (r.slot()             ? 1
                     : result.others_wait ? Policy::batch_limit(width::warp)
                                          : batch_records))
      w_.spilled += publish_all(v_, w_.deques, id_, 0);
  }
  begin_run(type, r.slot(), trace_place(r));
  simt::sync_warp();  // this worker's batches are whole again: lanes may spawn
  const std::uint32_t failed = execute(task, true, r.level(), true) != 0 ? 1 : 0;
  end_run(type, 1, failed);
  result.done = 1;
  result.failures = failed;
}

/// Whole warp, after begin_run(), open batches whole: the task is called by the lanes that are to,
/// `mine`, which are one or more of a lane task's, all of a wider one's; then continuations that
/// are ready run, with `all` until there are none. The lanes to which it returned an error. The
/// host is told of each lane task's error, and of one of a wider task's.
template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE std::uint32_t worker<Policy, Tasks...>::execute(const T& task, bool mine,
                                                             std::uint32_t level, bool all) {
  constexpr width w = width_of<T>();
  int status = 0;
  task_end end;
  if (mine) {
    context_type c(spawner_, w, level, 0);
    status = spawner_type::template invoke<true>(task, c);
    if constexpr (w == width::lane && returns_status<T>)
      if (status != 0) spawner_type::keep_error(&b_, task, status);
    end = c.end();
  }
  simt::sync_warp();
  std::uint32_t bad = w_.failed_lanes;
  if constexpr (returns_status<T>) {
    const std::uint32_t failed = simt::ballot(simt::full_mask, status != 0);
    if (w != width::lane && failed != 0 && simt::lane_id() == simt::lowest_bit(failed) &&
        (w == width::warp || is_first_failure()))
      spawner_type::keep_error(&b_, task, status);
    bad |= failed;
  }
  keep_ready<T>(end);
  run_ready(all);
  if (w_.failed_lanes != 0) [[unlikely]]
    forget_failed(&b_, w == width::block);
  return bad;
}

/// Whole warp: tasks of lanes, or continuations that ran then, did what they should not, or started
/// some that found no place. Those tasks have failed.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void worker<Policy, Tasks...>::forget_failed(shared* block,
                                                                         bool block_task) {
  worker self(simt::in_block_shared(block));
  simt::sync_warp();
  if (leads()) {
    self.w_.failed_lanes = 0;
    if (self.w_.rejected != 0) self.flush_stats();  // who waits for all is told how many
    if (block_task) self.is_first_failure();
  }
  simt::sync_warp();
}

// ---- continuations ----

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::keep_ready(task_end end) {
  if constexpr (is_forked<T> || completes<T> || delivers<T>) spawner_.keep_ready(end);
}

/// Whole warp, nobody spawning: runs continuations that are ready; with `all`, until there are
/// none.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::run_ready(bool all) {
  if constexpr ((is_forked<Tasks> || ...))
    if (w_.ready_count >= (all ? 1 : simt::warp_size) || w_.ready_list != no_frame)
      chain<spawner_type>::run(&b_, all);
}

/// Whole warp, nobody spawning: whether a continuation is ready.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::any_ready() const {
  return (is_forked<Tasks> || ...) && (w_.ready_count != 0 || w_.ready_list != no_frame);
}

/// Whole warp: whether tasks that fork may be run now. If not, others find them.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::may_fork(ref r) {
  const bool low = w_.magazine_count < fork_magazine || spawner_.frames_at_hand() < fork_frames;
  if (simt::shuffle(simt::full_mask, low ? 1u : 0u, 0) == 0) return true;
  return makes_room_to_fork(&b_, r);
}

/// Whole warp, with little at hand for what tasks fork: whether there is room now. If not, others
/// find them.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE bool worker<Policy, Tasks...>::makes_room_to_fork(shared* block,
                                                                              ref r) {
  worker self(simt::in_block_shared(block));
  self.run_ready(true);  // it frees frames
  std::uint32_t room = leads() && has_room_to_fork(&self.v_, &self.w_, self.id_) ? 1 : 0;
  if (simt::shuffle(simt::full_mask, room, 0) != 0) return true;
  if (leads()) {
    self.spawner_.push_any(r, false);
    self.w_.spilled += publish_all(self.v_, self.w_.deques, self.id_, 0);
  }
  simt::sync_warp();
  simt::pause(4, "room in task memory");
  return false;
}

// ---- records ----

template <class Policy, class... Tasks>
GROSR_DEVICE const unsigned char* worker<Policy, Tasks...>::batch_at(ref r) const {
  return r.slot() ? v_.submission.staging + std::uint64_t{r.where()} * v_.sizes.staging_bytes
                  : v_.batch_at(r.where());
}

/// Loads a task from its record.
template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::read_record(const unsigned char* at, T& task) {
  piece p[stride_of<T> / 16];
  auto* from = reinterpret_cast<const piece*>(at);
  for (unsigned i = 0; i < stride_of<T> / 16; ++i) p[i] = from[i];
  __builtin_memcpy(&task, p, sizeof(T));
}

/// Whole warp: fetches records of a slot into the stage, all accesses under way together.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void worker<Policy, Tasks...>::fetch(shared* block, ref r,
                                                                 std::uint32_t bytes,
                                                                 std::uint32_t stride) {
  const worker self(simt::in_block_shared(block));
  constexpr unsigned pieces = stage_bytes / 16 / simt::warp_size;
  unsigned lane = simt::lane_id();
  auto* from =
      reinterpret_cast<const simt::bus_word*>(self.batch_at(r) + r.first() * stride) + lane;
  auto* to = reinterpret_cast<piece*>(self.w_.stage) + lane;
  simt::bus_word in[pieces];
  for (unsigned i = 0; i < pieces; ++i)
    if ((i * simt::warp_size + lane) * 16 < bytes)
      in[i] = simt::bus_load(from + i * simt::warp_size);
  for (unsigned i = 0; i < pieces; ++i)
    if ((i * simt::warp_size + lane) * 16 < bytes)
      to[i * simt::warp_size] = {{in[i].w[0], in[i].w[1], in[i].w[2], in[i].w[3]}};
  simt::sync_warp();
}

/// One lane: the first n records of `r` are loaded; puts the rest back, or frees the batch.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::consume(ref r, std::uint32_t n) {
  if (n == r.count()) {
    if (!r.slot()) free_batch(v_, w_, r.where());
    return;
  }
  spawner_type::put_back(&b_, r.rest(n));
}

/// Whole warp: this worker's newest ref if it is a pool batch like `like`.
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::pop_same(ref like) {
  std::uint64_t got = 0;
  if (leads()) {
    ref top = peek_ref(v_, w_.deques, id_, like.level());
    if (top && !top.slot() && top.type() == like.type()) {
      ref r = pop_ref(v_, w_.deques, id_, like.level());
      got = r.bits;
    }
  }
  return {simt::shuffle(simt::full_mask, got, 0)};
}

// ---- around a run ----

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::begin_run(std::uint32_t type, bool from_slot,
                                                      std::uint32_t place) {
  if (!leads()) return;
  w_.run_began = simt::cycle_count();
  w_.deques.any_published = 0;
  if (v_.trace.events != nullptr) {
    w_.trace_began = simt::clock_ns();
    w_.trace_at = place;
  }
  end_of_yield();
  simt::atomic_ref<std::uint32_t>(v_.reports.running[id_]).store(type + 1, simt::relaxed);
  // The host knows which tasks lie in slots, but not that this worker goes on.
  bool changed = !from_slot && type + 1 != w_.heartbeat_type;
  if (w_.run_began - w_.heartbeat_at >
          (changed ? Policy::report_cycles : Policy::heartbeat_cycles) ||
      (tells_rest && changed && w_.heartbeat_type == 0))
    spawner_.send_heartbeat(type + 1, w_.run_began);
}

/// One lane, at the beginning of a run: a task that was told to yield has, and the next may.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::end_of_yield() {
  if (w_.must_yield == 0) return;
  w_.must_yield = 0;
  simt::atomic_ref<std::uint64_t>(*v_.common.yield_granted).store(0, simt::relaxed);
}

/// Whole warp, between the runs of one ref: whether the last one has taken long.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::went_long() {
  std::uint32_t went = 0;
  if (leads()) {
    went = spawner_.long_run() ? 1 : 0;
    if (went == 0) w_.run_began = simt::cycle_count();
  }
  return simt::shuffle(simt::full_mask, went, 0) != 0;
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::end_run(std::uint32_t type, std::uint32_t count,
                                                    std::uint32_t failed) {
  run_cycles_ = simt::shuffle(simt::full_mask, simt::cycle_count() - w_.run_began, 0);
  if (!leads()) return;
  if (count == 1) set_quick(type, run_cycles_);
  w_.tasks += count;
  w_.failed += failed;
  w_.batches += (count + simt::warp_size - 1) / simt::warp_size;
  if (v_.trace.events != nullptr) record_run(&b_, type, count);
}

/// One lane, after a run, where a trace is written.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void worker<Policy, Tasks...>::record_run(shared* block,
                                                                      std::uint32_t type,
                                                                      std::uint32_t count) {
  worker self(simt::in_block_shared(block));
  local& w = self.w_;
  std::uint32_t depth = 0;
  for (unsigned l = 0; l < priority_levels; ++l)
    depth += w.deques.owner[l].bottom - w.deques.owner[l].top_seen;
  record(self.v_, self.id_,
         {w.trace_began, simt::clock_ns(), type, count, depth, simt::sm_id(), trace_event::run,
          w.trace_at});
}

}  // namespace grosr::run
