// What a task's context holds: how a task that runs on a worker reaches the scheduler. Tasks spawn,
// fork and join through it, and ask whether to yield; between runs the worker deals with what
// they left there.
//
// A spawner is a few pointers into block-shared memory: cheap to make, to copy and to hand to every
// lane. All its state lies in block_local and warp_local, so that any lane can call it from inside
// a task, and every copy in a warp means the same.
//
// Invariants between tasks, when nobody spawns in the warp:
//   * every place that was taken in an open batch has been written;
//   * open[i].batch is no_batch where bit i of open_mask is not set;
//   * frame_count, ready_count and magazine_count count what lies in their arrays (while lanes spawn
//     frame_count may be below 0).
//
// Tasks are placed and batches published in spawner_tasks.inl; what is done when there is no room
// is in spawner_room.inl; frames are in spawner_frames.inl (docs/internals/fork-join.md).
#pragma once

#include <cerrno>

#include "grosr/run/detail/frame_stack.hpp"
#include "grosr/run/detail/may_spawn.hpp"
#include "grosr/run/detail/policy.hpp"
#include "grosr/simt/doing.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr {
template <class Spawner>
class context;
}

namespace grosr::run {

/// A depth at which spawn() runs no task in place: that of tasks that run where they came.
inline constexpr std::uint32_t never_inline = 0xff;

/// One 16-byte piece of a record.
struct alignas(16) piece {
  std::uint32_t w[4];
};

template <class Policy, class... Tasks>
class spawner {
 public:
  using types = type_list<Tasks...>;
  using local = warp_local<sizeof...(Tasks)>;
  using shared = block_local<sizeof...(Tasks), typename block_memory_of<Tasks...>::type>;
  using context_type = context<spawner>;

  static constexpr std::uint32_t no_frame = task_end::nothing;

  GROSR_DEVICE explicit spawner(shared& b) : spawner(b, simt::warp_id()) {}
  /// Of this warp of the block, the caller's.
  GROSR_DEVICE spawner(shared& b, unsigned warp)
      : b_(b),
        v_(b.get_view()),
        w_(b.warps[warp]),
        id_(simt::block_id() * warps_per_block + warp) {}

  /// The block's memory, to make another one of these from.
  GROSR_DEVICE shared& memory() const { return b_; }
  GROSR_DEVICE const view& get_view() const { return v_; }
  /// This worker's number on the device.
  GROSR_DEVICE std::uint32_t id() const { return id_; }

  // ---- for contexts: spawning ----

  /// False: there was no place for it anywhere, and nobody could make one. It was not run, and is
  /// among the errors; the task that called has failed.
  template <class T>
  GROSR_DEVICE bool spawn(const T& task, std::uint32_t level, std::uint32_t depth);
  template <class T>
  GROSR_DEVICE bool try_spawn(const T& task, std::uint32_t level) {
    return place(task, level, false);
  }

  /// Lanes that are together, outside tasks: as spawn(), for types that are not lane-wide.
  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static bool spawn_alone(shared* block, T task, std::uint32_t level);
  /// Lanes that are together: the same where there is room now, also in the overflow; false else,
  /// and nothing was counted as rejected.
  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static bool spawn_if_room(shared* block, T task, std::uint32_t level);

  /// Calls a task; what it returned, or 0. Apart: by address, where tasks have memory of their own
  /// (task.hpp, block_memory_of): these do much, and have the registers for themselves.
  template <bool Apart, class T, class Context>
  GROSR_DEVICE static int invoke(const T& task, Context& c);

  template <class T>
  GROSR_DEVICE void note_failure(const T& task, int status);
  /// One lane: a task ended with an error, and is not counted as failed yet.
  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static void note_failure(shared* block, T task, int status);
  /// One lane: a task that runs, or is a continuation that ran, did what it should not.
  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static void note_misuse(shared* block, T task, failure what,
                                                      bool continuation);
  /// One lane, in any task, which holds nothing that this one may wait for: runs a task here, which
  /// came from elsewhere; none that it starts runs in it.
  template <class T>
  GROSR_DEVICE void run_in_place(const T& task, std::uint32_t level);
  /// Any lane: has run so many.
  GROSR_DEVICE void count_inlined(std::uint32_t n) const { simt::shared_add(w_.inlined, n); }
  /// A run of more cycles keeps others waiting.
  static constexpr std::uint64_t long_cycles = Policy::long_run_cycles;
  /// One lane: a continuation returned the error that it was told. The host knows that already.
  GROSR_DEVICE void count_failure() {
    simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.failed).fetch_add(1, simt::relaxed);
  }
  /// One lane: keeps a failed task for the host.
  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static void keep_error(shared* block, T task, int status);

