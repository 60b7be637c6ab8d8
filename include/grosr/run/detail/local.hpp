// What a worker keeps in block-shared memory, and the operations on it: its deques' owner state,
// its open batches, its magazine of free pool batches.
#pragma once

#include "grosr/run/detail/view.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::run {

inline constexpr std::uint32_t no_batch = 0xffffffffu;

/// Free frames that a worker keeps at hand, at most.
inline constexpr std::uint32_t frame_capacity = 272;

/// A batch that is being filled by spawns. Lanes take places in it by adding to `count`; who gets
/// one of batch_records or more, which it does not have, sees to the next batch. Places count from
/// `first`: a batch of few records lacks the first places.
struct open_batch {
  unsigned char* at;      ///< where place 0 would lie
  std::uint32_t batch;    ///< pool batch, or no_batch
  std::uint32_t count;    ///< first + places taken; from nowhere on, there is no batch
  std::uint32_t written;  ///< first + records
  std::uint32_t first;
};
inline constexpr std::uint32_t nowhere = 1u << 20;

/// An open batch may be near: its records lie in the stage of the warp, and go to the pool batch
/// that it has only when others may have them.
enum class near_state : std::uint32_t {
  none,
  open,  ///< the open batch of near_kind is
  full,  ///< it was; as many records as there is room for, with near_batch
};
inline constexpr std::uint32_t no_kind = 0xffffffffu;
/// Of deque_local::nonempty: a batch is near. Like a more urgent level, it ends a burst.
inline constexpr std::uint32_t near_bit = std::uint32_t{1} << 31;

/// Bits of warp_local::slow_spawns.
inline constexpr std::uint32_t slow_for_trace = 1, slow_for_near = 2;

/// Refs of one level that are private to a worker before it publishes the older half.
inline constexpr std::uint32_t private_capacity = 8;

/// Owner side of one worker's deques. The newest refs of a level are private, and lie here, where
/// taking one costs no access to device memory; older ones are in the deque, where thieves find
/// them. `lock` is held around every push: spawns of lanes that diverged meet here. Pops are made
/// by the worker between batches, when nobody spawns.
struct deque_local {
  std::uint32_t lock;
  std::uint32_t nonempty;       ///< bit l: deque l may hold refs, private or published; near_bit
  std::uint32_t marked;         ///< bit l: this worker's bit in bitmap l is set
  std::uint32_t any_published;  ///< what was spawned in this run may have begun
  std::uint32_t published;      ///< how often refs were
  std::uint32_t private_count[priority_levels];
  std::uint64_t private_refs[priority_levels][private_capacity];
  queue::deque_owner owner[priority_levels];
};

