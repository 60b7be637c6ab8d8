// What a task sees of the runtime while it runs.
#pragma once

#include "grosr/alloc/heap_ref.hpp"
#include "grosr/queue/completion.hpp"
#include "grosr/run/detail/frame.hpp"
#include "grosr/run/task.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr {

/// Passed to every task's call operator. Valid only during that call. Cheap to copy.
///
/// All members may be called by any lane, also after lanes diverged, unless they say otherwise.
template <class Spawner>
class context {
 public:
  using spawner_type = Spawner;

  GROSR_DEVICE context(const Spawner& spawner, width w, std::uint32_t level, std::uint32_t depth)
      : spawner_(spawner),
        width_(w),
        level_(static_cast<std::uint8_t>(level)),
        depth_(static_cast<std::uint8_t>(depth)) {}

  /// Starts a task of any of the runtime's types. Each lane that calls starts one. It is detached:
  /// nobody waits for it but wait_all(). When task memory is full, a lane task runs inside this
  /// call; others, and those too deep, go to host memory (overflow_limit, swap_limit). When that is
  /// full too, the call waits while others may make room. If nobody can, the task is not run: this
  /// task has failed, and wait_all() throws (docs/internals/scheduler.md, "No room").
  template <class Task>
  GROSR_DEVICE void spawn(const Task& task) {
    spawner_.spawn(run::as_record(task), level_, depth_);
  }

  /// The same, at another priority than this task's own.
  template <class Task>
  GROSR_DEVICE void spawn(const Task& task, priority p) {
    spawner_.spawn(run::as_record(task), static_cast<std::uint32_t>(p) % priority_levels, depth_);
  }

  /// Starts a task if there is room for it now; false when task memory is full.
  template <class Task>
  GROSR_DEVICE bool try_spawn(const Task& task) {
    return spawner_.try_spawn(run::as_record(task), level_);
  }
  template <class Task>
  GROSR_DEVICE bool try_spawn(const Task& task, priority p) {
    return spawner_.try_spawn(run::as_record(task),
                              static_cast<std::uint32_t>(p) % priority_levels);
  }

  /// The heap that the runtime was given (runtime_options::heap). Without one, and with a checked
  /// one, it has no memory.
  GROSR_DEVICE const heap_ref& heap() const { return spawner_.get_heap(); }

  /// The same for a checked heap; the task's type is named in findings. It has no memory if the
  /// heap is not checked.
  template <class Task>
  GROSR_DEVICE checked_heap_ref checked_heap(const Task&) const {
    return spawner_.template get_checked_heap<run::record_of<Task>>();
  }

  /// For a task that found no memory: starts it again, at low priority, when some was freed that
  /// others can take (heap_ref::wait_for_free) or after 20 us, which this call may wait. The task
  /// then returns, and to its ticket has run; what was started counts with wait_all. False when
  /// nothing was freed for `memory_wait`: the task should give up, and return -ENOMEM for example.
  /// In a warp or block task thread 0 (rank()) asks for all; others get true.
  template <class Task>
  GROSR_DEVICE bool retry(const Task& task) {
    if (rank() != 0) return true;
    if (!spawner_.wait_for_memory()) return false;
    spawner_.spawn(run::as_record(task), static_cast<std::uint32_t>(priority::low), depth_);
    return true;
  }

  /// True when this task should yield: work of a higher priority waits and it is this worker's
  /// turn, or the runtime leaves the device and a worker without a task has noticed. Then it stays
  /// true until the task returns. A long task asks at its tile boundaries, and when it is true
  /// spawns what remains of itself and returns. Lanes that ask together may get different answers:
  /// in a warp or block task let one thread ask and tell the others.
  GROSR_DEVICE bool yield_to_higher() { return spawner_.should_yield(level_); }

  /// Whether workers wait for work, as far as the runtime noticed: a long task then does well to
  /// start others for parts of what it has left.
  GROSR_DEVICE bool others_wait() const { return spawner_.others_wait(); }

