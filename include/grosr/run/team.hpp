// A team: block tasks that carry out steps of chunks together, while one of them decides what the
// steps are. docs/internals/team.md has the protocol, docs/guide/teams.md how to use it.
//
//   coordinator  writes what the step is, keeps the last chunk for itself, and offers the others:
//                cursor = step << 40 | kind << 32 | 2^31 + chunks                         (R1)
//   any block    subtracts 1 from the cursor; found more than 2^31 in its low half: has that
//                chunk                                                                    (A1)
//   helpers      add what they finished to `done` when they have no other chunk yet       (R2)
//   coordinator  takes chunks too; the step is over when `done` says so                   (A2)
//
// Helpers come when they are called, at any time: the coordinator spawns the first ones, and each
// that comes spawns some of those who are missing. They leave when there was nothing to do for a
// while or the runtime wants the worker. The coordinator alone can do all of the work, so nothing
// waits for a helper that has not taken a chunk. What a step is stays as it is until all its chunks
// are done, so a block that has a chunk may read it.
//
// The team knows neither what a chunk is nor whom its work is for.
#pragma once

#include "grosr/run/task.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr {

/// What a step is: its kind (below 256), and a word of its own. The meaning is the work's.
struct team_step {
  std::uint32_t kind, level;
};

/// The kind of the steps that team::open() begins; those of the work itself begin at first_step.
inline constexpr std::uint32_t open_step = 1, first_step = 2;

/// The words of a team, in device memory, zeroed before the first use. One block at a time is the
/// coordinator. The memory must live until no helper is left: as long as the runtime, or until
/// wait_all().
struct team_state {
  alignas(128) std::uint64_t cursor;
  alignas(128) std::uint64_t done;     ///< chunks that helpers have finished so far
  alignas(128) std::uint32_t helpers;  ///< called, and not left
  alignas(128) std::uint32_t missing;  ///< of them, whom nobody has spawned yet; may wrap below 0
  alignas(128) std::uint32_t level;    ///< of the step; for a block that has a chunk of it
  std::uint32_t steps;                 ///< so far; for the next coordinator
  std::uint64_t issued;                ///< chunks that helpers had so far; likewise
  std::uint32_t most_helpers;          ///< besides the coordinator; given by the host
};

namespace run {

/// How long helpers wait for a step, and a mailbox's server for a request: less than the runtime
/// stays on the GPU without work; on the host, where others need the processors, a moment.
GROSR_DEVICE constexpr std::uint64_t patience_ns() { return simt::on_gpu() ? 10'000'000 : 200'000; }

/// What thread 0 tells its block.
struct team_store {
  std::uint32_t chunk, kind, helpers, ended;
  std::uint64_t told;     ///< when (cycle_count) the watchdog was told; the last thread's
  std::uint32_t aborted;  ///< 1: it has seen then that the runtime aborts
};

}  // namespace run

/// The task of a helper: a runtime whose tasks use a team of `Work` has this type among its tasks.
template <class Work>
struct team_helper;

/// A block's view of a team. `Work` is a struct in device memory that has
///   team_state team;        the words above
///   help(team, context)     what a helper does, by a whole block: mostly team.serve()
/// team_bodies (run/for_each.hpp) is one that is ready to use.
template <class Work>
class team {
 public:
  static constexpr std::uint32_t none = ~0u;
  static constexpr std::uint32_t most_chunks = (1u << 31) - 1;  ///< of a step

  /// A helper's view of it, or the coordinator's.
  GROSR_DEVICE explicit team(Work* work, bool coordinates = false)
      : work_(work), s_(work->team), most_(work->team.most_helpers) {
    if (!coordinates || simt::thread_id() != 0) return;
    issued_ = s_.issued;
    steps_ = s_.steps;
  }

  /// Coordinator, whole block: carries a step out; returns when it is done, how many helpers were
  /// called for it; or none, when the runtime aborts and helpers may be at it still. `work(kind,
  /// chunk)` is called by whole blocks. `decide(true)` is called by thread 0 when the step is done;
  /// before, it may call decide(false), while there is nothing else to do: what has run lately runs
  /// faster.
  template <class Context, class Do, class Decide>
  GROSR_DEVICE std::uint32_t run(Context& context, team_step what, std::uint32_t chunks,
                                 const Do& work, const Decide& decide) {
    if (chunks <= few || most_ == 0) {
      auto& store = simt::block_shared<run::team_store>();
      if (simt::thread_id() == 0) {
        s_.level = what.level;
        if (!simt::on_gpu()) store.aborted = 0;
      }
      simt::sync_block();
      for (std::uint32_t c = 0; c < chunks; ++c) {
        work(what.kind, c);
        simt::sync_block();
        tell_progress(context);
        if (simt::on_gpu() || chunks <= few) continue;
        simt::sync_block();
        if (store.aborted != 0) return none;
      }
      if (simt::thread_id() == 0) decide(true);
      simt::sync_block();
      return 0;
    }
    begin(what, chunks - 1);
    const std::uint32_t helpers = call_helpers(context, chunks - 1);
    work(what.kind, chunks - 1);
    simt::sync_block();
    std::uint32_t mine = 0;
    for (std::uint32_t c = take(context); c != none; c = take(context), ++mine) work(what.kind, c);
    return finish(context, mine, decide) ? helpers : none;
  }
  template <class Context, class Do>
  GROSR_DEVICE std::uint32_t run(Context& context, team_step what, std::uint32_t chunks,
                                 const Do& work) {
    return run(context, what, chunks, work, [](bool) {});
  }