template <unsigned Types>
struct warp_local {
  deque_local deques;
  std::uint64_t run_began;                   ///< cycle_count when the batch that is running began
  std::uint64_t open_mask;                   ///< bit i: open[i] has a batch
  open_batch open[Types * priority_levels];  ///< type * priority_levels + level
  near_state near;
  std::uint32_t near_kind;  ///< no_kind: none is
  std::uint32_t near_batch;
  std::uint32_t alone_at;     ///< `batches`, when a run last left just one ref
  std::uint64_t filled_at;    ///< cycle_count, when a long run last filled a batch
  std::uint32_t publish_at;   ///< so many refs such a run keeps before it publishes them
  std::uint32_t slow_spawns;  ///< why a spawn that needs a batch takes the long way
  /// 1 + the kind of all that a packet's task of a type left last; of a type of blocks, that any
  /// task did, if this warp left all of it.
  std::uint8_t follows[max_task_types];
  std::uint8_t
      bundle_limits[max_task_types];  ///< as view::common's, when this worker knew of it last
  std::uint32_t frame_count;          ///< of free frames at hand; below 0 when lanes found none
  std::uint32_t frames[frame_capacity];
  std::uint32_t spare_count;  ///< free frames for lanes that found none there
  std::uint32_t spare[frame_group];
  std::uint32_t ready_count;
  std::uint32_t ready[2 * simt::warp_size];  ///< frames whose continuations are to run
  std::uint32_t ready_list;                  ///< more such frames: the first of a list, or none
  std::uint32_t magazine_count;
  std::uint32_t magazine[magazine_capacity];
  // What else a worker remembers between runs. Lane 0 writes it, between runs but for those that
  // tasks count in. Here and not in registers, because the hot loop needs those.
  std::uint32_t spawned, inlined, spilled, rejected, failed, joined;  // since the last flush_stats
  std::uint32_t swapped, awaited;                                     // likewise
  std::uint32_t tasks, batches, stolen;                               // likewise
  std::uint64_t busy_began, busy_ns;  ///< with something to run: since when (clock_ns), and so far
  std::uint64_t trace_began;
  std::uint32_t trace_at;          ///< place of what runs
  std::uint32_t scans;             ///< how often it looked for what hints may have missed
  std::uint64_t heartbeat_at;      ///< when (cycle_count) it sent the last heartbeat
  std::uint32_t heartbeat_type;    ///< what that said: type + 1, or 0
  std::uint32_t heartbeat_serial;  ///< how often
  std::uint32_t must_yield;        ///< the task that runs was told to yield
  std::uint32_t pushed;            ///< batches that are not full may hold what was pushed here
  std::uint32_t
      quick_types;  ///< bit t: the last run of one task of type t was short. For collectors
  std::uint32_t goes_alone;    ///< the run is of one task, of such a type, others wait for work,
                               ///< and nothing that it pushed went alone. For collectors
  std::uint32_t uncollected;   ///< something was pushed here since all channels were looked at
  std::uint32_t failed_lanes;  ///< lanes whose task, in this run, has failed whatever it returned
  std::uint32_t waiting;       ///< lanes that wait for room
  std::uint32_t waiting_for_task;  ///< of these, for a task
  std::uint32_t reserve_part;      ///< 1 + the part of the reserves that it owns, or 0
  std::uint32_t stalled;           ///< 1: it counts as one that waits, for the block cannot meet
  std::uint32_t ring;              ///< the ring that this worker polls, or polled last
  queue::poll_lock lock;           ///< in it
  std::uint64_t scanned;           ///< when (cycle_count) it last did, or began to wait
  std::uint64_t sole_activity;     ///< the activity word while this worker is the sole active one
  alignas(16) unsigned char stage[stage_bytes];  ///< records from a packet or a slot, being run; or
                                                 ///< scratch (batch.hpp)
  packet_header packet;                          ///< the packet whose `whole` ref is running
};

/// Of block_local::left, in which the warps add up what their parts of a block task left.
struct block_left {
  static constexpr std::uint32_t one = 1;      ///< one block task, which may be near
  static constexpr std::uint32_t several = 2;  ///< more, or something else comes first
  /// What this warp has left is near.
  static constexpr std::uint32_t near(unsigned warp) { return (warp + 1) << 8; }
  static constexpr bool any_near(std::uint32_t all) { return all >> 8 != 0; }
  /// Whether all that was left is one block task.
  static constexpr bool just_one(std::uint32_t all) { return (all & 0xff) == one; }
  /// Where that is near.
  static constexpr unsigned warp(std::uint32_t all) { return (all >> 8) - 1; }
};