  /// In a warp or block task, by one thread while the others of its warp start nothing: lets other
  /// workers have what was started there so far. Otherwise they have it when the task ends, or,
  /// one to eight batches at a time, when it has become long.
  GROSR_DEVICE void publish() { spawner_.publish_own(); }

  /// Number of this thread among those that run the task together, and how many they are: 0 of 1
  /// in a lane task, of 32 in a warp task, of block_threads in a block task.
  GROSR_DEVICE unsigned rank() const {
    return width_ == width::lane ? 0 : width_ == width::warp ? simt::lane_id() : simt::thread_id();
  }
  GROSR_DEVICE unsigned size() const {
    return width_ == width::lane ? 1 : width_ == width::warp ? simt::warp_size : run::block_threads;
  }

  /// Number of the warp that runs this thread, below runtime_stats::workers. Tasks that keep their
  /// worker to themselves, those of a warp or a block, may use memory that belongs to it.
  GROSR_DEVICE std::uint32_t worker() const { return spawner_.id(); }

  /// Waits for the threads that run this task together; all of them must call it.
  GROSR_DEVICE void sync(simt::site where = simt::site::here()) const {
    if (width_ == width::warp) simt::sync_task(where);
    if (width_ == width::block) simt::sync_block(where);
  }

  /// The priority that this task runs at.
  GROSR_DEVICE priority level() const { return static_cast<priority>(level_); }

  /// Nanoseconds; one clock for the whole device.
  GROSR_DEVICE std::uint64_t clock_ns() const { return simt::clock_ns(); }

  /// True once the runtime was told to abort: long tasks should return.
  GROSR_DEVICE bool aborted() const { return spawner_.aborted(); }

  /// In a long task, by one lane of a warp: tells the watchdog that the task goes on, as the end of
  /// a task does. Cheap: it stores a word across the bus every 4 ms at most. A task that calls it
  /// in a loop that makes no progress keeps the watchdog from finding that.
  GROSR_DEVICE void progressed() { Spawner::progressed(&spawner_.memory()); }

  // ---- what only tasks that bring results do: join_context ----
  template <class Task>
  GROSR_DEVICE Task& join(const Task&) {
    return refuse<Task>();
  }
  template <class Task, class... Slot>
  GROSR_DEVICE void fork(const Task&, Slot*...) {
    refuse<Task>();
  }
  template <class Task>
  GROSR_DEVICE void pass(const Task&) {
    refuse<Task>();
  }
  template <class Value>
  GROSR_DEVICE void give(const Value&) {
    refuse<Value>();
  }

  template <class Caller, class Slot>
  GROSR_DEVICE Caller await(const Caller&, Slot*) {
    refuse<Slot>();
    return {};
  }

  /// In a task that is a completion, by one lane: what waits for it has this result.
  GROSR_DEVICE void deliver(const queue::completion& c) {
    const run::destination slot = run::waiter_word::slot_of(c.waiter);
    *reinterpret_cast<std::int64_t*>(spawner_.value_of(slot)) = c.result;
    end_ = {spawner_.deliver(slot, 0)};
  }

  // ---- for fork and join ----
  GROSR_DEVICE Spawner& spawner() { return spawner_; }
  GROSR_DEVICE std::uint32_t depth() const { return depth_; }
  /// What this thread's warp is to see to after the task; nothing mostly.
  GROSR_DEVICE run::task_end end() const { return end_; }
  GROSR_DEVICE void set_end(run::task_end e) { end_ = e; }

 private:
  template <class Task>
  GROSR_DEVICE static Task& refuse() {
    static_assert(
        run::always_false<Task>,
        "grosr: only a task that brings a result joins, forks, awaits, passes and gives: it says "
        "`using result = R;`, or `using result = void;`");
    return *static_cast<Task*>(nullptr);
  }

 protected:
  Spawner spawner_;
  width width_;
  std::uint8_t level_;
  std::uint8_t depth_;
  run::task_end end_;
};

}  // namespace grosr
