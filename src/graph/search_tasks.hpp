// The host's side of a job: its runtime, its mailbox, and how a search is waited for.
#pragma once

#include <chrono>
#include <optional>

#include "grosr/graph/bfs.hpp"
#include "grosr/run/mailbox.hpp"
#include "grosr/run/runtime.hpp"
#include "grosr/run/team.hpp"

namespace grosr::graphs {

/// The mailbox of a job whose coordinator serves requests; nothing, if it is a task a run.
template <class Job>
struct box_of {
  struct type {};
};
template <class Job>
requires requires { typename Job::searcher; }
struct box_of<Job> {
  using type = std::optional<mailbox<typename Job::searcher>>;
};

/// Owner of a Job in device memory, of a runtime for it, and of the mailbox that searches are asked
/// for at.
template <class Job>
class search_tasks {
 public:
  search_tasks(const device& where, const search_options& o)
      : job_(where, simt::space::device, 1), tasks_(where, adapted(where, o.runtime)) {
    const unsigned blocks = tasks_.stats().workers / run::warps_per_block;
    most_helpers_ = o.members != 0 && o.members < blocks ? o.members : blocks - 1;
    if constexpr (requires { typename Job::searcher; })  // one search at a time
      box_.emplace(tasks_, typename Job::searcher{job_.data()}, mailbox_options{.capacity = 1});
  }

  /// Once, before the first run.
  void set(Job j) {
    j.team.most_helpers = most_helpers_;
    job_.copy_from({&j, 1});
  }
  Job* job() const { return job_.data(); }
  unsigned blocks() const { return most_helpers_ + 1; }
  std::size_t bytes() const { return job_.bytes(); }
  runtime_stats stats() const { return tasks_.stats(); }

  std::vector<Job> get() const {
    std::vector<Job> j(1);
    job_.copy_to(j);
    return j;
  }

  /// Runs a coordinator; calls `between` now and then, and ends the runtime when that throws.
  template <class Coordinator>
  void run(const Coordinator& coordinator, const progress_callback& between) {
    const ticket t = tasks_.submit(coordinator);
    while (!t.wait_for(time_between)) call(between);
    if (t.failed()) throw_failed();
  }

  /// The same for a request. By one thread at a time.
  template <class Request>
  void ask(const Request& what, const progress_callback& between) {
    const auto answer = box_->ask(what);
    while (!answer.wait_for(time_between)) call(between);
    if (answer.status() != 0) throw_failed();
  }

 private:
  static constexpr std::chrono::milliseconds time_between{50};

  void call(const progress_callback& between) {
    if (!between) return;
    try {
      between();
    } catch (...) {
      try {
        tasks_.stop(std::chrono::milliseconds(1));  // the coordinator sees that, and returns
      } catch (const grosr::error&) {               // that it was not done is known
      }
      throw;
    }
  }

  [[noreturn]] static void throw_failed() {
    throw error(errc::task_failed,
                "a search was asked for; its task ended before it was done, or was not begun");
  }

  static runtime_options adapted(const device& d, runtime_options o) {
    if (o.blocks_per_sm == 0 && d.is_cuda()) o.blocks_per_sm = 6;
    return o;
  }

  simt::buffer<Job> job_;
  runtime<typename Job::coordinator, team_helper<Job>> tasks_;
  typename box_of<Job>::type box_;
  unsigned most_helpers_ = 0;
};

}  // namespace grosr::graphs