/// Memory: of the tasks (task.hpp, block_memory_of).
template <unsigned Types, class Memory = no_block_memory>
struct block_local {
  /// The view, copied here when the kernel begins: kernel parameters would be read through a cache
  /// that every acquire empties.
  alignas(16) unsigned char view_bytes[sizeof(view)];
  warp_local<Types> warps[warps_per_block];
  deque_local deques;        ///< of the block as a worker
  std::uint32_t spinner;     ///< 1 + the idle warp that looks out for the others; 0: none
  std::uint32_t polls;       ///< a warp polls a ring, or has just had a packet from it
  std::uint32_t ring;        ///< for the next spinner: that the last packet came from; or in turn
  std::uint32_t wake;        ///< changes when idle warps should look for work
  std::uint32_t rendezvous;  ///< 0: none; else asked for
  std::uint32_t arrived;     ///< warps at the rendezvous
  std::uint32_t leaves;      ///< 1: leave
  std::uint32_t cancelling;  ///< a frame is cancelled somewhere, as a warp last saw
  std::uint64_t next_rendezvous;  ///< not before this (clock_ns), unless to leave
  /// The ref whose record lies in `record` already, if nothing was published since; or 0.
  std::uint64_t prefetched;
  std::uint32_t published_at_prefetch;  ///< deques.published before that ref became private
  signals seen;  ///< while a block task runs: what one of its warps saw at its end
  std::uint64_t task_ref;
  std::uint64_t served;  ///< what one thread of a serving block tells the others
  std::uint32_t task_failed;
  std::uint32_t turns;  ///< how often the block looked for a task at the beginning of a rendezvous
  std::uint32_t waiting;    ///< warps with a lane that waits for room
  std::uint32_t left;       ///< what a block task left (block_left)
  std::uint32_t near_ends;  ///< a warp saw why the next block task must be no near one
  alignas(16) unsigned char record[max_task_bytes];
  [[no_unique_address]] Memory of_tasks;

  GROSR_DEVICE const view& get_view() const { return *reinterpret_cast<const view*>(view_bytes); }

  /// Whole block.
  GROSR_DEVICE void set_view(const view& v) {
    static_assert(std::is_trivially_copyable_v<view> && sizeof(view) % 4 == 0);
    auto* words = reinterpret_cast<const std::uint32_t*>(&v);
    for (unsigned i = simt::thread_id(); i < sizeof(view) / 4; i += block_threads)
      reinterpret_cast<std::uint32_t*>(view_bytes)[i] = words[i];
    if constexpr (!std::is_empty_v<Memory>)
      for (unsigned i = simt::thread_id(); i < sizeof(Memory) / 4; i += block_threads)
        reinterpret_cast<std::uint32_t*>(&of_tasks)[i] = 0;
    simt::sync_block();
  }
};

/// Whether the caller is the lane that acts for its warp.
GROSR_DEVICE inline bool leads() { return simt::lane_id() == 0; }

/// Whether the lock was free: it is the caller's then.
GROSR_DEVICE inline bool try_lock(std::uint32_t& word) {
  return simt::atomic_ref<std::uint32_t, simt::scope::block>(word).exchange(1, simt::acquire) == 0;
}

GROSR_DEVICE GROSR_NOINLINE inline void wait_for_lock(std::uint32_t* word) {
  simt::wait_until([&] { return try_lock(*word); }, simt::forever, nullptr, "another lane's spawn");
}

/// A lock among the lanes of a block. The waiting is not inlined: a loop would break up the warp
/// even where it is not taken.
GROSR_DEVICE inline void lock(std::uint32_t& word) {
  if (!try_lock(word)) wait_for_lock(&word);
}

GROSR_DEVICE inline void unlock(std::uint32_t& word) {
  simt::atomic_ref<std::uint32_t, simt::scope::block>(word).store(0, simt::release);
}

/// Which levels of a deque may hold refs. Other warps of the block read it without the lock.
GROSR_DEVICE inline std::uint32_t nonempty(deque_local& d) {
  return simt::atomic_ref<std::uint32_t, simt::scope::block>(d.nonempty).load(simt::relaxed);
}

/// How often refs of a deque were published. Likewise.
GROSR_DEVICE inline std::uint32_t published(deque_local& d) {
  return simt::atomic_ref<std::uint32_t, simt::scope::block>(d.published).load(simt::relaxed);
}

/// One lane sets `bit` in a shared hint word, unless it is set.
GROSR_DEVICE inline void set_bit(std::uint32_t& word, std::uint32_t bit) {
  simt::atomic_ref<std::uint32_t> w(word);
  if ((w.load(simt::relaxed) & bit) == 0) w.fetch_or(bit, simt::relaxed);
}

