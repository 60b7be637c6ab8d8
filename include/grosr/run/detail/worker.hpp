// A worker: one warp of the resident kernel. It takes packets in from the host, runs tasks, gives
// what they spawn to others, says what is complete, waits, and leaves. docs/internals/scheduler.md
// has its protocols as numbered steps.
//
// Here are a worker's state, the states it is in, what holds between its methods, and its methods
// in the order of a worker's life. Their contracts and bodies are in the files beside this one:
//
//   worker_residency.inl entering, leaving, parking, aborting: all that asks whether to stay
//   worker_loop.inl      a turn: look, find, run, hand on; and the accounts
//   worker_find.inl      what to run next: its own, seen packets, what others hold
//   worker_poll.inl      taking packets in; leading a ring
//   worker_run.inl       running what a ref names
//   worker_complete.inl  a packet's task; saying that packets and tickets are done
//   worker_block.inl     rendezvous of a block's warps; block tasks
//   worker_idle.inl      counting as active; quiescence; waiting
//
// A worker does not know what the host does with its answers, nor when the kernel starts again.
#pragma once

#include <utility>

#include "grosr/run/context.hpp"
#include "grosr/run/detail/spawner.hpp"
#include "grosr/run/join.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::run {

/// Every method is called by the whole warp, unless its contract says "one lane". Members have the
/// same value in every lane, unless they are marked as the leader's (lane 0's). State that need not
/// be in registers lies in block-shared memory: `w_` is this warp's, `b_` the block's.
///
/// Invariants between methods:
///   * A worker is active (counted in the activity word) whenever it holds work: a packet or a ref
///   in hand,
///     private refs, open batches, published refs, completions that are not flushed.
///   * No lane spawns: open batches are whole, and lane 0 may change the warp's deques without a
///     lock. The block's deques are always changed under their lock.
///   * A ring's poll lock is held between lead() and what ended it, and in watched::lock; while a
///   task
///     runs no poll lock is held.
///   * At most one warp of a block is its spinner. One that has taken a packet stays it until
///     open_packet().
///   * pending_* count tasks of one slot, and are flushed before the worker waits or meets.
template <class Policy, class... Tasks>
class worker {
  using spawner_type = spawner<Policy, Tasks...>;
  using types = typename spawner_type::types;
  using local = typename spawner_type::local;
  using context_type = typename spawner_type::context_type;

 public:
  using shared = typename spawner_type::shared;

  GROSR_DEVICE explicit worker(shared& b) : worker(b, simt::warp_id()) {}

  /// Returns when the runtime parks or aborts.
  GROSR_DEVICE void loop();

 private:
  /// Of this warp of the block, the caller's.
  GROSR_DEVICE worker(shared& b, unsigned warp)
      : spawner_(b, warp), b_(b), v_(spawner_.get_view()), w_(b.warps[warp]), id_(spawner_.id()) {}

  // ---- states ----
  //
  // A worker's state is four things that change at different moments:
  //
  //   standing   resting ── activate, pop_spilled ──> active ── publish_if_sole ──> quiescent
  //                 ^                                  │  ^── activate, pop_spilled ──┘ │
  //                 └──────────────── rest ────────────┴────────────────────────────────┘
  //   pace       set at the end of a turn, read in the next one
  //   hand       empty when a turn begins; filled by find() or wait(); open_packet() deals with it
  //   outcome    `other` when a turn begins; set by open_packet() and what that runs

  /// Whether the host is told each time that a worker begins to run something, and rests: where
  /// tasks await calls, the watchdog takes it for a wait that nothing runs.
  static constexpr bool tells_rest = spawner_type::any_completes;

