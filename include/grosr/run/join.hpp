// Fork and join: a task that brings a result gives it, or names a continuation that will when what
// it forks has brought theirs.
//
//   struct fib {
//     using result = std::uint64_t;
//     std::uint32_t n;
//     GROSR_DEVICE void operator()(auto& context) const {
//       if (n < 2) return context.give(n);
//       auto& next = context.join(sum{});
//       context.fork(fib{n - 1}, &next.a);
//       context.fork(fib{n - 2}, &next.b);
//     }
//   };
//   struct sum {
//     using result = std::uint64_t;
//     std::uint64_t a, b;
//     GROSR_DEVICE int operator()(auto& context) const {
//       if (context.status() != 0) return context.status();  // a child failed: so do we
//       context.give(a + b);
//       return 0;
//     }
//   };
//
// docs/internals/fork-join.md has the protocol.
#pragma once

#include "grosr/run/context.hpp"
#include "grosr/run/detail/frame.hpp"
#include "grosr/run/detail/spawner.hpp"

namespace grosr {

/// A join that tasks can cancel: see join_context::cancel().
struct join_scope {
  std::uint32_t frame;
};

/// What a task that brings a result sees: a context, and these. In a warp or block task one thread
/// joins, forks, gives, and says with what it returns whether all went well, the one of rank 0:
/// what others return is counted among runtime::errors(), and the join above does not learn of it.
template <class Spawner, class Result>
class join_context : public context<Spawner> {
  using base = context<Spawner>;
  using base::depth_, base::level_, base::spawner_;

 public:
  GROSR_DEVICE join_context(const base& c, run::destination to, int status)
      : base(c), destination_(to), status_(status) {}

  /// Names the task that runs when all that is forked from now on has brought its results; it gives
  /// the result in this one's place, or joins again. Returns it, as it waits: results go to its
  /// members, and a member that nothing is forked into keeps the value that it has here. Once a
  /// call. When nobody can make room for it, it comes to nothing: what is forked does not run, and
  /// the result is an error (-ENOMEM).
  template <class Task>
  GROSR_DEVICE Task& join(const Task& continuation) {
    if constexpr (!run::brings_result<Task>) {
      static_assert(run::always_false<Task>,
                    "grosr: a continuation brings a result: it says `using result = R;`");
    } else if constexpr (!std::is_same_v<typename Task::result, Result>) {
      static_assert(run::always_false<Task>,
                    "grosr: a continuation brings the result of the task that joins: its `result` "
                    "is the same type");
    } else {
      using run::failure;
      if (frame_ != Spawner::no_frame)
        is_wrong(failure::joined_twice);
      else if (given_)
        is_wrong(failure::gave_and_joined);
      else if (wrong_ == failure::returned)
        frame_ = spawner_.claim_frame();
      if (frame_ == Spawner::no_frame) is_wrong(failure::no_frame);
      if (wrong_ != failure::returned) return *::new (spawner_.sink()) Task(continuation);
      constexpr std::uint32_t type = Spawner::types::template index_of<run::record_of<Task>>();
      spawner_.header_of(frame_) = {run::still_forking, 0,
                                    run::with_kind(destination_, type, level_)};
      return *::new (spawner_.continuation_of(frame_)) Task(continuation);
    }
  }

  /// Starts a task whose result goes to `slot`, a member of what join() returned; with another one
  /// it does not start, and the continuation sees -EFAULT. Each lane that calls starts one.
  template <class Task, class Slot>
  GROSR_DEVICE void fork(const Task& task, Slot* slot) {
    if constexpr (!run::brings_result<Task>) {
      static_assert(run::always_false<Task>,
                    "grosr: a task that is forked brings a result: it says `using result = R;`");
    } else if constexpr (!std::is_same_v<typename Task::result, Slot>) {
      static_assert(run::always_false<Task>,
                    "grosr: the slot that a task is forked into has the type of its result: a "
                    "member `R` of the continuation for `using result = R;`");
    } else {
      if (!may_fork()) return;
      const std::size_t at = place_of(slot);
      if (at == nowhere)
        is_wrong(run::failure::forked_astray);
      else
        start(task, run::destination::in_frame(
                        frame_, run::frame_header_bytes + static_cast<std::uint32_t>(at)));
    }
  }
  /// The same for one that brings nothing but that it has ended.
  template <class Task>
  GROSR_DEVICE void fork(const Task& task) {
    if constexpr (!run::brings_result<Task>)
      static_assert(run::always_false<Task>,
                    "grosr: a task that is forked brings a result: it says `using result = R;`, "
                    "or `using result = void;`");
    else if constexpr (!std::is_void_v<typename Task::result>)
      static_assert(run::always_false<Task>,
                    "grosr: this task brings a result: fork it with a slot for that");
    else if (may_fork())
      start(task, run::destination::in_frame(frame_, 0));
  }

