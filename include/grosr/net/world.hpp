// world: ranks whose tasks start tasks on each other, and share arrays.
//
//   struct count {
//     grosr::net::array_ref<std::uint32_t> bins;
//     std::uint64_t first;
//     GROSR_DEVICE void operator()(auto& context) const {
//       auto world = grosr::net::world_of(context);
//       for (std::uint64_t i = first; i < first + 1000; ++i) world.add(bins, i * i % bins.size(), 1u);
//     }
//   };
//   grosr::net::world<count> world({{.where = device}, {.where = device}});
//   grosr::net::array<std::uint32_t> bins(world, 4096);
//   for (std::uint32_t r = 0; r < world.size(); ++r) world.submit(r, count{bins.ref(), r * 1000});
//   world.wait_all();
//
// The ranks may lie in several processes (grosr/net/mpi.hpp). docs/internals/messages.md has the
// protocol.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "grosr/net/detail/world_core.hpp"
#include "grosr/net/endpoint.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr::net {

/// Among a world's task types: a task that brings a result, and that other ranks may call.
template <class Task>
struct callable {
  static_assert(run::brings_result<Task>,
                "grosr: a task that is called brings a result: it says `using result = R;`");
};

namespace detail {
template <class... Tasks>
struct tasks {};
template <class Done, class... Left>
struct expand;
template <class... Done>
struct expand<tasks<Done...>> {
  using type = runtime<Done...>;
};
template <class... Done, class T, class... Left>
struct expand<tasks<Done...>, T, Left...> : expand<tasks<Done..., T>, Left...> {};
template <class... Done, class T, class... Left>
struct expand<tasks<Done...>, callable<T>, Left...>
    : expand<tasks<Done..., T, called<T>, answer<T>>, Left...> {};

/// Task types in words: "count (32 bytes), visit (8 bytes)". Processes compare them.
template <class... Tasks>
std::string names_of() {
  std::string all;
  ((all += (all.empty() ? "" : ", ") + std::string(run::type_name<Tasks>()) + " (" +
           std::to_string(sizeof(Tasks)) + " bytes)"),
   ...);
  return all;
}
}  // namespace detail

/// What arrays need of a world.
class world_base {
 public:
  virtual ~world_base() = default;
  /// Ranks of all processes, and those of this one: so many from first_rank() on.
  std::uint32_t size() const { return core_.size(); }
  std::uint32_t first_rank() const { return core_.first_here(); }
  std::uint32_t ranks_here() const { return core_.ranks_here(); }
  bool is_here(std::uint32_t rank) const { return rank - first_rank() < ranks_here(); }

 protected:
  explicit world_base(std::vector<rank_options> ranks, const world_options& options,
                      const std::string& types)
      : core_(std::move(ranks), options, types) {}
  world_base(const world_base&) = delete;
  /// Takes all kernels off their devices, when nothing is under way. They come back with the next
  /// submit() or wait. Past the deadline, and where that cannot be, the world ends.
  virtual void leave(run::deadline until) = 0;
  /// What a destructor gives it. Other processes may come later: for them the end alone has one.
  run::deadline patience(bool last) const {
    return last || !core_.has_others() ? run::in(std::chrono::seconds(10)) : run::deadline{};
  }

  world_core core_;

 private:
  template <class T>
  friend class array;
};

/// Ranks with a resident scheduler each, for tasks of the types named; callable<T> for those that
/// other ranks may call. Every member may be called from any number of host threads, except
/// construction, destruction, stop(), and that of arrays. Where several processes have the world,
/// all of them call what waits for all (construction, destruction, stop(), wait_all() and, of
/// arrays, construction, destruction, copy_from() and copy_to()), in the same order, one at a time.
/// Not movable.
template <class... Tasks>
class world : public world_base {
 public:
  using runtime_type =
      typename detail::expand<detail::tasks<receive, deferred, arrived>, Tasks...>::type;

  /// `ranks`: of this process. Throws error(invalid_option, out_of_memory, not_built, device_lost);
  /// with several processes error(misuse) where theirs are not the same, and as wait_all().
  explicit world(std::vector<rank_options> ranks, const world_options& options = {})
      : world_base(std::move(ranks), options, detail::names_of<Tasks...>()) {
    core_.together([&] {
      for (std::uint32_t r = first_rank(); r < first_rank() + ranks_here(); ++r) {
        runtime_options o = core_.rank(r).runtime;
        o.idle_timeout = std::chrono::microseconds(0);
        runtimes_.emplace_back(core_.rank(r).where, o, run::collection{core_.state(r), 1});
      }
    });
  }

  /// As stop(10 s), if that was not called, but does not throw.
  ~world() override {
    try {
      end(patience(true));
    } catch (...) {
    }
  }