  /// Whether the activity word counts it (docs/internals/scheduler.md, "Quiescence").
  enum class standing : std::uint32_t {
    resting,    ///< not counted: it holds no work
    active,     ///< counted: it may hold work
    quiescent,  ///< counted, and it has published that all is done, and taken nothing since
  };
  /// What its last turn ran.
  enum class pace : std::uint32_t {
    idle,   ///< nothing, or a block task that waits for its rendezvous
    busy,   ///< something
    quick,  ///< one packet's task, which left nothing: the next packet may be on its way, so the
            ///< next turn begins with the wait
  };
  /// Whether it has a packet that it took and has not run: `packet_` is that.
  enum class hand : std::uint32_t {
    empty,           ///< it has none
    packet,          ///< one that came alone, or that a poll had seen before
    packet_of_many,  ///< one with which there were others, for everybody
  };
  /// What became of what this turn ran.
  enum class outcome : std::uint32_t {
    other,         ///< there may be something to hand on
    nothing_left,  ///< it was a packet's task, and nothing is left in hand
    meets,         ///< it was a packet's block task, which waits for a rendezvous
  };

  /// What accept() found at a ring.
  enum class packets {
    none,    ///< no packet has come
    shared,  ///< packets, which everybody can take now
    mine,    ///< packets, of which the first is in hand; the ring was unlocked
  };
  /// What it took in there.
  struct took {
    unsigned packets, mine;  ///< in all, and for this warp
  };
  /// How lead() ended.
  enum class led {
    packet,       ///< it has a packet, and no poll lock any more
    interrupted,  ///< there is something else to do, and it has no poll lock any more
    lingered,     ///< it still has the poll lock, and must give up its count in the activity word
  };
  /// What watch() saw.
  enum class watched : std::uint32_t {
    nothing,  ///< it goes on watching
    work,     ///< there may be some
    lock,     ///< it has the poll lock of w_.ring
  };

  /// What became of a ref's first tasks.
  struct ran {
    std::uint32_t done, failures;
    std::uint32_t runs;    ///< this one, and of what followed
    std::uint64_t cycles;  ///< that the last run took
    bool others_wait;      ///< the leader's: before it others may have had nothing to do
  };

  /// A burst, as its leader knows it after one of them.
  struct burst_state {
    std::uint64_t began;  ///< cycle_count
    signals seen;         ///< when the run began
    bool published;       ///< whoever waits for work finds some here
    std::uint32_t runs;   ///< so far, this one not
  };

  /// Whether calling a T returns int.
  template <class T>
  static constexpr bool returns_status =
      std::is_same_v<decltype(std::declval<const T&>()(std::declval<context_type&>())), int>;

  /// Whether packets that carry tasks of the type are taken together: the lanes of a run of forked
  /// tasks need room that a single one finds.
  template <class T>
  static constexpr bool may_bundle = width_of<T>() == width::lane && !is_forked<T> &&
                                     !completes<T> && !delivers<T>;

  // ---- constants ----

  static constexpr std::uint32_t no_frame = spawner_type::no_frame;
  static constexpr std::uint32_t no_slot = 0xffffffffu;

  /// The warp that looks at the signals for its block.
  static constexpr unsigned looks = warps_per_block / 2;
  // Bits of poll_signals() above the hints.
  static constexpr std::uint64_t leave_now = std::uint64_t{1} << 32;
  static constexpr std::uint64_t rendezvous_called = std::uint64_t{1} << 33;
  static constexpr std::uint64_t interrupts = leave_now | rendezvous_called;
  /// Bits of open_mask: every level of types of blocks.
  static constexpr std::uint64_t kinds_of_blocks = [] {
    std::uint64_t kinds = 0, bits = all_levels;
    ((kinds |= width_of<Tasks>() == width::block ? bits : 0, bits <<= priority_levels), ...);
    return kinds;
  }();