  /// The same for a call to the host, which no worker waits for: `c`, changed so that the result of
  /// the call that is made with it goes to `slot`, a member `long` of what join() returned:
  ///   sys::recv(context.await(sys, &next.n), peer, to, 8, 0);
  /// The call returns at once: 0, or why it was not made, which is in the slot then too: -EAGAIN
  /// when there was no room for it, -EFAULT when it would bring bytes to this task's own stack. One
  /// call is made with what this returns. Lanes call each for themselves, or all of a warp together
  /// for one call (a caller of a warp). Bytes that come back are where they belong when the
  /// continuation runs; a call moves at most 64 KiB.
  template <class Caller, class Slot>
  GROSR_DEVICE auto await(const Caller& c, Slot* slot) {
    static_assert(Spawner::any_completes,
                  "grosr: tasks of this runtime await calls: add grosr::awaited to runtime<...>");
    static_assert(std::is_same_v<Slot, long>,
                  "grosr: the result of a call that is awaited goes to a member `long` of the "
                  "continuation");
    queue::completion_target target;
    if (c.leads() && may_fork()) {
      const std::size_t at = place_of(slot);
      if (at == nowhere)
        is_wrong(run::failure::forked_astray);
      else
        target = queue::completion_target::of(
            spawner_.get_view().port,
            run::waiter_word::of(frame_, run::frame_header_bytes + static_cast<std::uint32_t>(at),
                                 level_));
    }
    return c.await(this, target, slot);
  }

  /// For the caller that await() made: its call is about to be made.
  GROSR_DEVICE void begin_await() { spawner_.expect_completion(); }
  /// And it was, or was not: `why`.
  GROSR_DEVICE void end_await(bool made, long why, long* slot) {
    if (made) {
      ++forks_;
      return;
    }
    spawner_.expect_none();
    *slot = why;
  }

  /// For libraries: a result that no task of this runtime brings comes to `slot` some time. Where
  /// it goes, with spawner().deliver() and then end_of_completion(), in a task; or nothing, and
  /// nobody waits: `slot` is no member of what join() returned.
  template <class Slot>
  GROSR_DEVICE run::destination expect(Slot* slot) {
    if (!may_fork()) return {};
    const std::size_t at = place_of(slot);
    if (at == nowhere) {
      is_wrong(run::failure::forked_astray);
      return {};
    }
    spawner_.expect_completion();
    ++forks_;
    return run::destination::in_frame(frame_,
                                      run::frame_header_bytes + static_cast<std::uint32_t>(at));
  }
  /// The same for what brings nothing but that it has ended.
  GROSR_DEVICE run::destination expect() {
    if (!may_fork()) return {};
    spawner_.expect_completion();
    ++forks_;
    return run::destination::in_frame(frame_, 0);
  }

  /// Starts a task that gives the result in this one's place. What this one returns afterwards is
  /// only counted.
  template <class Task>
  GROSR_DEVICE void pass(const Task& task) {
    if constexpr (!run::brings_result<Task>) {
      static_assert(run::always_false<Task>,
                    "grosr: a task that is passed on to brings a result: it says `using result = "
                    "R;`");
    } else if constexpr (!std::is_same_v<typename Task::result, Result>) {
      static_assert(run::always_false<Task>,
                    "grosr: a task that is passed on to brings the result of the task that passes: "
                    "its `result` is the same type");
    } else {
      if (frame_ != Spawner::no_frame) return is_wrong(run::failure::gave_and_joined);
      if (given_) return is_wrong(run::failure::gave_twice);
      if (wrong_ != run::failure::returned) return;
      given_ = true;
      if (spawner_.spawn(run::forked<Task>{task, destination_.bits}, level_, depth_))
        destination_ = {};
      else
        is_wrong(run::failure::no_place);
    }
  }