/// One lane, lock held: lays the n oldest private refs of a level where thieves find them. `index`
/// is the worker's among all. Never fails: a full deque sends refs to the level's spill ring, which
/// has a cell for every batch and slot there is. Returns how many were spilled.
GROSR_DEVICE GROSR_NOINLINE inline std::uint32_t publish(const view& v, deque_local& d,
                                                         std::uint32_t index, std::uint32_t level,
                                                         std::uint32_t n) {
  queue::deque_ref deque = v.deque(level, index);
  bool block = index >= v.sizes.workers;
  std::uint32_t laid = 0, spilled = 0;
  simt::atomic_ref<std::uint32_t, simt::scope::block>(d.any_published).store(1, simt::relaxed);
  simt::atomic_ref<std::uint32_t, simt::scope::block>(d.published)
      .store(d.published + 1, simt::relaxed);
  GROSR_NO_UNROLL
  for (; laid < n && deque.lay(d.owner[level], laid, d.private_refs[level][laid]); ++laid) {
  }
  if (laid != 0) deque.publish(d.owner[level], laid);
  GROSR_NO_UNROLL
  for (std::uint32_t i = laid; i < n; ++i, ++spilled) {
    // The ref in the ring holds an active count of its own, so that quiescence sees it.
    simt::atomic_ref<std::uint64_t>(*v.common.activity).fetch_add(1, simt::acq_rel);
    const auto& ring = block ? v.tasks.block_spill[level] : v.tasks.spill[level];
    simt::wait_until([&] { return ring.try_push_n(&d.private_refs[level][i], 1) == 1; },
                     simt::forever, nullptr, "room in a spill ring");
  }
  d.private_count[level] -= n;
  GROSR_NO_UNROLL
  for (std::uint32_t i = 0; i < d.private_count[level]; ++i)
    d.private_refs[level][i] = d.private_refs[level][i + n];
  if (laid != 0) {
    // Also where it was set: a thief that took the last ref clears it (worker::now_empty).
    d.marked |= level_bit(level);
    std::uint32_t i = block ? index - v.sizes.workers : index;
    simt::atomic_ref<std::uint32_t>(v.bitmap(level, block)[i / 32])
        .fetch_or(1u << i % 32, simt::release);
  }
  // H1 for a spilled ref: always a write, so that whoever clears the hint next sees the ring.
  if (spilled != 0)
    v.hints().fetch_or(hint::of(level, block), simt::acq_rel);
  else
    set_bit(v.common.signals->hints, hint::of(level, block));
  return spilled;
}

/// One lane, lock held or nobody spawning: publishes its private refs, but for the newest `but`
/// refs of each level. Returns how many refs were spilled.
GROSR_DEVICE GROSR_NOINLINE inline std::uint32_t publish_all(const view& v, deque_local& d,
                                                             std::uint32_t index,
                                                             std::uint32_t but) {
  std::uint32_t spilled = 0;
  GROSR_NO_UNROLL
  for (std::uint32_t l = 0; l < priority_levels; ++l)
    if (d.private_count[l] > but) spilled += publish(v, d, index, l, d.private_count[l] - but);
  return spilled;
}

/// One lane, nobody spawning: where nothing is published any more, publishes the older half of its
/// private refs. Returns how many refs were spilled.
GROSR_DEVICE GROSR_NOINLINE inline std::uint32_t publish_half(const view& v, deque_local& d,
                                                              std::uint32_t index) {
  std::uint32_t spilled = 0;
  GROSR_NO_UNROLL
  for (std::uint32_t l = 0; l < priority_levels; ++l)
    if (d.private_count[l] > 1 && v.deque(l, index).size(simt::relaxed) == 0)
      spilled += publish(v, d, index, l, d.private_count[l] / 2);
  return spilled;
}

/// One lane, lock held: adds a ref, which is not whole, to a worker's own, where there is room for
/// a private one.
GROSR_DEVICE inline void add_private(deque_local& d, ref r) {
  const std::uint32_t level = r.level();
  d.private_refs[level][d.private_count[level]++] = r.bits;
  simt::atomic_ref<std::uint32_t, simt::scope::block>(d.nonempty)
      .store(d.nonempty | level_bit(level), simt::relaxed);
}