  /// What workers ask for what tasks collected (task.hpp), or void.
  using collector = typename collector_of<spawner_type, Tasks...>::type;
  static constexpr bool has_collector = !std::is_void_v<collector>;
  static constexpr bool collector_rings = requires(typename spawner_type::shared * b) {
    collector::rung(b);
  };
  /// One lane, before a run of a type: whether its only task is alone (warp_local), unless the last
  /// one was long, or what it left in channels waits until this worker rests.
  GROSR_DEVICE void set_alone(std::uint32_t type, bool alone) {
    if constexpr (has_collector)
      w_.goes_alone = alone && w_.uncollected == 0 ? w_.quick_types >> type & 1 : 0;
  }
  /// One lane, after runs of a type, mostly of one task, the last of which took so many cycles.
  GROSR_DEVICE void set_quick(std::uint32_t type, std::uint64_t cycles) {
    if constexpr (has_collector) {
      const std::uint32_t bit = std::uint32_t{1} << type;
      const bool quick = cycles <= Policy::bundle_cycles;
      w_.quick_types = quick ? w_.quick_types | bit : w_.quick_types & ~bit;
    }
  }

  // ---- as what a worker looks for work (find_as) ----

  /// As a warp, between its runs.
  struct as_warp {
    static constexpr bool block = false;
    GROSR_DEVICE static deque_local& deques(worker& w) { return w.w_.deques; }
    GROSR_DEVICE static const auto& spill(const view& v) { return v.tasks.spill; }
    /// The first worker of its kind among all, and this one among those of its kind.
    GROSR_DEVICE static std::uint32_t first(const view&) { return 0; }
    GROSR_DEVICE static std::uint32_t number(const worker& w) { return w.id_; }
    /// Blocks have work of this level, and the warp found none: whether it ends the look. It asks
    /// for the rendezvous, which comes at the top of the loop, and goes on until that is allowed.
    GROSR_DEVICE static bool gives_way(worker& w, bool /*others_first*/) {
      if (leads()) w.ask_for_rendezvous(false);
      return false;
    }
    /// One lane that found nothing elsewhere: whether it clears the hint. A warp repeats its own.
    GROSR_DEVICE static bool clears_hint(const worker&) { return true; }
  };

  /// As the block, at its rendezvous (warp 0).
  struct as_block {
    static constexpr bool block = true;
    GROSR_DEVICE static deque_local& deques(worker& w) { return w.b_.deques; }
    GROSR_DEVICE static const auto& spill(const view& v) { return v.tasks.block_spill; }
    GROSR_DEVICE static std::uint32_t first(const view& v) { return v.sizes.workers; }
    GROSR_DEVICE static std::uint32_t number(const worker&) { return simt::block_id(); }
    /// Warps have work of this level, and the block found none: the rendezvous ends, unless this is
    /// a turn in which other levels come first than the most urgent one.
    GROSR_DEVICE static bool gives_way(worker&, bool others_first) { return !others_first; }
    /// Not while others have some: they may be in a long task and would not set the hint again.
    GROSR_DEVICE static bool clears_hint(const worker& w) { return !w.lost_race_; }
  };

  // ---- coming: worker_residency.inl ----
  GROSR_DEVICE void enter();
  GROSR_DEVICE void adopt(deque_local& d, std::uint32_t index) const;

  // ---- a turn: worker_loop.inl ----
  GROSR_DEVICE std::uint64_t poll_signals() const;
  GROSR_DEVICE void publish_own();
  GROSR_DEVICE void wake_others();
  GROSR_DEVICE void begin_busy();
  GROSR_DEVICE void end_busy();
  GROSR_DEVICE void flush_stats();
  GROSR_DEVICE void end_of_work();

  // ---- finding work: worker_find.inl ----
  GROSR_DEVICE ref find(unsigned turn);
  template <class As>
  GROSR_DEVICE ref find_as(std::uint32_t hints, unsigned turn);
  template <class As>
  GROSR_DEVICE ref elsewhere(std::uint32_t level, unsigned turn);
  GROSR_DEVICE ref pop_spilled(const queue::ring_ref<std::uint64_t>& ring);
  GROSR_DEVICE bool claim(std::uint32_t level);
  GROSR_DEVICE ref steal(std::uint32_t level, std::uint32_t victim);
  GROSR_DEVICE void now_empty(std::uint32_t level, std::uint32_t victim) const;
  GROSR_DEVICE void clear_hint(std::uint32_t bit);

