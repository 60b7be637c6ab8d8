// A crew: block tasks that carry out steps of chunks together, led by one of them.
//
//   leader   writes the step's level, keeps the last chunk for itself, and says what the others are:
//            cursor = step << 40 | kind << 32 | 2^31 + chunks                         (R1)
//   anyone   subtracts 1 from the cursor; found more than 2^31 in its low half: has that chunk (A1)
//   members  add what they finished to `done` when they have no other chunk yet       (R2)
//   leader   takes chunks too; the step is over when `done` says so                   (A2)
//
// Members come when they are called, at any time: the leader spawns the first ones, and each that
// comes some of those who are missing. They leave when there was nothing to do for a while or the
// runtime wants the worker: the leader alone would do. What a step is stays as
// it is until all its chunks are done, so who has a chunk may read it.
#pragma once

#include "grosr/graph/detail/orders.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::graphs {

/// What a step is; the meaning is its job's.
struct step {
  std::uint32_t kind, level;
};

/// The kind of step that crew::seat() begins; a job's own are others.
inline constexpr std::uint32_t seats = 1;

/// Device memory; zeroed before the first use.
struct crew_state {
  alignas(128) std::uint64_t cursor;
  alignas(128) std::uint64_t done;     ///< chunks that members have finished so far
  alignas(128) std::uint32_t members;  ///< called, and not left
  alignas(128) std::uint32_t missing;  ///< of them, whom nobody has spawned yet; may wrap below 0
  alignas(128) std::uint32_t level;    ///< of the step; for whoever has a chunk of it
  std::uint32_t steps;                 ///< so far; for the next leader
  std::uint64_t issued;                ///< chunks that members had so far; likewise
};

/// What thread 0 tells its block.
struct crew_store {
  std::uint32_t chunk, kind, members, ended;
};

template <class Job>
class crew {
 public:
  static constexpr std::uint32_t none = ~0u;
  static constexpr std::uint32_t half = 1u << 31;  ///< one more than the most chunks of a step

  /// A member's view of it, or the leader's.
  GROSR_DEVICE crew(Job* job, std::uint32_t most, bool leads = false)
      : job_(job), s_(job->crew), most_(most) {
    if (!leads || simt::thread_id() != 0) return;
    issued_ = s_.issued;
    steps_ = s_.steps;
  }

  /// Leader, whole block: carries a step out; returns when it is done, how many members were called
  /// for it; or none, when the runtime aborts and members may be at it still. `work(kind, chunk)`
  /// is called by whole blocks. `decide(true)` is called by thread 0 when the step is done; before,
  /// it may call decide(false), while there is nothing else to do: what has run lately runs faster.
  template <class Context, class Work, class Decide>
  GROSR_DEVICE std::uint32_t run(Context& context, step what, std::uint32_t chunks,
                                 const Work& work, const Decide& decide) {
    if (chunks <= few || most_ == 0) {
      if (simt::thread_id() == 0) s_.level = what.level;
      simt::sync_block();
      for (std::uint32_t c = 0; c < chunks; ++c) {
        work(what.kind, c);
        simt::sync_block();
      }
      if (simt::thread_id() == 0) decide(true);
      simt::sync_block();
      return 0;
    }
    begin(what, chunks - 1);
    const std::uint32_t members = call_members(context, chunks - 1);
    work(what.kind, chunks - 1);
    simt::sync_block();
    std::uint32_t mine = 0;
    for (std::uint32_t c = take(); c != none; c = take(), ++mine) work(what.kind, c);
    return finish(context, mine, decide) ? members : none;
  }

  /// Leader, whole block: the same for a step of as many seats as come; `own` is the leader's part,
  /// and when it has ended nobody takes a seat any more.
  template <class Context, class Own>
  GROSR_DEVICE void seat(Context& context, const Own& own) {
    begin({seats, 0}, half - 1);
    own();
    simt::sync_block();
    std::uint32_t left = 0;
    if (simt::thread_id() == 0) {
      const std::uint64_t found = cursor().exchange(bits_of(seats) | half, simt::relaxed);
      left = static_cast<std::uint32_t>(found) - half;
    }
    finish(context, left, [](bool) {});
  }