  // ---- for contexts: what else a task asks ----

  GROSR_DEVICE bool aborted() const { return v_.aborted(); }
  /// Any lane: whether workers wait for work.
  GROSR_DEVICE bool others_wait() const;
  /// Any lane: whether this worker should yield for work above `level`. May take a packet in
  /// from a ring that nobody polled for a while.
  GROSR_DEVICE bool should_yield(std::uint32_t level);
  /// One lane, nobody spawning in its warp: publishes all that this worker has.
  GROSR_DEVICE void publish_own();
  /// One lane, in a task that goes on, while others of its warp may spawn: the same, open batches
  /// too.
  GROSR_DEVICE GROSR_NOINLINE static void publish_held(shared* block);
  /// Any lane: what it pushed may lie in batches that are not full. This worker sees to them before
  /// it rests.
  GROSR_DEVICE void note_pushed();
  /// Any lane: whether what it pushes need not wait for more, and take_alone() may say so.
  GROSR_DEVICE bool may_go_alone() const { return w_.goes_alone != 0; }
  /// The same for one lane, once for a run of one task while workers wait for work.
  GROSR_DEVICE bool take_alone();
  GROSR_DEVICE const heap_ref& get_heap() const { return v_.heap; }
  /// Whether it is worth to ask for memory again; may wait 20 us.
  GROSR_DEVICE bool wait_for_memory() const;
  /// Owners of the task types follow each other.
  template <class T>
  GROSR_DEVICE checked_heap_ref get_checked_heap() const;

  // ---- for joins: frames ----

  /// Bytes that the largest continuation may take.
  struct continuation_bytes {
    piece p[largest_of<stride_of_task<Tasks>...> / 16];
  };

  /// A frame; no_frame when there was none, and nobody could give one back.
  GROSR_DEVICE std::uint32_t claim_frame();
  GROSR_DEVICE frame_header& header_of(std::uint32_t frame) const {
    return *reinterpret_cast<frame_header*>(v_.frame_at(frame));
  }
  GROSR_DEVICE unsigned char* continuation_of(std::uint32_t frame) const {
    return v_.frame_at(frame) + frame_header_bytes;
  }
  GROSR_DEVICE unsigned char* value_of(destination to) const {
    return to.host() ? v_.frames.promises[to.where()].value : v_.frame_at(to.where()) + to.offset();
  }
  /// Where what finds no room may be written: this worker's, and read by nobody.
  GROSR_DEVICE unsigned char* sink() const { return continuation_of(id_); }

  /// One lane: a result has come, or has not: the frame whose continuation is to run now, or
  /// no_frame. The value was stored before.
  GROSR_DEVICE std::uint32_t deliver(destination to, int status);
  /// One lane, inside a task: a frame that deliver() returned is run at the run's end.
  GROSR_DEVICE void defer_ready(std::uint32_t frame);
  /// One lane: the first error stays.
  GROSR_DEVICE void set_status(std::uint32_t frame, int status);

  /// One lane, in a task: a call is about to be made whose completion is awaited for this frame: it
  /// is work from now on. Or it was not made after all.
  GROSR_DEVICE void expect_completion();
  GROSR_DEVICE void expect_none();
  /// One lane, in a task: what was expected has come, and this task sees to it.
  GROSR_DEVICE void end_of_completion();
  static constexpr bool any_completes = (completes<Tasks> || ...);

