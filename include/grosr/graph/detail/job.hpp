// What jobs of a crew have in common: members, and what leaders do.
//
// A job is a struct in device memory with
//   cost                  what an edge of its waves costs (wave.hpp); void: it has only steps
//   crew, wave, log       the states below; wave only where there are any
//   view                  what its steps see, of type view_type; of waves, a wave_view<cost>
//   most_members          besides the leader
//   work(view, kind, chunk)  a chunk of a step, by a whole block; its level is crew.level
#pragma once

#include "grosr/graph/detail/wave.hpp"
#include "grosr/run/task.hpp"

namespace grosr::graphs {

/// A step or a wave, for whoever wants to see where time goes; times are clock_ns().
struct job_event {
  std::uint64_t began, ended;
  std::uint64_t shared_at;  ///< of a wave: when members had a part in it; 0: none had
  std::uint32_t kind;       ///< as the job has them
  std::uint32_t level, chunks, members;
};
inline constexpr std::uint32_t most_events = 512;  // that are kept; the first ones of a run

/// Counts of the last run.
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
    team.serve(context, [&](std::uint32_t kind, std::uint32_t chunk) {
      if constexpr (!std::is_void_v<typename Job::cost>)
        if (kind == seats) return ride<typename Job::cost>(view, team, context, false, 0);
      job->work(view, kind, chunk);
      return true;
    });
  }
};

struct lead_store {
  std::uint64_t word;
};
struct order_store {
  simt::bus_word order;
  std::uint32_t is_there;
};

/// Base of a job's leader. All of it is for whole blocks.
template <class Job, class Context>
class lead {
 public:
  /// Carries an order out by run(order), and those that come soon after it (orders.hpp). Returns
  /// what a run that was not 0 returned, or 0.
  template <class Order, class Run>
  GROSR_DEVICE int serve(order_box& box, std::uint32_t number, Order order, const Run& run) {
    for (;; ++number) {
      events_ = waves_ = 0;
      const int status = run(order);
      if (status != 0 || !next(box, number, order)) return status;
    }
  }

 protected:
  using cost = typename Job::cost;

  GROSR_DEVICE lead(Job* job, Context& context)
      : j_(*job),
        crew_(job, job->most_members, true),
        v_(shared_copy(job->view)),
        context_(context) {}

  /// Carries a step out. False: the runtime aborts. `decide` as crew::run() has it.
  template <class Decide>
  GROSR_DEVICE bool run_step(std::uint32_t kind, std::uint32_t level, std::uint32_t chunks,
                             const Decide& decide) {
    const std::uint64_t began = simt::clock_ns();
    const std::uint32_t members = crew_.run(
        context_, {kind, level}, chunks,
        [&](std::uint32_t what, std::uint32_t chunk) { j_.work(v_, what, chunk); }, decide);
    if (simt::thread_id() == 0) note(began, kind, level, chunks, members, 0);
    return members != graphs::crew<Job>::none;
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
    crew_.seat(context_, [&] { ride<cost>(v_, crew_, context_, true, seeds); });
    return get([&] {
             note(began, seats, j_.wave.farthest, 0,
                  simt::atomic_ref<std::uint32_t>(j_.crew.members).load(simt::relaxed),
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
  graphs::crew<Job> crew_;
  const typename Job::view_type& v_;
  Context& context_;

 private:
  /// Says that order `number` is carried out, and waits for the next. False: there is none.
  template <class Order>
  GROSR_DEVICE bool next(order_box& box, std::uint32_t number, Order& order) {
    auto& store = simt::block_shared<order_store>();
    simt::sync_block();
    if (simt::thread_id() == 0) {
      simt::fence<simt::scope::system>(simt::release);  // O3: pairs with O4
      simt::atomic_ref<std::uint32_t, simt::scope::system>(box.served).store(number, simt::relaxed);
      store.is_there = wait_for(box, number + 1, store.order) ? 1 : 0;
    }
    simt::sync_block();
    const bool is_there = store.is_there != 0;
    order = unpack_order<Order>(store.order);
    simt::sync_block();
    return is_there;
  }

  /// Thread 0.
  GROSR_DEVICE bool wait_for(const order_box& box, std::uint32_t number, simt::bus_word& order) {
    const std::uint64_t began = simt::clock_ns();
    for (unsigned turn = 0;; ++turn) {
      order = simt::bus_load(&box.order);  // O2: the number comes with the order
      if (order.w[3] == number) return true;
      if ((turn & 15) == 15 && (simt::clock_ns() - began > crew_patience_ns() ||
                                context_.yield_to_higher() || context_.aborted()))
        return false;
      simt::pause_if_host(turn, "another search");
    }
  }

  /// Thread 0.
  GROSR_DEVICE void note(std::uint64_t began, std::uint32_t kind, std::uint32_t level,
                         std::uint32_t chunks, std::uint32_t members, std::uint64_t shared_at) {
    if (events_ < most_events)
      j_.log.event[events_] = {began, simt::clock_ns(), shared_at, kind, level, chunks, members};
    j_.log.events = ++events_;
  }

  std::uint32_t events_ = 0, waves_ = 0;  // of thread 0
};

}  // namespace grosr::graphs