  /// Hands tasks to a rank, as runtime::submit(). Throws error(invalid_option) when there is no
  /// such rank in this process, and as that.
  template <class Task>
  ticket submit(std::uint32_t rank, const Task& task, priority p = priority::normal) {
    return at(rank).submit(task, p);
  }
  template <class Task>
  ticket submit(std::uint32_t rank, std::span<const Task> tasks, priority p = priority::normal) {
    return at(rank).submit(tasks, p);
  }
  template <class Task>
  ticket submit(std::uint32_t rank, const std::vector<Task>& tasks, priority p = priority::normal) {
    return at(rank).submit(tasks, p);
  }
  /// The same for one that brings a result, as runtime::fork().
  template <class Task>
  auto fork(std::uint32_t rank, const Task& task, priority p = priority::normal) {
    return at(rank).fork(task, p);
  }

  /// Waits until nothing that was submitted, or came of it on any rank, is left: all messages were
  /// received, and what they started has run. Nobody is to submit meanwhile. Throws error(misuse)
  /// when tasks named ranks, arrays or elements that do not exist; and as runtime::wait_all(). With
  /// several processes what one of them would throw all throw; error(misuse) where others do not
  /// wait but do something else, and error(stopped) where one cannot be reached, or cannot go on.
  void wait_all() {
    if (!wait_until({}))
      throw error(
          errc::timed_out,
          "world: another process ended its wait by a limit; have all processes wait alike");
  }
  /// The same with a time limit, the same in all processes: false when it passed first in one. A
  /// wait with nothing to wait for takes up to a millisecond, so give it more.
  bool wait_all_for(std::chrono::nanoseconds limit) { return wait_until(run::in(limit)); }

  /// Waits until nothing is left, as wait_all(), and ends the world: later submits throw. Past the
  /// limit it aborts: messages under way and tasks that have not begun are dropped, those that run
  /// learn it from context.aborted(), and error(timed_out) is thrown. What arrays hold can be
  /// copied afterwards. Throws as wait_all(); the world has ended then all the same. Several
  /// processes call it with the same limit, which is longer than one of them may be late.
  void stop() { end({}); }
  void stop(std::chrono::nanoseconds limit) { end(run::in(limit)); }

  /// Counters of messages, by rank, of those of this process. Copies from the devices.
  std::vector<rank_stats> stats() const { return core_.stats(); }
  /// Counters of the scheduler of a rank of this process.
  runtime_stats scheduler_stats(std::uint32_t rank) {
    core_.check_rank(rank);
    return runtimes_[rank - first_rank()].stats();
  }
  /// The first tasks of a rank of this process that returned errors.
  std::vector<task_error> errors(std::uint32_t rank) {
    core_.check_rank(rank);
    return runtimes_[rank - first_rank()].errors();
  }

 private:
  bool started() const {
    return simt::atomic_ref(const_cast<std::uint32_t&>(started_)).load(simt::acquire) != 0;
  }

  /// All kernels are on their devices before anybody sends.
  void start() {
    if (started()) return;
    core_.ring_all();
    for (auto& r : runtimes_) r.submit(receive{});
    simt::atomic_ref(started_).store(1u, simt::release);
  }

  runtime_type& at(std::uint32_t rank) {
    core_.check_rank(rank);
    start();
    return runtimes_[rank - first_rank()];
  }

  /// Whether nothing was under way before the deadline.
  bool rest(run::deadline until, bool last) {
    start();
    const auto of_rank = [&](std::uint32_t rank) -> runtime_type& {
      return runtimes_[rank - first_rank()];
    };
    return core_.wait_all({.ask =
                               [&](std::uint32_t rank, rank_report* report, run::deadline d) {
                                 const receive task{report};
                                 if (!d) of_rank(rank).submit(task);
                                 // Where there is no room, others may make some in time.
                                 while (d && !of_rank(rank).try_submit(task)) {
                                   if (has_passed(d)) return false;
                                   std::this_thread::sleep_for(std::chrono::microseconds(100));
                                 }
                                 return true;
                               },
                           .rests =
                               [&](std::uint32_t rank, run::deadline d) {
                                 if (d) return of_rank(rank).wait_all_for(run::left_until(*d));
                                 of_rank(rank).wait_all();
                                 return true;
                               }},
                          until, last);
  }
  enum class outcome : std::uint8_t { rests, late, failed };
  /// The same, but goes on when tasks found no memory, and throws nothing: that is in `wrong`.
  outcome rest_in_any_case(run::deadline until, bool last, std::exception_ptr& wrong) {
    for (;;) {
      try {
        return rest(until, last) ? outcome::rests : outcome::late;
      } catch (const error& e) {
        const bool goes_on = e.code() == errc::out_of_memory;
        if (!wrong || !goes_on) wrong = std::current_exception();
        if (!goes_on) return outcome::failed;
        // Several processes find that together.
        if (!core_.has_others() && has_passed(until)) return outcome::late;
      } catch (...) {
        wrong = std::current_exception();
        return outcome::failed;
      }
    }
  }
  static bool has_passed(run::deadline until) {
    return until && run::left_until(*until).count() == 0;
  }
  bool wait_until(run::deadline until) {
    const bool done = rest(until, false);
    if (done) core_.throw_if_refused();
    return done;
  }