/// One lane, lock held or nobody spawning: adds a ref to a worker's own. Returns how many refs were
/// spilled.
GROSR_DEVICE inline std::uint32_t push_ref(const view& v, deque_local& d, std::uint32_t index,
                                           ref r) {
  std::uint32_t level = r.level(), spilled = 0;
  if (d.private_count[level] == private_capacity)
    spilled = publish(v, d, index, level, private_capacity / 2);
  add_private(d, r.split());
  return spilled;
}

/// One lane, nobody spawning: the newest ref of a level, not taken; or none.
GROSR_DEVICE inline ref peek_ref(const view& v, deque_local& d, std::uint32_t index,
                                 std::uint32_t level) {
  if (!has_level(d.nonempty, level)) return {};
  if (d.private_count[level] != 0) return {d.private_refs[level][d.private_count[level] - 1]};
  return {v.deque(level, index).peek(d.owner[level])};
}

/// One lane, nobody spawning: the newest ref of a level, or none.
GROSR_DEVICE inline ref pop_ref(const view& v, deque_local& d, std::uint32_t index,
                                std::uint32_t level) {
  if (!has_level(d.nonempty, level)) return {};
  if (d.private_count[level] != 0) return {d.private_refs[level][--d.private_count[level]]};
  ref r{v.deque(level, index).pop(d.owner[level])};
  if (!r) {
    simt::atomic_ref<std::uint32_t, simt::scope::block>(d.nonempty)
        .store(d.nonempty & ~level_bit(level), simt::relaxed);
    if (has_level(d.marked, level)) {
      d.marked &= ~level_bit(level);
      bool block = index >= v.sizes.workers;
      std::uint32_t i = block ? index - v.sizes.workers : index;
      simt::atomic_ref<std::uint32_t>(v.bitmap(level, block)[i / 32])
          .fetch_and(~(1u << i % 32), simt::relaxed);
    }
  }
  return r;
}

/// One lane, lock held or nobody spawning: whether this worker may take of a reserve, of which
/// `free` are left. The last batches and frames are for few workers, the reserve owners: they go on
/// depth-first while the others wait or run children inline, and what they finish makes room. The
/// reserves have parts with an owner each: part 0 of `least`, and others of one size. The owner of
/// part p takes while more than parts 0 to p - 1 are left. So nobody else takes of part 0, and its
/// owner gets on whatever the others do. A worker that finds too little left for its part takes
/// over a lower one. `part`: 1 + this worker's; 0: it owns none.
GROSR_DEVICE inline bool owns_reserve(const view& v, std::uint32_t& part, std::uint32_t worker,
                                      std::uint32_t free, std::uint32_t reserve,
                                      std::uint32_t least) {
  const std::uint32_t parts = v.sizes.reserve_parts;
  std::uint32_t p = free <= least ? 0 : 1 + (free - least) * (parts - 1) / (reserve - least);
  if (part != 0 && part - 1 <= p) return true;
  GROSR_NO_UNROLL
  for (p = p < parts ? p + 1 : parts; p != 0; --p) {
    simt::atomic_ref<std::uint32_t> owner(v.common.reserve_owners[p - 1]);
    std::uint32_t nobody = 0;
    if (owner.load(simt::relaxed) != 0 ||
        !owner.compare_exchange(nobody, worker + 1, simt::relaxed))
      continue;
    if (part != 0)
      simt::atomic_ref<std::uint32_t>(v.common.reserve_owners[part - 1]).store(0, simt::relaxed);
    part = p;
    return true;
  }
  return false;
}

/// One lane, lock held or nobody spawning: gives its part of the reserves up, if it owns one.
GROSR_DEVICE inline void release_reserve(const view& v, std::uint32_t& part) {
  if (part == 0) return;
  simt::atomic_ref<std::uint32_t>(v.common.reserve_owners[part - 1]).store(0, simt::relaxed);
  part = 0;
}