  /// The result. Once, unless the task joins or passes.
  template <class Value>
  GROSR_DEVICE void give(const Value& value) {
    if constexpr (!std::is_void_v<Result> && !std::is_constructible_v<Result, const Value&>) {
      static_assert(run::always_false<Value>, "grosr: what a task gives converts to its result");
    } else if constexpr (!std::is_void_v<Result>) {
      if (frame_ != Spawner::no_frame) return is_wrong(run::failure::gave_and_joined);
      if (given_) return is_wrong(run::failure::gave_twice);
      given_ = true;
      if (destination_) *reinterpret_cast<Result*>(spawner_.value_of(destination_)) = Result(value);
    } else {
      static_assert(run::always_false<Value>, "grosr: this task's result is void");
    }
  }

  /// Whether join() found room for the continuation.
  GROSR_DEVICE bool joined() const { return frame_ != Spawner::no_frame; }

  /// Names what was joined, for tasks that may cancel it. Trivially copyable.
  GROSR_DEVICE join_scope scope() const { return {frame_}; }

  /// Cancels what was joined there: lane tasks that were forked for it, by whomever, do not begin
  /// any more, as soon as that is noticed; those that have begun go on, and those of a warp or a
  /// block begin, and may ask cancelled(). Its continuation runs, and sees -ECANCELED. To be called
  /// only by tasks that it waits for, or by who joined.
  GROSR_DEVICE void cancel(join_scope s) {
    if (s.frame != Spawner::no_frame) spawner_.cancel(s.frame);
  }

  /// Whether this task's own result is not wanted any more. For long ones.
  GROSR_DEVICE bool cancelled() const {
    return spawner_.cancelling() && spawner_.is_cancelled(destination_);
  }

  /// In a continuation: the first error of what it waited for, or 0. The slot of a task that
  /// had one is not to be read.
  GROSR_DEVICE int status() const { return status_; }

  // ---- called by the record ----

  /// The thread that joined: after the task. `returned`: what it returned. Tells what it did that
  /// it should not.
  template <class Record>
  GROSR_DEVICE run::task_end end(const Record& record, int returned, bool continuation) {
    using run::failure;
    if constexpr (!std::is_void_v<Result>)
      if (returned == 0 && !given_ && frame_ == Spawner::no_frame) is_wrong(failure::gave_nothing);
    // What found no place is among the errors itself.
    if (wrong_ != failure::returned && wrong_ != failure::no_place) [[unlikely]]
      Spawner::note_misuse(&spawner_.memory(), record, wrong_, continuation);
    const int error = returned != 0 ? returned : run::code_of(wrong_);
    if (frame_ == Spawner::no_frame) return {spawner_.deliver(destination_, error)};
    spawner_.set_status(frame_, error);
    return {frame_, forks_};
  }

 private:
  GROSR_DEVICE bool may_fork() {
    if (frame_ != Spawner::no_frame) return true;
    is_wrong(run::failure::forked_alone);
    return false;
  }
  /// Where a slot lies in the continuation, or nowhere: it is no member.
  static constexpr std::size_t nowhere = ~std::size_t{0};
  template <class Slot>
  GROSR_DEVICE std::size_t place_of(Slot* slot) const {
    constexpr std::size_t bytes = sizeof(typename Spawner::continuation_bytes);
    const auto at = static_cast<std::size_t>(reinterpret_cast<unsigned char*>(slot) -
                                             spawner_.continuation_of(frame_));
    return at > bytes - sizeof *slot ? nowhere : at;
  }
  /// The first such thing counts.
  GROSR_DEVICE void is_wrong(run::failure what) {
    if (wrong_ == run::failure::returned) wrong_ = what;
  }
  template <class Task>
  GROSR_DEVICE void start(const Task& task, run::destination slot) {
    if (spawner_.spawn(run::forked<Task>{task, slot.bits}, level_, depth_))
      ++forks_;
    else
      spawner_.set_status(frame_, -ENOSPC);
  }

