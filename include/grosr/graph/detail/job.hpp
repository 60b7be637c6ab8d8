// What the algorithms have in common: jobs of a team (grosr/run/team.hpp), and what their
// coordinators do.
//
// A job is a struct in device memory with
//   cost                  what an edge of its waves costs (wave.hpp); void: it has only steps
//   team, wave, log       the states below; wave only where there are any
//   view                  what its steps see, of type view_type; of waves, a wave_view<cost>
//   work(view, kind, chunk)  a chunk of a step, by a whole block; its level is team.level
#pragma once

#include "grosr/graph/detail/wave.hpp"
#include "grosr/run/team.hpp"

namespace grosr::graphs {

/// A step or a wave, for whoever wants to see where time goes; times are clock_ns().
struct job_event {
  std::uint64_t began, ended;
  std::uint64_t shared_at;  ///< of a wave: when helpers had a part in it; 0: none had
  std::uint32_t kind;       ///< as the job has them
  std::uint32_t level, chunks, helpers;
};
inline constexpr std::uint32_t most_events = 512;  // that are kept; the first ones of a run

/// Counts of the last run.
struct job_log {
  std::uint32_t waves;
  std::uint32_t events;  ///< how many there were
  job_event event[most_events];
};

/// Base of a job: what a helper does.
template <class Job>
struct job_base {
  GROSR_DEVICE void help(grosr::team<Job>& team, auto& context) {
    auto* job = static_cast<Job*>(this);
    const auto& view = shared_copy(job->view);
    team.serve(context, [&](std::uint32_t kind, std::uint32_t chunk) {
      if constexpr (!std::is_void_v<typename Job::cost>)
        if (kind == open_step)
          return expand_wave<typename Job::cost>(view, team, context, false, 0);
      job->work(view, kind, chunk);
      return true;
    });
  }
};

struct lead_store {
  std::uint64_t word;
};

/// Base of a job's coordinator. All of it is for whole blocks.
template <class Job, class Context>
class lead {
 protected:
  using cost = typename Job::cost;

  GROSR_DEVICE lead(Job* job, Context& context)
      : j_(*job), team_(job, true), v_(shared_copy(job->view)), context_(context) {}

  /// Carries a step out. False: the runtime aborts. `decide` as team::run() has it.
  template <class Decide>
  GROSR_DEVICE bool run_step(std::uint32_t kind, std::uint32_t level, std::uint32_t chunks,
                             const Decide& decide) {
    const std::uint64_t began = simt::clock_ns();
    const std::uint32_t helpers = team_.run(
        context_, {kind, level}, chunks,
        [&](std::uint32_t what, std::uint32_t chunk) { j_.work(v_, what, chunk); }, decide);
    if (simt::thread_id() == 0) note(began, kind, level, chunks, helpers, 0);
    return helpers != grosr::team<Job>::none;
  }
  GROSR_DEVICE bool run_step(std::uint32_t kind, std::uint32_t level, std::uint32_t chunks) {
    return run_step(kind, level, chunks, [](bool) {});
  }

  /// A wave that begins with `seeds` entries in the ring, or with what is in the pool, which `work`
  /// counts. Whether something is pending then.
  GROSR_DEVICE bool wave(std::uint32_t seeds) {
    set([&] {
      j_.wave.marked = j_.wave.refused = j_.wave.farthest = j_.wave.idle = 0;
      j_.wave.shared_at = seeds != 0 ? 0 : simt::clock_ns();
      if (seeds != 0) j_.wave.work = 1;
      j_.log.waves = ++waves_;
    });
    const std::uint64_t began = simt::clock_ns();
    team_.open(context_, [&] { expand_wave<cost>(v_, team_, context_, true, seeds); });
    return get([&] {
             note(began, open_step, j_.wave.farthest, 0,
                  simt::atomic_ref<std::uint32_t>(j_.team.helpers).load(simt::relaxed),
                  j_.wave.shared_at);
             return j_.wave.marked;
           }) != 0;
  }

  /// Puts a vertex into the ring: the first entry of the first wave. False: it has no edges.
  GROSR_DEVICE bool seed(vertex source, std::uint32_t distance = 0) {
    const std::uint32_t begin = v_.graph.row[source], end = v_.graph.row[source + 1];
    set([&] { block_scratch<wave_store>().ring[0] = {source, begin, end, distance}; });
    return begin < end;
  }

  /// Begins a run: its log is empty.
  GROSR_DEVICE void begin_log() {
    events_ = waves_ = 0;
    j_.log.events = j_.log.waves = 0;
  }

  /// Thread 0 does something, or finds something for all.
  template <class Do>
  GROSR_DEVICE void set(const Do& act) {
    simt::sync_block();
    if (simt::thread_id() == 0) act();
    simt::sync_block();
  }
  template <class Find>
  GROSR_DEVICE std::uint64_t get(const Find& find) {
    auto& store = simt::block_shared<lead_store>();
    if (simt::thread_id() == 0) store.word = find();
    simt::sync_block();
    const std::uint64_t w = store.word;
    simt::sync_block();
    return w;
  }
  GROSR_DEVICE bool aborted() {
    return get([&] { return context_.aborted() ? 1u : 0u; }) != 0;
  }

  Job& j_;
  grosr::team<Job> team_;
  const typename Job::view_type& v_;
  Context& context_;

 private:
  /// Thread 0.
  GROSR_DEVICE void note(std::uint64_t began, std::uint32_t kind, std::uint32_t level,
                         std::uint32_t chunks, std::uint32_t helpers, std::uint64_t shared_at) {
    if (events_ < most_events)
      j_.log.event[events_] = {began, simt::clock_ns(), shared_at, kind, level, chunks, helpers};
    j_.log.events = ++events_;
  }

  std::uint32_t events_ = 0, waves_ = 0;  // of thread 0
};

}  // namespace grosr::graphs