  /// Member, whole block: works until there is nothing to do for a while. `work(kind, chunk)`
  /// returns false when this member is to leave.
  template <class Context, class Work>
  GROSR_DEVICE void serve(Context& context, const Work& work) {
    auto& store = simt::block_shared<crew_store>();
    if (simt::lane_id() == 0) spawn_some(context);
    std::uint32_t finished = 0;
    for (bool stays = true; stays;) {
      std::uint32_t c = take();
      if (c == none) {
        if (simt::thread_id() == 0) store.chunk = wait(context) ? 0 : none;
        simt::sync_block();
        c = store.chunk;
        simt::sync_block();
        if (c == none) break;
        continue;
      }
      stays = work(store.kind, c);
      simt::sync_block();
      ++finished;
      if (simt::thread_id() == 0 && (!is_chunk(ahead_) || !stays)) {
        done().fetch_add(finished, simt::release);  // R2
        finished = 0;
      }
    }
    if (simt::thread_id() == 0) members().fetch_sub(1, simt::relaxed);
  }

  /// One thread: one more member, if there may be.
  template <class Context>
  GROSR_DEVICE void call_one(Context& context) {
    if (members().fetch_add(1, simt::relaxed) >= most_) {
      members().fetch_sub(1, simt::relaxed);
      return;
    }
    spawn_one(context);
    context.offer();
  }