  run::destination destination_;
  std::uint32_t frame_ = Spawner::no_frame, forks_ = 0;
  int status_ = 0;
  run::failure wrong_ = run::failure::returned;  ///< what it did that it should not, if anything
  bool given_ = false;
};

namespace run {

/// Runs continuations that wait for nothing any more.
template <class Spawner>
struct chain {
  using shared = typename Spawner::shared;
  using types = typename Spawner::types;

  /// Whole warp, nothing else running in it: runs kept continuations, and those that these bring
  /// the last result of, as long as there is one for each lane; with `all`, until there are none.
  /// Lane-wide ones run here; wider ones are spawned.
  GROSR_DEVICE GROSR_NOINLINE static void run(shared* block, bool all) {
    Spawner self(simt::in_block_shared(block));
    std::uint32_t joined = 0;
    GROSR_NO_UNROLL
    for (;;) {
      std::uint32_t frame = Spawner::no_frame;
      const std::uint32_t n = self.take_ready(frame, all);
      if (n == 0) break;
      simt::fence(simt::acquire);  // A1: pairs with R1 in count_down() and await()
      joined += n;
      if (simt::lane_id() == 0) self.heartbeat_if_due();
      const task_end end = step(self, frame, n, types{});
      simt::sync_warp();
      self.keep_ready(end);
    }
    self.count_joined(joined);
  }

 private:
  template <class... Records>
  GROSR_DEVICE static task_end step(Spawner& self, std::uint32_t frame, std::uint32_t n,
                                    type_list<Records...>) {
    const bool mine = simt::lane_id() < n;
    frame_header h{};
    typename Spawner::continuation_bytes c{};
    if (mine) {
      h = self.header_of(frame);
      c = *reinterpret_cast<const typename Spawner::continuation_bytes*>(
          self.continuation_of(frame));
    }
    self.free_frames(frame, n, mine && h.status == cancelled_here);
    const std::uint32_t type = mine ? type_of(h.kind_and_destination) : ~std::uint32_t{0};
    task_end end;
    ((type == types::template index_of<Records>() ? (end = run_one<Records>(self, h, c), 0) : 0),
     ...);
    return end;
  }

  template <class Record>
  GROSR_DEVICE static task_end run_one(Spawner& self, const frame_header& h,
                                       const typename Spawner::continuation_bytes& c) {
    if constexpr (is_forked<Record>) {
      using task_type = decltype(Record::task);
      loaded<task_type> l;
      task_type& task = l.task;
      __builtin_memcpy(static_cast<void*>(&task), &c, sizeof task);
      const destination to = destination_of(h.kind_and_destination);
      const std::uint32_t level = level_of(h.kind_and_destination);
      if constexpr (width_of<task_type>() != width::lane) {
        const Record record{task, to.with_status(status_of(h)).bits};
        return {Spawner::spawn_alone(&self.memory(), record, level) ? Spawner::no_frame
                                                                    : self.deliver(to, -ENOSPC)};
      } else {
        typename Spawner::context_type context(self, width::lane, level, 0);
        join_context<Spawner, typename task_type::result> jc(context, to, status_of(h));
        const int status = Spawner::template invoke<false>(task, jc);
        const Record record{task, to.bits};
        if (status != 0 && status == status_of(h))
          self.count_failure();
        else if (status != 0)
          self.note_failure(record, status);
        return jc.end(record, status, true);
      }
    }
    return {};
  }
};

template <class T>
GROSR_DEVICE int forked<T>::operator()(auto& c) const {
  using spawner_type = typename std::remove_cvref_t<decltype(c)>::spawner_type;
  const run::destination to{destination};
  if constexpr (width == grosr::width::lane)
    if (c.spawner().cancelling() && c.spawner().is_cancelled(to.plain())) {
      c.set_end({c.spawner().deliver(to.plain(), -ECANCELED)});
      return 0;
    }
  join_context<spawner_type, typename T::result> jc(c, to.plain(), to.status());
  const int status = spawner_type::template invoke<false>(task, jc);
  if constexpr (width != grosr::width::lane) {
    // Not c.sync(): a lane that has left its task does not take part in another one's.
    if constexpr (width == grosr::width::warp)
      simt::sync_warp();
    else
      simt::sync_block();
    if (c.rank() != 0) return status;
  }
  c.set_end(jc.end(*this, status, false));
  return status;
}

}  // namespace run
}  // namespace grosr
