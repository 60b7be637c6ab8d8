// What jobs of a crew have in common: members, and what leaders do.
//
// A job is a struct in device memory with
//   cost                  what an edge of its waves costs (wave.hpp); void: it has only steps
//   crew, wave, log       the states below; wave only where there are any
//   view                  what its steps see, of type view_type; of waves, a wave_view<cost>
//   most_members          besides the leader
//   work(view, step, chunk)  a chunk of a step, by a whole block
#pragma once

#include "grosr/run/task.hpp"
#include "wave.hpp"

namespace grosr::graphs {

/// A step or a wave, for whoever wants to see where time goes; times are clock_ns().
struct job_event {
  std::uint64_t began, ended;
  std::uint64_t shared_at;  ///< of a wave: when members had a part in it; 0: none had
  std::uint32_t kind;       ///< as the job has them
  std::uint32_t level, chunks, members;
};
inline constexpr std::uint32_t most_events = 512;  // that are kept; the first ones of a run

/// Of the last run.
struct job_log {
  std::uint32_t waves;
  std::uint32_t events;  ///< how many there were
  job_event event[most_events];
};

template <class Job>
struct job_member {
  static constexpr grosr::width width = grosr::width::block;
  Job* job;
  GROSR_DEVICE void operator()(auto& context) const {
    graphs::crew<Job> team(job, job->most_members);
    const auto& view = shared_copy(job->view);
    team.serve(context, [&](step what, std::uint32_t chunk) {
      if constexpr (!std::is_void_v<typename Job::cost>)
        if (what.kind == seats) return ride<typename Job::cost>(view, team, context, false, 0);
      job->work(view, what, chunk);
      return true;
    });
  }
};

struct lead_store {
  std::uint64_t word;
};

/// Base of a job's leader. All of it is for whole blocks.
template <class Job, class Context>
class lead {
 protected:
  using cost = typename Job::cost;

  GROSR_DEVICE lead(Job* job, Context& context)
      : j_(*job), v_(shared_copy(job->view)), crew_(job, job->most_members), context_(context) {
    if (simt::thread_id() == 0) crew_.begin_to_lead();
  }

  /// Carries a step out. False: the runtime aborts. `decide` as crew::run() has it.
  template <class Decide>
  GROSR_DEVICE bool run_step(step what, std::uint32_t chunks, step noted, const Decide& decide) {
    const std::uint64_t began = simt::clock_ns();
    const std::uint32_t members = crew_.run(
        context_, what, chunks, [&](step now, std::uint32_t chunk) { j_.work(v_, now, chunk); },
        decide);
    if (simt::thread_id() == 0) note(began, noted.kind, noted.level, chunks, members, 0);
    return members != graphs::crew<Job>::none;
  }
  GROSR_DEVICE bool run_step(std::uint32_t kind, std::uint32_t level, std::uint32_t chunks) {
    const step what{kind, level};
    return run_step(what, chunks, what, [](bool) {});
  }
  /// The same for a step of shares, whose number is its level.
  GROSR_DEVICE bool run_shares(std::uint32_t kind, std::uint32_t shares) {
    return run_step({kind, shares}, shares, {kind, 0}, [](bool) {});
  }

  /// A wave that begins with `seeds` entries in the ring, or with what is in the pool, which `work`
  /// counts. Whether something is pending then.
  GROSR_DEVICE bool wave(std::uint32_t seeds) {
    set([&] {
      j_.wave.marked = j_.wave.refused = j_.wave.farthest = j_.wave.idle = 0;
      j_.wave.shared_at = seeds != 0 ? 0 : simt::clock_ns();
      if (seeds != 0) j_.wave.work = 1;
      ++j_.log.waves;
    });
    const std::uint64_t began = simt::clock_ns();
    crew_.seat(context_, [&] { ride<cost>(v_, crew_, context_, true, seeds); });
    return get([&] {
             note(began, seats, j_.wave.farthest, 0,
                  simt::atomic_ref<std::uint32_t>(j_.crew.members).load(simt::relaxed),
                  j_.wave.shared_at);
             return j_.wave.marked;
           }) != 0;
  }

  /// Puts a vertex into the ring: the first entry of the first wave. False: it has no edges.
  GROSR_DEVICE bool seed(vertex source) {
    const std::uint32_t begin = v_.graph.row[source], end = v_.graph.row[source + 1];
    set([&] { block_scratch<wave_store>().ring[0] = {source, begin, end, 0}; });
    return begin < end;
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
  const typename Job::view_type& v_;
  graphs::crew<Job> crew_;
  Context& context_;

 private:
  /// Thread 0.
  GROSR_DEVICE void note(std::uint64_t began, std::uint32_t kind, std::uint32_t level,
                         std::uint32_t chunks, std::uint32_t members, std::uint64_t shared_at) {
    if (events_ < most_events)
      j_.log.event[events_] = {began, simt::clock_ns(), shared_at, kind, level, chunks, members};
    j_.log.events = ++events_;
  }

  std::uint32_t events_ = 0;  // of thread 0
};

}  // namespace grosr::graphs