  // ---- packets from the host: worker_poll.inl ----
  GROSR_DEVICE led lead();
  GROSR_DEVICE packets accept(unsigned ring, queue::poll_lock& lock,
                              const queue::submission_ring_ref::polled<>& k, bool take, bool keep);
  GROSR_DEVICE GROSR_NOINLINE static took accept_many(shared* block, unsigned limit, bool keep,
                                                      bool counted);
  GROSR_DEVICE void take_bundle(unsigned ring, std::uint32_t number, unsigned count);
  GROSR_DEVICE unsigned bundle_limit(std::uint32_t kind);
  GROSR_DEVICE bool poll_overdue(std::uint32_t which);
  GROSR_DEVICE bool move_to_overdue(std::uint32_t which, queue::poll_lock& lock);
  GROSR_DEVICE std::uint32_t overdue(std::uint32_t which) const;
  GROSR_DEVICE std::uint32_t take_begun(std::uint32_t which, queue::poll_lock& mine);
  GROSR_DEVICE void share_begun(std::uint32_t some, const queue::poll_lock& mine);
  GROSR_DEVICE void begin_scan_wait();
  GROSR_DEVICE bool scan_due();
  GROSR_DEVICE std::uint32_t scan_hints();

  // ---- running: worker_run.inl ----
  GROSR_DEVICE void run(ref r);
  GROSR_DEVICE GROSR_NOINLINE static ran run_refs(ref r);
  GROSR_DEVICE ref next_private(std::uint32_t level, const burst_state& burst);
  GROSR_DEVICE bool has_near() const;
  GROSR_DEVICE ran run_near(std::uint64_t cycles);
  GROSR_DEVICE GROSR_NOINLINE static ran run_near_out_of_line(shared* block, std::uint64_t cycles);
  template <bool Forks>
  GROSR_DEVICE bool near_goes_on(std::uint32_t kind, std::uint64_t cycles, unsigned runs,
                                 std::uint64_t all_cycles) const;
  template <class T>
  GROSR_DEVICE void run_near_as(std::uint32_t kind, ran& result);
  template <class T>
  GROSR_DEVICE void run_typed(ref r, ran& result);
  template <class T>
  GROSR_DEVICE void run_lanes(ref r, ran& result);
  template <class T>
  GROSR_DEVICE void run_warp(ref r, ran& result);
  template <class T>
  GROSR_DEVICE std::uint32_t execute(const T& task, bool mine, std::uint32_t level, bool all);
  GROSR_DEVICE GROSR_NOINLINE static void forget_failed(shared* block, bool block_task);
  template <class T>
  GROSR_DEVICE void keep_ready(task_end end);
  GROSR_DEVICE void run_ready(bool all);
  GROSR_DEVICE bool any_ready() const;
  GROSR_DEVICE bool may_fork(ref r);
  GROSR_DEVICE GROSR_NOINLINE static bool makes_room_to_fork(shared* block, ref r);
  GROSR_DEVICE GROSR_NOINLINE static void fetch(shared* block, ref r, std::uint32_t bytes,
                                                std::uint32_t stride);
  template <class T>
  GROSR_DEVICE static void read_record(const unsigned char* at, T& task);
  GROSR_DEVICE const unsigned char* batch_at(ref r) const;
  GROSR_DEVICE void consume(ref r, std::uint32_t n);
  GROSR_DEVICE ref pop_same(ref like);
  GROSR_DEVICE void begin_run(std::uint32_t type, bool from_slot, std::uint32_t place);
  GROSR_DEVICE void end_run(std::uint32_t type, std::uint32_t count, std::uint32_t failed);
  GROSR_DEVICE GROSR_NOINLINE static void record_run(shared* block, std::uint32_t type,
                                                     std::uint32_t count);
  GROSR_DEVICE void end_of_yield();
  GROSR_DEVICE bool went_long();