  /// Coordinator, whole block: the same for a step of as many slots as helpers come, each of which
  /// has one chunk of kind open_step; `own` is the coordinator's part, and when it has ended nobody
  /// takes a slot any more. False: the runtime aborts, as in run().
  template <class Context, class Own>
  GROSR_DEVICE bool open(Context& context, const Own& own) {
    begin({open_step, 0}, half - 1);
    own();
    simt::sync_block();
    std::uint32_t left = 0;
    if (simt::thread_id() == 0) {
      const std::uint64_t found = cursor().exchange(bits_of(open_step) | half, simt::relaxed);
      left = static_cast<std::uint32_t>(found) - half;
    }
    return finish(context, left, [](bool) {});
  }

  /// Helper, whole block: works until there is nothing to do for a while. `work(kind, chunk)`
  /// returns false when this helper is to leave.
  template <class Context, class Do>
  GROSR_DEVICE void serve(Context& context, const Do& work) {
    auto& store = simt::block_shared<run::team_store>();
    if (simt::lane_id() == 0) spawn_some(context);
    std::uint32_t finished = 0;
    for (bool stays = true; stays;) {
      std::uint32_t c = take(context);
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
    if (simt::thread_id() == 0) helpers().fetch_sub(1, simt::relaxed);
  }

  /// One thread: one more helper, if there may be.
  template <class Context>
  GROSR_DEVICE void call_one(Context& context) {
    if (helpers().fetch_add(1, simt::relaxed) >= most_) {
      helpers().fetch_sub(1, simt::relaxed);
      return;
    }
    spawn_one(context);
    context.publish();
  }

 private:
  static constexpr std::uint32_t half = 1u << 31;  // one more than the most chunks of a step

  GROSR_DEVICE simt::atomic_ref<std::uint64_t> cursor() const {
    return simt::atomic_ref<std::uint64_t>(s_.cursor);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> done() const {
    return simt::atomic_ref<std::uint64_t>(s_.done);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> helpers() const {
    return simt::atomic_ref<std::uint32_t>(s_.helpers);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> missing() const {
    return simt::atomic_ref<std::uint32_t>(s_.missing);
  }

  /// Tells the watchdog now and then that the block goes on. The last thread does, for which no
  /// other thread waits. On the host it ends the step when the runtime aborts; on a GPU that would
  /// cost searches a tenth.
  template <class Context>
  GROSR_DEVICE void tell_progress(Context& context) {
    if (simt::thread_id() != simt::block_size() - 1) return;
    auto& store = simt::block_shared<run::team_store>();  // `told` is any number at first
    const std::uint64_t now = simt::cycle_count();
    if (now - store.told < tell_every_cycles) return;
    store.told = now;
    context.progressed();
    if (simt::on_gpu() || !context.aborted()) return;
    store.aborted = 1;
    no_more_chunks();
  }
  /// Of this step, for anybody: the coordinator's next step, after an abort, is ended likewise.
  GROSR_DEVICE void no_more_chunks() { cursor().store(half, simt::relaxed); }

  /// Whole block: sees that there are `wanted` helpers, as far as there may be; how many there are.
  template <class Context>
  GROSR_DEVICE std::uint32_t call_helpers(Context& context, std::uint32_t wanted) {
    auto& store = simt::block_shared<run::team_store>();
    if (wanted > most_) wanted = most_;
    if (simt::thread_id() == 0) {
      std::uint32_t there = helpers().load(simt::relaxed);
      const auto late = static_cast<std::int32_t>(missing().load(simt::relaxed));
      const std::uint32_t more = there + there / 4 < wanted ? wanted - there : 0;
      if (more != 0) {
        helpers().fetch_add(more, simt::relaxed);
        missing().fetch_add(more, simt::relaxed);
      }
      store.helpers = there + more;
      store.chunk = more != 0 || late > 0 ? 1 : 0;  // those who came last may have found no room
    }
    simt::sync_block();
    if (simt::lane_id() == 0 && store.chunk != 0) spawn_some(context);
    const std::uint32_t there = store.helpers;
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
    if (n != 0) context.publish();
  }

  /// One lane: a helper that has been counted, unless there is no task memory for it.
  template <class Context>
  GROSR_DEVICE void spawn_one(Context& context) {
    if (!context.try_spawn(team_helper<Work>{work_})) helpers().fetch_sub(1, simt::relaxed);
  }

  /// Coordinator, whole block: a step whose first `chunks` are for any block.
  GROSR_DEVICE void begin(team_step what, std::uint32_t chunks) {
    if (simt::thread_id() == 0) {
      s_.level = what.level;
      issued_ += chunks;
      ++steps_;
      // R1: pairs with A1 in take()
      cursor().store(bits_of(what.kind) | (half + chunks), simt::release);
      seen_ = static_cast<std::uint32_t>(bits_of(what.kind) >> 32);
      simt::block_shared<run::team_store>().kind = what.kind;
      likely_ = true;
    }
    simt::sync_block();
  }
  /// Not 0 in its upper half, which is what new helpers think they have seen.
  GROSR_DEVICE std::uint64_t bits_of(std::uint32_t kind) const {
    return (std::uint64_t{steps_} << 8 | kind) << 32;
  }

  /// Whole block: the next chunk, and what it is of in the store; or none. Takes the one after that
  /// already, so that its answer is on the way while this one is worked on.
  template <class Context>
  GROSR_DEVICE std::uint32_t take(Context& context) {
    auto& store = simt::block_shared<run::team_store>();
    if (simt::thread_id() == 0) {
      store.chunk = none;
      std::uint64_t got = ahead_;
      ahead_ = half;
      // To subtract in vain does no harm, but is not for every helper again and again.
      if (!is_chunk(got) && (likely_ || is_chunk(cursor().load(simt::relaxed))))
        got = cursor().fetch_sub(1, simt::relaxed);
      likely_ = false;
      // A GPU is through with a step in a moment; lanes of the host may take seconds.
      if (!simt::on_gpu() && context.aborted()) {
        got = half;
        no_more_chunks();
      }
      if (is_chunk(got)) {
        store.chunk = static_cast<std::uint32_t>(got) - half - 1;
        if (got >> 32 != seen_) {
          seen_ = static_cast<std::uint32_t>(got >> 32);
          simt::fence(simt::acquire);  // A1: pairs with R1 in begin()
          store.kind = seen_ & 0xff;
        }
        // Not of the last ones: others may be ready before.
        if (store.chunk > most_ && store.kind != open_step)
          ahead_ = cursor().fetch_sub(1, simt::relaxed);
      }
    }
    simt::sync_block();
    const std::uint32_t c = store.chunk;
    if (c != none) tell_progress(context);
    simt::sync_block();
    return c;
  }
  GROSR_DEVICE static bool is_chunk(std::uint64_t found) {
    return static_cast<std::uint32_t>(found) > half;
  }

  /// Coordinator, whole block: waits for the step's end. False: the runtime aborts.
  template <class Context, class Decide>
  GROSR_DEVICE bool finish(Context& context, std::uint32_t mine, const Decide& decide) {
    auto& store = simt::block_shared<run::team_store>();
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
        simt::pause_if_host(turn, "the team's last chunks");
      }
      s_.issued = issued_;
      s_.steps = steps_;
      if (store.ended != 0) decide(true);
    }
    tell_progress(context);
    simt::sync_block();
    return store.ended != 0;
  }

  /// One thread: true when there are chunks, false when the helper is to leave.
  template <class Context>
  GROSR_DEVICE bool wait(Context& context) {
    const std::uint64_t began = simt::clock_ns();
    for (unsigned turn = 0;; ++turn) {
      if (is_chunk(cursor().load(simt::relaxed))) return likely_ = true;
      if ((turn & 63) == 63 && (simt::clock_ns() - began > run::patience_ns() ||
                                context.yield_to_higher() || context.aborted()))
        return false;
      simt::pause(turn < 2 ? turn : turn < naps_after ? 2 : 6, "a step of the team");
    }
  }

  static constexpr unsigned naps_after = 512;                      // looks, some 0.5 ms
  static constexpr std::int32_t at_once = 2;                       // helpers that a warp spawns
  static constexpr std::uint64_t tell_every_cycles = 1024 * 1024;  // some 0.5 ms
  static constexpr std::uint32_t few = 2;  // chunks that are not worth telling others
  Work* work_;
  team_state& s_;
  std::uint32_t most_;
  // Of thread 0:
  std::uint64_t ahead_ = half;  // what the cursor was for the chunk that was taken ahead
  std::uint32_t seen_ = 0;      // the step that the store describes
  bool likely_ = false;         // there were chunks a moment ago
  std::uint64_t issued_ = 0;    // the coordinator's, as are
  std::uint32_t steps_ = 0;
};

template <class Work>
struct team_helper {
  static constexpr grosr::width width = grosr::width::block;
  static constexpr bool runs_long = true;
  Work* work;
  GROSR_DEVICE void operator()(auto& context) const {
    team<Work> t(work);
    work->help(t, context);
  }
};

}  // namespace grosr