  /// One lane: nothing that is to bring something for this frame begins any more, when it is seen.
  GROSR_DEVICE GROSR_NOINLINE static void cancel(shared* block, std::uint32_t frame);
  /// One lane, on behalf of a task whose result goes to `to`: whether that, or a frame above, is
  /// cancelled. They all wait for it, and stay.
  GROSR_DEVICE GROSR_NOINLINE static bool is_cancelled(shared* block, destination to);
  GROSR_DEVICE void cancel(std::uint32_t frame) { cancel(&b_, frame); }
  GROSR_DEVICE bool is_cancelled(destination to) const { return is_cancelled(&b_, to); }
  /// Whether a frame may be cancelled. Cheap.
  GROSR_DEVICE bool cancelling() const {
    return simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.cancelling).load(simt::relaxed) !=
           0;
  }

  // ---- for the worker and the chain of continuations (join.hpp), between tasks ----

  /// Whole warp, nobody spawning: what lay in the frames of the first n lanes is in registers.
  GROSR_DEVICE void free_frames(std::uint32_t frame, std::uint32_t n, bool cancelled);
  /// Whole warp, nobody spawning: how many free frames are at hand.
  GROSR_DEVICE std::uint32_t frames_at_hand() const;
  /// Whole warp, nobody spawning: keeps each lane's frame, if its continuation is to run, until
  /// then.
  GROSR_DEVICE void keep_ready(task_end end);
  /// Whole warp, nobody spawning: takes such frames, one a lane; how many. With `all` also fewer
  /// than a warp's worth.
  GROSR_DEVICE std::uint32_t take_ready(std::uint32_t& frame, bool all);
  GROSR_DEVICE void count_joined(std::uint32_t n) {
    if (leads()) w_.joined += n;
  }
  /// One lane, between tasks that take no turn, or in a long one: lets the host know that this
  /// worker goes on.
  GROSR_DEVICE void heartbeat_if_due();
  /// What a lane that waits has no room for. A rendezvous: its warp has nothing but block tasks,
  /// and another warp of the block waits.
  enum class lacks : std::uint32_t { task, frame, rendezvous };
  GROSR_DEVICE GROSR_NOINLINE static void begin_wait(shared* block, lacks what);
  GROSR_DEVICE GROSR_NOINLINE static void end_wait(shared* block, lacks what);
  /// The same, for contexts. Out of line: it is rare, and takes no registers where it is not
  /// called. No in_block_shared(): with it a search of a grid is a tenth slower, for a reason that
  /// was not found (docs/internals/graphs.md).
  GROSR_DEVICE GROSR_NOINLINE static void progressed(shared* block) {
    spawner(*block).heartbeat_if_due();
  }
  /// One lane: a mailbox's server has answered a request.
  GROSR_DEVICE void count_request() const {
    simt::atomic_ref<std::uint64_t>(v_.reports.stats[id_].requests).fetch_add(1, simt::relaxed);
  }
  /// One lane: lets the host know what runs here.
  GROSR_DEVICE void send_heartbeat(std::uint32_t type, std::uint64_t now) const {
    send_heartbeat(&b_, type, now);
  }

  /// One lane, the warp's lock held if `locked` or nobody spawning: adds a ref to this warp's own
  /// or, a block task, to the block's.
  GROSR_DEVICE void push_any(ref r, bool locked);
  /// One lane, nobody spawning: the same, out of line, for what is put back now and then.
  GROSR_DEVICE GROSR_NOINLINE static void put_back(shared* block, ref r);
  /// Whole warp, after a run: closes every open batch. `with_blocks`: other blocks may see this
  /// block's tasks at once.
  GROSR_DEVICE void flush(bool with_blocks);
  /// One lane, nobody spawning: closes what is open, and, if somebody waits for work and nothing of
  /// the level is published, publishes the older half of its private refs then.
  GROSR_DEVICE GROSR_NOINLINE static void publish_for_others(shared* block, std::uint32_t level,
                                                             bool starving);
  /// One lane: other blocks may see this block's tasks.
  GROSR_DEVICE void publish_blocks();
  GROSR_DEVICE bool long_run() const {
    return simt::cycle_count() - w_.run_began > Policy::long_run_cycles;
  }
  GROSR_DEVICE static constexpr bool is_block_type(std::uint32_t type) {
    std::uint32_t blocks = 0, i = 0;
    ((blocks |= (width_of<Tasks>() == width::block ? 1u : 0u) << i++), ...);
    return blocks >> type & 1;
  }

  /// Bytes from one record of a type to the next.
  GROSR_DEVICE static constexpr std::uint32_t stride_at(std::uint32_t type) {
    std::uint32_t i = 0, stride = 16;
    ((type == i++ ? stride = stride_of<Tasks> : 0), ...);
    return stride;
  }

  // ---- records that are near: spawner_near.inl ----

  /// Whether records may be, of T in a run of its own; of T, a block task, in a rendezvous. Where
  /// tasks fork or are collected, one of a lane is: more are the tree, not a chain.
  static constexpr bool keeps_near = !(uses_stage<Tasks> || ...);
  static constexpr bool any_forks = (is_forked<Tasks> || ...);
  static constexpr bool near_is_single =
      any_forks || !std::is_void_v<typename collector_of<spawner, Tasks...>::type>;
  template <class T>
  static constexpr bool may_be_near =
      keeps_near && !runs_long<T> &&
      (near_is_single ? width_of<T>() == width::lane : width_of<T>() != width::block);
  template <class T>
  static constexpr bool may_be_near_block =
      keeps_near && !runs_long<T> && !near_is_single && width_of<T>() == width::block;
  static constexpr bool any_near = (may_be_near<Tasks> || ...);
  static constexpr bool any_near_block = (may_be_near_block<Tasks> || ...);
  /// Bit t: type t is one of these.
  static constexpr std::uint32_t near_types = [] {
    std::uint32_t types = 0, i = 0;
    ((types |= (may_be_near<Tasks> || may_be_near_block<Tasks> ? 1u : 0u) << i++), ...);
    return types;
  }();
  /// Whether n records of a kind may be near all at once.
  GROSR_DEVICE static constexpr bool fits_near(std::uint32_t kind, std::uint32_t n) {
    const std::uint32_t type = kind / priority_levels;
    return (near_types >> type & 1) != 0 &&
           (n <= 1 || (!near_is_single && width_at(type) == width::lane));
  }
  /// One lane, nobody spawning, no open batch of the kind: what is spawned of it from now on is
  /// near, if that may be where `count` were spawned before.
  GROSR_DEVICE GROSR_NOINLINE static void open_near(shared* block, std::uint32_t kind,
                                                    std::uint32_t count);
  /// One lane, nobody spawning: the kind of all that is in open batches, if that may be near, for
  /// blocks or for warps; or no_kind.
  GROSR_DEVICE std::uint32_t only_kind(bool block) const;
  /// One lane: more was spawned than may be near.
  GROSR_DEVICE bool is_near_full() const { return keeps_near && w_.near == near_state::full; }
  /// One lane, nobody spawning: records in the open batch of a kind.
  GROSR_DEVICE std::uint32_t records_of(std::uint32_t kind) const {
    return w_.open[kind].count - w_.open[kind].first;
  }
  /// One lane, nobody spawning: nothing is near any more.
  GROSR_DEVICE GROSR_NOINLINE static void end_near(shared* block);
  /// The place of the first record in a batch of this kind that is near: of wide tasks one is near,
  /// because the others need not wait for it.
  GROSR_DEVICE static constexpr std::uint32_t first_near(std::uint32_t kind) {
    return width_at(kind / priority_levels) == width::lane ? 0 : batch_records - 1;
  }

 private:
  GROSR_DEVICE static constexpr width width_at(std::uint32_t type) {
    std::uint32_t code = 0;  // 2 bits a type
    std::uint32_t i = 0;
    ((code |= static_cast<std::uint32_t>(width_of<Tasks>()) << (2 * i++)), ...);
    return static_cast<width>(code >> (2 * type) & 3);
  }

  /// The place of the first record in another batch of this kind.
  GROSR_DEVICE static constexpr std::uint32_t usual_first(std::uint32_t kind) {
    return batch_records - Policy::batch_limit(width_at(kind / priority_levels));
  }

  static_assert(Policy::batch_limit(width::lane) == batch_records &&
                Policy::batch_limit(width::warp) <= batch_records &&
                Policy::batch_limit(width::block) <= batch_records);

  // spawner_tasks.inl
  template <class T>
  GROSR_DEVICE bool spawn_slowly(const T& task, std::uint32_t level, std::uint32_t depth);
  template <class T>
  GROSR_DEVICE bool place(const T& task, std::uint32_t level, bool last_resort);
  GROSR_DEVICE GROSR_NOINLINE static bool next_batch(shared* block, std::uint32_t kind,
                                                     bool last_resort);
  GROSR_DEVICE bool swap_batch(std::uint32_t kind);
  GROSR_DEVICE bool keep_private(ref r);
  GROSR_DEVICE std::uint32_t set_batch(std::uint32_t kind, std::uint32_t batch,
                                       std::uint32_t first);
  GROSR_DEVICE bool publish_children(std::uint32_t level);
  GROSR_DEVICE GROSR_NOINLINE static bool next_batch_slowly(shared* block, std::uint32_t kind,
                                                            bool last_resort);
  template <class T>
  GROSR_DEVICE static void write_record(unsigned char* to, const T& task);
  GROSR_DEVICE void close(std::uint32_t kind, std::uint32_t n, bool locked);
  GROSR_DEVICE void close_all();
  GROSR_DEVICE void close_open(std::uint32_t kind);
  GROSR_DEVICE GROSR_NOINLINE static void publish_own(shared* block);
  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static void run_inline(shared* block, T task, std::uint32_t level,
                                                     std::uint32_t depth);
  GROSR_DEVICE GROSR_NOINLINE static void record_error(const view& v, std::uint32_t type,
                                                       failure what, int code, const void* task,
                                                       std::uint32_t bytes);
  GROSR_DEVICE GROSR_NOINLINE static bool poll_above(shared* block, std::uint32_t levels);
  GROSR_DEVICE GROSR_NOINLINE static bool try_grant_yield(shared* block, std::uint32_t hints);

  // spawner_near.inl
  GROSR_DEVICE bool is_near(std::uint32_t kind) const {
    return keeps_near && w_.near == near_state::open && w_.near_kind == kind;
  }
  GROSR_DEVICE void set_near(near_state state, std::uint32_t kind);
  GROSR_DEVICE void keep_near();
  GROSR_DEVICE void copy_near(std::uint32_t batch, std::uint32_t n) const;
  GROSR_DEVICE GROSR_NOINLINE static void close_near(shared* block, std::uint32_t n, bool locked);
  GROSR_DEVICE GROSR_NOINLINE static void push_near(shared* block, bool locked);

  // spawner_room.inl
  enum class prospect {
    waits,  ///< somebody may make room
    swaps,  ///< the host takes the task
    none    ///< nobody can make room
  };
  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static bool spawn_without_room(shared* block, T task,
                                                             std::uint32_t level);
  template <class T>
  GROSR_DEVICE bool swap_out(const T& task, std::uint32_t level);
  template <class T>
  GROSR_DEVICE void reject(const T& task);
  GROSR_DEVICE GROSR_NOINLINE static bool room_seen(shared* block, std::uint32_t kind);
  GROSR_DEVICE GROSR_NOINLINE static prospect look_ahead(shared* block, std::uint32_t kind,
                                                         std::uint64_t began);
  GROSR_DEVICE bool others_have_work() const;

  // spawner_frames.inl
  GROSR_DEVICE GROSR_NOINLINE static void send_heartbeat(shared* block, std::uint32_t type,
                                                         std::uint64_t now);
  GROSR_DEVICE GROSR_NOINLINE static std::uint32_t wait_for_frame(shared* block);
  GROSR_DEVICE std::uint32_t ready_after(task_end end);
  GROSR_DEVICE std::uint32_t await(std::uint32_t frame, std::uint32_t n);
  GROSR_DEVICE std::uint32_t count_down(std::uint32_t frame);
  GROSR_DEVICE GROSR_NOINLINE static std::uint32_t deliver_otherwise(shared* block, destination to,
                                                                     int status);
  GROSR_DEVICE GROSR_NOINLINE static void end_of_cancel(shared* block);

  shared& b_;
  const view& v_;
  local& w_;
  std::uint32_t id_;
};

}  // namespace grosr::run

#include "grosr/run/detail/spawner_frames.inl"
#include "grosr/run/detail/spawner_near.inl"
#include "grosr/run/detail/spawner_room.inl"
#include "grosr/run/detail/spawner_tasks.inl"