  // ---- a packet in hand; what is complete: worker_complete.inl ----
  GROSR_DEVICE ref open_packet(const queue::held_packet& l);
  GROSR_DEVICE void run_packet(const packet_header& h, const queue::held_packet& l);
  template <class T>
  GROSR_DEVICE void run_packet_typed(const packet_header& h, const queue::held_packet& l);
  GROSR_DEVICE GROSR_NOINLINE static std::uint64_t run_bundle(shared* block, std::uint32_t kind,
                                                              unsigned ring, std::uint32_t number,
                                                              unsigned count);
  template <class T>
  GROSR_DEVICE void run_bundle_as(packet_header h, unsigned ring, std::uint32_t number,
                                  unsigned count);
  GROSR_DEVICE void learn_from_run(std::uint32_t type);
  GROSR_DEVICE GROSR_NOINLINE static void set_bundle_limit(shared* block, std::uint32_t type,
                                                           bool was_long);
  GROSR_DEVICE void follow(std::uint32_t type);
  GROSR_DEVICE bool hands_empty();
  GROSR_DEVICE void complete(ref r, std::uint32_t n, std::uint32_t failed, bool more);
  GROSR_DEVICE void flush_completions();
  GROSR_DEVICE void report(std::uint32_t slot, std::uint32_t generation, std::uint32_t ticket,
                           std::uint32_t ticket_generation, std::uint32_t ticket_packets,
                           bool failed);
  GROSR_DEVICE void finish(std::uint32_t slot, std::uint32_t generation, std::uint32_t ticket,
                           std::uint32_t ticket_generation, std::uint32_t ticket_packets,
                           bool failed);

  // ---- with the block's other warps: worker_block.inl ----
  GROSR_DEVICE bool ask_for_rendezvous(bool now);
  GROSR_DEVICE bool rendezvous_is_called() const;
  GROSR_DEVICE bool meet();
  GROSR_DEVICE ref find_block(std::uint64_t began, unsigned runs);
  GROSR_DEVICE void load_block_task(ref r);
  GROSR_DEVICE void load_record(ref r);
  GROSR_DEVICE void publish_private();
  GROSR_DEVICE void run_block(ref r, unsigned runs);
  template <class T>
  GROSR_DEVICE void run_block_typed(ref r, unsigned runs);
  GROSR_DEVICE bool is_first_failure();
  GROSR_DEVICE void hand_on_block();
  GROSR_DEVICE void follow_block(std::uint32_t type, unsigned runs);
  GROSR_DEVICE std::uint32_t leave_near_block();
  GROSR_DEVICE bool block_has_others() const;
  GROSR_DEVICE unsigned run_near_block(unsigned runs);
  GROSR_DEVICE GROSR_NOINLINE static unsigned run_near_block_out_of_line(shared* block,
                                                                         unsigned owner,
                                                                         unsigned runs);
  template <class T>
  GROSR_DEVICE unsigned run_near_block_as(std::uint32_t kind, unsigned owner, unsigned most);
  GROSR_DEVICE bool near_block_ends(std::uint32_t kind, bool owns, unsigned runs,
                                    std::uint64_t began, std::uint64_t all_began);

  // ---- nothing to do: worker_idle.inl ----
  GROSR_DEVICE void wait();
  GROSR_DEVICE watched watch();
  GROSR_DEVICE void stall();
  GROSR_DEVICE void end_of_stall();
  GROSR_DEVICE void end_of_spinning();
  GROSR_DEVICE bool collects(bool all);
  GROSR_DEVICE bool finds_overdue();
  GROSR_DEVICE bool is_rung();
  GROSR_DEVICE void activate();
  GROSR_DEVICE void rest();
  GROSR_DEVICE void say_if_sole();
  GROSR_DEVICE bool publish_if_sole(std::uint32_t claimed, std::uint64_t activity);
  GROSR_DEVICE void publish_quiescent(std::uint32_t claimed) const;
  GROSR_DEVICE bool leave_activity(std::uint64_t seen) const;
  GROSR_DEVICE std::uint32_t packets_claimed(simt::order o) const;