/// One lane, lock held or nobody spawning: takes batches from the pool into `magazine`; returns how
/// many.
GROSR_DEVICE GROSR_NOINLINE inline std::uint32_t refill(const view& v, std::uint32_t* magazine,
                                                        std::uint32_t* part, std::uint32_t worker) {
  const std::uint32_t free = v.tasks.free_batches.ready(), reserve = v.sizes.pool_reserve;
  if (free < reserve && !owns_reserve(v, *part, worker, free, reserve, v.sizes.least_pool_reserve))
    return 0;
  return v.tasks.free_batches.try_pop_n(magazine, v.sizes.magazine_target);
}

/// One lane, lock held or nobody spawning: a free pool batch, or no_batch.
template <unsigned Types>
GROSR_DEVICE inline std::uint32_t take_batch(const view& v, warp_local<Types>& w,
                                             std::uint32_t worker) {
  if (w.magazine_count == 0) {
    w.magazine_count = refill(v, w.magazine, &w.reserve_part, worker);
    if (w.magazine_count == 0) return no_batch;
  }
  return w.magazine[--w.magazine_count];
}

/// One lane: a batch in host memory, or no_batch.
GROSR_DEVICE GROSR_NOINLINE inline std::uint32_t take_overflow(const view& v) {
  std::uint32_t batch;
  return v.tasks.free_overflow.try_pop_n(&batch, 1) == 1 ? batch : no_batch;
}

/// One lane, nobody spawning: gives its part of the reserves up, if room is there again.
GROSR_DEVICE inline void release_reserve_unless_needed(const view& v, std::uint32_t& part) {
  if (part != 0 && v.tasks.free_batches.ready() >= 2 * v.sizes.pool_reserve &&
      (v.sizes.frame_stride == 0 ||
       v.frames.free.ready() * frame_group >= 2 * v.sizes.frame_reserve))
    release_reserve(v, part);
}

GROSR_DEVICE GROSR_NOINLINE inline void return_batches(const view& v, const std::uint32_t* batches,
                                                       std::uint32_t n) {
  (*batches < v.sizes.pool_batches ? v.tasks.free_batches : v.tasks.free_overflow)
      .try_push_n(batches, n);
}

/// One lane, lock held or nobody spawning: gives a pool batch back.
template <unsigned Types>
GROSR_DEVICE inline void free_batch(const view& v, warp_local<Types>& w, std::uint32_t batch) {
  if (batch >= v.sizes.pool_batches) {
    return_batches(v, &batch, 1);
    return;
  }
  if (w.magazine_count >= 2 * v.sizes.magazine_target) {
    std::uint32_t n = v.sizes.magazine_target;
    w.magazine_count -= n;
    return_batches(v, w.magazine + w.magazine_count, n);
  }
  w.magazine[w.magazine_count++] = batch;
}

// ---- traces ----

GROSR_DEVICE inline std::uint32_t trace_place(ref r) {
  return r.where() | (r.slot() ? trace_event::in_slot : trace_event::in_batch);
}

/// One lane, where a trace is written: the oldest event gives way.
GROSR_DEVICE GROSR_NOINLINE inline void record(const view& v, std::uint32_t worker, trace_event e) {
  // Lanes that diverged may close batches side by side.
  const std::uint32_t n =
      simt::atomic_ref<std::uint32_t>(v.trace.counts[worker]).fetch_add(1, simt::relaxed);
  v.trace.events[std::uint64_t{worker} * v.trace_capacity + n % v.trace_capacity] = e;
}

/// The same for what takes no time; nothing where none is written.
GROSR_DEVICE GROSR_NOINLINE inline void record_moment(const view* v, std::uint32_t worker,
                                                      std::uint32_t kind, ref r,
                                                      std::uint32_t count) {
  const std::uint64_t now = simt::clock_ns();
  record(*v, worker, {now, now, r.type(), count, 0, simt::sm_id(), kind, r ? trace_place(r) : 0});
}

GROSR_DEVICE inline void record_now(const view& v, std::uint32_t worker, std::uint32_t kind, ref r,
                                    std::uint32_t count) {
  if (v.trace.events != nullptr) record_moment(&v, worker, kind, r, count);
}

}  // namespace grosr::run
