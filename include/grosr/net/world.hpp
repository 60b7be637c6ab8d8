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
// docs/internals/messages.md has the protocol.
#pragma once

#include <chrono>
#include <deque>
#include <span>
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
}  // namespace detail

/// What arrays need of a world.
class world_base {
 public:
  virtual ~world_base() = default;
  std::uint32_t size() const { return core_.size(); }

 protected:
  explicit world_base(std::vector<rank_options> ranks, const world_options& options)
      : core_(std::move(ranks), options) {}
  world_base(const world_base&) = delete;
  /// Takes all kernels off their devices, when nothing is under way. They come back with the next
  /// submit() or wait.
  virtual void leave() = 0;

  world_core core_;

 private:
  template <class T>
  friend class array;
};

/// Ranks with a resident scheduler each, for tasks of the types named; callable<T> for those that
/// other ranks may call. Every member may be called from any number of host threads, except
/// construction, destruction, and that of arrays. Not movable.
template <class... Tasks>
class world : public world_base {
 public:
  using runtime_type =
      typename detail::expand<detail::tasks<receive, deferred, arrived>, Tasks...>::type;

  /// Throws error(invalid_option, out_of_memory, not_built, device_lost).
  explicit world(std::vector<rank_options> ranks, const world_options& options = {})
      : world_base(std::move(ranks), options) {
    for (std::uint32_t r = 0; r < size(); ++r) {
      runtime_options o = core_.rank(r).runtime;
      o.idle_timeout = std::chrono::microseconds(0);
      runtimes_.emplace_back(core_.rank(r).where, o, run::collection{core_.state(r), 1});
    }
  }

  /// Finishes what was accepted, as wait_all(), but does not throw. What takes longer than 10 s is
  /// aborted.
  ~world() override {
    try {
      if (started()) wait_all_for(std::chrono::seconds(10));
    } catch (...) {
    }
    for (auto& r : runtimes_) {
      try {
        r.stop(std::chrono::seconds(1));
      } catch (...) {
      }
    }
  }

  /// Hands tasks to a rank, as runtime::submit(). Throws error(invalid_option) when there is no
  /// such rank, and as that.
  template <class Task>
  ticket submit(std::uint32_t rank, const Task& task) {
    return at(rank).submit(task);
  }
  template <class Task>
  ticket submit(std::uint32_t rank, std::span<const Task> tasks) {
    return at(rank).submit(tasks);
  }
  template <class Task>
  ticket submit(std::uint32_t rank, const std::vector<Task>& tasks) {
    return at(rank).submit(tasks);
  }
  /// The same for one that brings a result, as runtime::fork().
  template <class Task>
  auto fork(std::uint32_t rank, const Task& task) {
    return at(rank).fork(task);
  }

  /// Waits until nothing that was submitted, or came of it on any rank, is left: all messages were
  /// received, and what they started has run. Nobody is to submit meanwhile. Throws error(misuse)
  /// when tasks named ranks, arrays or elements that do not exist; and as runtime::wait_all().
  void wait_all() { wait_until({}); }
  /// The same with a time limit: false when it passed first.
  bool wait_all_for(std::chrono::nanoseconds limit) { return wait_until(run::in(limit)); }

  /// Counters of messages, by rank. Copies from the devices.
  std::vector<rank_stats> stats() const { return core_.stats(); }
  /// Counters of a rank's scheduler.
  runtime_stats scheduler_stats(std::uint32_t rank) {
    core_.check_rank(rank);
    return runtimes_[rank].stats();
  }
  /// The first tasks of a rank that returned errors.
  std::vector<task_error> errors(std::uint32_t rank) {
    core_.check_rank(rank);
    return runtimes_[rank].errors();
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
    return runtimes_[rank];
  }

  bool wait_until(run::deadline until) {
    start();
    const bool done = core_.wait_all(
        [&](std::uint32_t r, run::deadline d) {
          // The runtime rests when all has run that the host submitted, and came of it. What came
          // of messages counts only with something that was submitted after it.
          runtimes_[r].submit(receive{});
          if (!d) {
            runtimes_[r].wait_all();
            return true;
          }
          return runtimes_[r].wait_all_for(run::left_until(*d));
        },
        until);
    if (done) core_.throw_if_refused();
    return done;
  }

  void leave() override {
    if (!started()) return;
    wait_all();
    for (auto& r : runtimes_) r.park();
    simt::atomic_ref(started_).store(0u, simt::release);
  }

  std::deque<runtime_type> runtimes_;
  std::uint32_t started_ = 0;
};

/// An array whose elements lie on all ranks of a world; zero at first. The world outlives it.
/// Before memory is taken and after it, the world's kernels leave their devices, when nothing is
/// under way: make arrays before work begins. Not thread-safe.
template <class T>
class array {
 public:
  /// Throws error(invalid_option) for more than 2^40 elements a rank, and 256 arrays;
  /// error(out_of_memory); and as world::wait_all().
  array(world_base& w, std::uint64_t count, distribution how = distribution::block)
      : world_(&w), shape_(count, w.size(), how) {
    static_cast<void>(kind_of_element<T>());
    w.leave();
    number_ = w.core_.add_array(shape_, sizeof(T));
  }
  ~array() {
    try {
      world_->leave();
    } catch (...) {
    }
    world_->core_.remove_array(number_);
  }
  array(const array&) = delete;

  /// What tasks get.
  array_ref<T> ref() const { return {shape_, number_}; }
  std::uint64_t size() const { return shape_.size(); }
  const layout& shape() const { return shape_; }

  /// Copies between the host and elements from `first` on. While nothing is under way. Throws
  /// error(invalid_option) when there are not so many.
  void copy_from(std::span<const T> source, std::uint64_t first = 0) {
    world_->core_.write(number_, first, source.data(), source.size());
  }
  void copy_to(std::span<T> target, std::uint64_t first = 0) const {
    world_->core_.read(number_, first, target.data(), target.size());
  }

 private:
  world_base* world_;
  layout shape_;
  std::uint32_t number_ = 0;
};

}  // namespace grosr::net