  void end(run::deadline until) {
    if (ended_) return;
    std::exception_ptr wrong;
    const outcome how =
        started() || core_.has_others() ? rest_in_any_case(until, true, wrong) : outcome::rests;
    end_ranks(how == outcome::rests, wrong);
    if (how == outcome::late)
      throw error(errc::timed_out,
                  "world: the deadline of stop() passed with " + core_.under_way() +
                      ", or tasks not run; they are dropped. Give stop() more time, or none to "
                      "wait");
    if (wrong) std::rethrow_exception(wrong);
    core_.throw_if_refused();
  }

  /// Ranks that rest leave their devices. Others are aborted, all of them: what one waits for may
  /// be room, which another makes.
  void end_ranks(bool rest, std::exception_ptr& wrong) {
    ended_ = true;
    if (!rest) core_.keep_arrays();
    for (auto& r : runtimes_) {
      try {
        if (rest)
          r.stop(std::chrono::seconds(1));
        else
          r.abort();
      } catch (...) {
        if (!wrong) wrong = std::current_exception();
      }
    }
  }

  void leave(run::deadline until) override {
    if (ended_ || (!started() && !core_.has_others())) return;
    std::exception_ptr wrong;
    const outcome how = rest_in_any_case(until, false, wrong);
    const bool rests = how == outcome::rests;
    // In any case: who frees memory next waits for kernels that are there.
    try {
      if (rests) core_.throw_if_refused();
    } catch (...) {
      if (!wrong) wrong = std::current_exception();
    }
    bool left = how != outcome::late;
    for (auto& r : runtimes_) left = left && leave(r, rests, wrong);
    if (!left) end_ranks(false, wrong);
    simt::atomic_ref(started_).store(0u, simt::release);
    if (wrong) std::rethrow_exception(wrong);
  }
  /// One that does not rest may wait for a rank that has ended. Whether it left.
  bool leave(runtime_type& r, bool rests, std::exception_ptr& wrong) {
    constexpr std::chrono::seconds limit{1};
    try {
      if (!rests) return r.wait_all_for(limit) && r.park_for(limit);
      r.park();
      return true;
    } catch (...) {
      if (!wrong) wrong = std::current_exception();
      return false;
    }
  }

  std::deque<runtime_type> runtimes_;
  std::uint32_t started_ = 0;
  bool ended_ = false;
};

/// An array whose elements lie on all ranks of a world; zero at first. The world outlives it.
/// Before memory is taken and after it, the world's kernels leave their devices, when nothing is
/// under way: make arrays before work begins. Several processes make the same. Not thread-safe.
template <class T>
class array {
 public:
  /// Throws error(invalid_option) for more than 2^40 elements a rank, and 256 arrays;
  /// error(out_of_memory); and as world::wait_all().
  array(world_base& w, std::uint64_t count, distribution how = distribution::block)
      : world_(&w), shape_(count, w.size(), how) {
    static_cast<void>(kind_of_element<T>());
    w.leave({});
    number_ = w.core_.add_array(shape_, sizeof(T));
  }
  /// Where something is still under way after 10 s it ends the world, as world::stop() does; with
  /// several processes it waits without a limit.
  ~array() {
    try {
      world_->leave(world_->patience(false));
    } catch (...) {
    }
    world_->core_.remove_array(number_);
  }
  array(const array&) = delete;

  /// What tasks get.
  array_ref<T> ref() const { return {shape_, number_}; }
  std::uint64_t size() const { return shape_.size(); }
  const layout& shape() const { return shape_; }

  /// Copies between the host and elements from `first` on. While nothing is under way. Of several
  /// processes each writes the elements of its own ranks, and reads all. Throws
  /// error(invalid_option) when there are not so many.
  void copy_from(std::span<const T> source, std::uint64_t first = 0) {
    world_->core_.write(number_, first, source.data(), source.size());
  }
  void copy_to(std::span<T> target, std::uint64_t first = 0) const {
    world_->core_.read(number_, first, target.data(), target.size());
  }
  /// The same of the first elements of the part of a rank of this process, shape().index_of() says
  /// which: no other process takes part.
  void copy_part_from(std::uint32_t rank, std::span<const T> source) {
    world_->core_.write_part(number_, rank, source.data(), source.size());
  }
  void copy_part_to(std::uint32_t rank, std::span<T> target) const {
    world_->core_.read_part(number_, rank, target.data(), target.size());
  }

 private:
  world_base* world_;
  layout shape_;
  std::uint32_t number_ = 0;
};

}  // namespace grosr::net