 private:
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> cursor() const {
    return simt::atomic_ref<std::uint64_t>(s_.cursor);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> done() const {
    return simt::atomic_ref<std::uint64_t>(s_.done);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> members() const {
    return simt::atomic_ref<std::uint32_t>(s_.members);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> missing() const {
    return simt::atomic_ref<std::uint32_t>(s_.missing);
  }

  /// Whole block: sees that there are `wanted` members, as far as there may be; how many there are.
  template <class Context>
  GROSR_DEVICE std::uint32_t call_members(Context& context, std::uint32_t wanted) {
    auto& store = simt::block_shared<crew_store>();
    if (wanted > most_) wanted = most_;
    if (simt::thread_id() == 0) {
      std::uint32_t there = members().load(simt::relaxed);
      const auto late = static_cast<std::int32_t>(missing().load(simt::relaxed));
      const std::uint32_t more = there + there / 4 < wanted ? wanted - there : 0;
      if (more != 0) {
        members().fetch_add(more, simt::relaxed);
        missing().fetch_add(more, simt::relaxed);
      }
      store.members = there + more;
      store.chunk = more != 0 || late > 0 ? 1 : 0;  // those who came last may have found no room
    }
    simt::sync_block();
    if (simt::lane_id() == 0 && store.chunk != 0) spawn_some(context);
    const std::uint32_t there = store.members;
    simt::sync_block();
    return there;
  }

  /// One lane of a warp, whose others spawn nothing: some of those who are missing.
  template <class Context>
  GROSR_DEVICE void spawn_some(Context& context) {
    if (static_cast<std::int32_t>(missing().load(simt::relaxed)) <= 0) return;
    const auto there = static_cast<std::int32_t>(missing().fetch_sub(at_once, simt::relaxed));
    std::int32_t n = there < 0 ? 0 : there;
    if (n > at_once) n = at_once;
    if (n != at_once) missing().fetch_add(at_once - n, simt::relaxed);
    for (std::int32_t i = 0; i < n; ++i) spawn_one(context);
    if (n != 0) context.offer();
  }

  /// One lane: a member that has been counted, unless there is no task memory for it.
  template <class Context>
  GROSR_DEVICE void spawn_one(Context& context) {
    if (!context.try_spawn(typename Job::member{job_})) members().fetch_sub(1, simt::relaxed);
  }

  /// Leader, whole block: a step whose first `chunks` are for whoever comes.
  GROSR_DEVICE void begin(step what, std::uint32_t chunks) {
    if (simt::thread_id() == 0) {
      s_.level = what.level;
      issued_ += chunks;
      ++steps_;
      // R1: pairs with A1 in take()
      cursor().store(bits_of(what.kind) | (half + chunks), simt::release);
      seen_ = static_cast<std::uint32_t>(bits_of(what.kind) >> 32);
      simt::block_shared<crew_store>().kind = what.kind;
      likely_ = true;
    }
    simt::sync_block();
  }
  /// Not 0 in its upper half, which is what new members think they have seen.
  GROSR_DEVICE std::uint64_t bits_of(std::uint32_t kind) const {
    return (std::uint64_t{steps_} << 8 | kind) << 32;
  }

  /// Whole block: the next chunk, and what it is of in the store; or none. Takes the one after that
  /// already, so that its answer is on the way while this one is worked on.
  GROSR_DEVICE std::uint32_t take() {
    auto& store = simt::block_shared<crew_store>();
    if (simt::thread_id() == 0) {
      store.chunk = none;
      std::uint64_t got = ahead_;
      ahead_ = half;
      // To subtract in vain does no harm, but is not for every member again and again.
      if (!is_chunk(got) && (likely_ || is_chunk(cursor().load(simt::relaxed))))
        got = cursor().fetch_sub(1, simt::relaxed);
      likely_ = false;
      if (is_chunk(got)) {
        store.chunk = static_cast<std::uint32_t>(got) - half - 1;
        if (got >> 32 != seen_) {
          seen_ = static_cast<std::uint32_t>(got >> 32);
          simt::fence(simt::acquire);  // A1: pairs with R1 in begin()
          store.kind = seen_ & 0xff;
        }
        // Not of the last ones: others may be ready before.
        if (store.chunk > most_ && store.kind != seats)
          ahead_ = cursor().fetch_sub(1, simt::relaxed);
      }
    }
    simt::sync_block();
    const std::uint32_t c = store.chunk;
    simt::sync_block();
    return c;
  }
  GROSR_DEVICE static bool is_chunk(std::uint64_t found) {
    return static_cast<std::uint32_t>(found) > half;
  }

  /// Leader, whole block: waits for the step's end. False: the runtime aborts.
  template <class Context, class Decide>
  GROSR_DEVICE bool finish(Context& context, std::uint32_t mine, const Decide& decide) {
    auto& store = simt::block_shared<crew_store>();
    simt::sync_block();
    if (simt::thread_id() == 0) {
      issued_ -= mine;
      store.ended = 1;
      // A2: pairs with R2
      for (unsigned turn = 0; done().load(simt::acquire) != issued_; ++turn) {
        if (context.aborted()) {
          store.ended = 0;
          break;
        }
        if (turn == 0) decide(false);
        simt::pause_if_host(turn, "the crew's last chunks");
      }
      s_.issued = issued_;
      s_.steps = steps_;
      if (store.ended != 0) decide(true);
    }
    simt::sync_block();
    return store.ended != 0;
  }

  /// One thread: true when there are chunks, false when the member is to leave.
  template <class Context>
  GROSR_DEVICE bool wait(Context& context) {
    const std::uint64_t began = simt::clock_ns();
    for (unsigned turn = 0;; ++turn) {
      if (is_chunk(cursor().load(simt::relaxed))) return likely_ = true;
      if ((turn & 63) == 63 && (simt::clock_ns() - began > crew_patience_ns() ||
                                context.yield_to_higher() || context.aborted()))
        return false;
      simt::pause(turn < 2 ? turn : turn < naps_after ? 2 : 6, "a step of the crew");
    }
  }

  static constexpr unsigned naps_after = 512;  // looks, some 0.5 ms
  static constexpr std::int32_t at_once = 2;   // members that a warp spawns
  static constexpr std::uint32_t few = 2;      // chunks that are not worth telling others
  Job* job_;
  crew_state& s_;
  std::uint32_t most_;
  // Of thread 0:
  std::uint64_t ahead_ = half;  // what the cursor was for the chunk that was taken ahead
  std::uint32_t seen_ = 0;      // the step that the store describes
  bool likely_ = false;         // there were chunks a moment ago
  std::uint64_t issued_ = 0;    // the leader's, as are
  std::uint32_t steps_ = 0;
};

}  // namespace grosr::graphs
