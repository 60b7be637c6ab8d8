// The host's side of a job: its runtime, and how a search is waited for.
#pragma once

#include <chrono>

#include "bfs.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr::graphs {

/// Owner of a Job in device memory and of a runtime for it.
template <class Job>
class search_tasks {
 public:
  search_tasks(const device& where, const search_options& o)
      : job_(where, simt::space::device, 1), tasks_(where, adapted(where, o.runtime)) {
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
    while (!t.wait_for(std::chrono::milliseconds(50))) {
      if (!between) continue;
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
    if (t.failed())
      throw error(errc::task_failed,
                  "a search was asked for; its task ended before it was done, or was not begun");
  }

 private:
  static runtime_options adapted(const device& d, runtime_options o) {
    if (o.blocks_per_sm == 0 && d.is_cuda()) o.blocks_per_sm = 6;
    o.watchdog = std::chrono::milliseconds(0);  // a search is one long task
    return o;
  }

  simt::buffer<Job> job_;
  runtime<typename Job::leader, typename Job::member> tasks_;
  unsigned most_members_ = 0;
};

}  // namespace grosr::graphs