  // ---- staying and leaving: worker_residency.inl ----
  GROSR_DEVICE void obey_control();
  GROSR_DEVICE GROSR_NOINLINE static void name_running(const view& v);
  GROSR_DEVICE bool idles_too_long(unsigned ring, std::uint64_t activity) const;
  GROSR_DEVICE bool park();
  GROSR_DEVICE bool has_entered() const;
  GROSR_DEVICE bool work_waits() const;
  GROSR_DEVICE void say_leaving();
  GROSR_DEVICE void quiet_now() const;
  GROSR_DEVICE std::uint64_t quiet_for() const;
  GROSR_DEVICE bool must_leave() const;
  GROSR_DEVICE void exit();
  GROSR_DEVICE void join_exit() const;

  // ---- small things ----
  /// This warp of its block.
  GROSR_DEVICE unsigned self_warp() const { return id_ % warps_per_block; }
  GROSR_DEVICE bool is_active() const { return standing_ != standing::resting; }
  GROSR_DEVICE bool has_packet() const { return hand_ != hand::empty; }
  GROSR_DEVICE unsigned rings() const { return priority_levels * v_.sizes.rings_per_level; }
  GROSR_DEVICE std::uint32_t all_rings() const { return ~0u >> (32 - rings()); }
  /// With fewer blocks than rings, each block's poller goes round several.
  GROSR_DEVICE bool polls_several() const { return v_.sizes.blocks < rings(); }
  /// For pauses of a host's thread, which sleeps while there is nothing to do, however often its
  /// workers go from one place to look at to another.
  GROSR_DEVICE unsigned idle_turns(unsigned turn) const {
    return !simt::on_gpu() && pace_ == pace::idle ? turn + 1 : turn;
  }
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> activity_word() const {
    return simt::atomic_ref<std::uint64_t>(*v_.common.activity);
  }

  // ---- state ----

  spawner_type spawner_;  // for the contexts of tasks: the same four as below
  shared& b_;
  const view& v_;
  local& w_;
  std::uint32_t id_;  // number of this worker on the device

  standing standing_ = standing::resting;
  pace pace_ = pace::idle;
  hand hand_ = hand::empty;
  outcome outcome_ = outcome::other;

  queue::held_packet packet_{};   // what is in hand, if hand_ says so
  unsigned bundle_ = 1;           // how many packets that is; of several, packet_ has the ring and
                                  // the number of the first
  std::uint32_t hints_ = 0;       // the hints, at the last look
  std::uint64_t run_cycles_ = 0;  // length of the last run
  std::uint32_t burst_runs_ = 0;  // runs of the last burst
  // Tasks of a slot that have run and are not in its counter yet.
  std::uint32_t pending_slot_ = no_slot, pending_done_ = 0, pending_failed_ = 0;

  // Whether this worker may take the poll lock of its last ring again, as nobody else polled there,
  // perhaps. No state of its own: try_relock() finds out whether it was true.
  bool back_ = false;
  // The leader's. What this worker has taken in the block's memory and has to give back
  // (end_of_spinning): b_.spinner, b_.polls. It can have either without the other.
  bool spins_ = false;      // it spins for the block
  bool polls_ = false;      // it polls, or has just had a packet
  bool lost_race_ = false;  // another thief was faster, and may have left something
};

/// The kernel.
template <class Policy, class... Tasks>
struct resident {
  view v;

  GROSR_DEVICE void operator()() const {
    using worker_type = worker<Policy, Tasks...>;
    auto& b = simt::block_shared<typename worker_type::shared>();
    b.set_view(v);
    worker_type(b).loop();
  }
};

}  // namespace grosr::run

#include "grosr/run/detail/worker_block.inl"
#include "grosr/run/detail/worker_complete.inl"
#include "grosr/run/detail/worker_find.inl"
#include "grosr/run/detail/worker_idle.inl"
#include "grosr/run/detail/worker_loop.inl"
#include "grosr/run/detail/worker_poll.inl"
#include "grosr/run/detail/worker_residency.inl"
#include "grosr/run/detail/worker_run.inl"
