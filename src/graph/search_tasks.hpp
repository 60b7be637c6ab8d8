// The host's side of a job: its runtime, and how a search is waited for.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "grosr/graph/bfs.hpp"
#include "grosr/graph/detail/orders.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr::graphs {

/// Owner of a Job in device memory and of a runtime for it.
template <class Job>
class search_tasks {
 public:
  search_tasks(const device& where, const search_options& o)
      : job_(where, simt::space::device, 1),
        box_(where, simt::space::pinned, 1),
        spins_(where.is_cuda()),
        tasks_(where, adapted(where, o.runtime)) {
    const unsigned blocks = tasks_.stats().workers / run::warps_per_block;
    most_members_ = o.members != 0 && o.members < blocks ? o.members : blocks - 1;
  }

  /// Once, before the first run.
  void set(Job j) {
    j.most_members = most_members_;
    job_.copy_from({&j, 1});
  }
  Job* job() const { return job_.data(); }
  unsigned blocks() const { return most_members_ + 1; }
  std::size_t bytes() const { return job_.bytes(); }
  runtime_stats stats() const { return tasks_.stats(); }

  std::vector<Job> get() const {
    std::vector<Job> j(1);
    job_.copy_to(j);
    return j;
  }

  /// Runs a leader; calls `between` now and then, and ends the runtime when that throws.
  template <class Leader>
  void run(const Leader& leader, const pulse& between) {
    const ticket t = tasks_.submit(leader);
    while (!t.wait_for(time_between)) call(between);
    throw_if_failed(t);
  }

  /// The same for an order, which a leader that still waits for one carries out (orders.hpp). By
  /// one thread at a time.
  template <class Order>
  void order(const Order& what, const pulse& between) {
    order_box& box = *box_.data();
    const std::uint32_t number = ++orders_;
    simt::bus_store_from_host(&box.order, pack_order(what, number));  // O1: pairs with O2
    // O4: pairs with O3
    const auto served = [&] {
      return std::atomic_ref(box.served).load(std::memory_order_acquire) == number;
    };
    using clock = std::chrono::steady_clock;
    const auto began = clock::now();
    auto called = began, looked = began;
    for (unsigned turn = 1; !served(); ++turn) {
      if (leader_.done()) {
        if (served()) break;
        throw_if_failed(leader_);
        leader_ = tasks_.submit(typename Job::leader{job_.data(), &box, number, what});
      }
      if (turn % 64 != 0) continue;
      const auto now = clock::now();
      if (now - looked > time_to_look) {
        leader_.wait_for(std::chrono::nanoseconds(0));  // throws if the device is lost
        looked = now;
      }
      if (now - called > time_between) {
        call(between);
        called = now;
      }
      if (now - began > time_to_spin || !spins_)
        std::this_thread::sleep_for(std::clamp<clock::duration>(
            (now - began) / 16, std::chrono::microseconds(20), std::chrono::milliseconds(1)));
    }
  }

 private:
  static constexpr std::chrono::milliseconds time_between{50}, time_to_spin{2}, time_to_look{1};

  void call(const pulse& between) {
    if (!between) return;
    try {
      between();
    } catch (...) {
      try {
        tasks_.stop(std::chrono::milliseconds(1));  // the leader sees that, and returns
      } catch (const grosr::error&) {               // that it was not done is known
      }
      throw;
    }
  }

  static void throw_if_failed(const ticket& t) {
    if (t.failed())
      throw error(errc::task_failed,
                  "a search was asked for; its task ended before it was done, or was not begun");
  }

  static runtime_options adapted(const device& d, runtime_options o) {
    if (o.blocks_per_sm == 0 && d.is_cuda()) o.blocks_per_sm = 6;
    o.watchdog = std::chrono::milliseconds(0);  // a search is one long task
    return o;
  }

  simt::buffer<Job> job_;
  simt::buffer<order_box> box_;
  bool spins_;  // while it waits for a short time
  std::uint32_t orders_ = 0;
  ticket leader_;  // the last one
  runtime<typename Job::leader, typename Job::member> tasks_;
  unsigned most_members_ = 0;
};

}  // namespace grosr::graphs
