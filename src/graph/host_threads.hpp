// The threads of a piece of work: loops, what they throw, and the one who watches.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "grosr/graph/host_work.hpp"

namespace grosr::graphs {

/// Made by the thread that the work was asked of, the asker, on whose stack it lives.
class host_threads {
 public:
  /// `watch` must live as long.
  host_threads(unsigned threads, const work_watcher& watch);
  explicit host_threads(const host_work& how) : host_threads(how.threads, how.watch) {}
  host_threads(const host_threads&) = delete;

  unsigned count() const { return count_; }

  /// Any thread, between two steps: throws when the work is to end. The asker calls the watcher.
  void look();

  /// Calls work(0) to work(threads - 1), each on a thread of its own, the first on this one. Throws
  /// what the first of them threw, after all have ended. The asker alone may call it.
  void run(unsigned threads, const std::function<void(unsigned)>& work) const;

  /// Part of the work, while it lives: what the watcher is told. The asker's.
  class stage {
   public:
    stage(host_threads& threads, std::string what, std::uint64_t steps = 0);
    ~stage();
    stage(const stage&) = delete;
    /// So many of its steps are done; then look().
    void at(std::uint64_t done);

   private:
    host_threads& threads_;
    const std::string what_;
    const work_progress outer_;
  };

 private:
  /// Thrown on other threads than the asker's when the watcher threw.
  struct ended {};

  const unsigned count_;
  const work_watcher& watch_;
  const std::thread::id asker_ = std::this_thread::get_id();
  work_progress now_{};
  std::atomic<bool> ended_{false};
};

/// Calls f(first, last) for slices of [0, count), of `grain` or less, and look(). Throws what f
/// threw.
template <class F>
void parallel_for(host_threads& threads, std::uint64_t count, F&& f, std::uint64_t grain = 0) {
  if (count == 0) return;
  if (grain == 0)
    grain = std::max<std::uint64_t>(count / (std::uint64_t{threads.count()} * 16), 4096);
  const std::uint64_t slices = (count - 1) / grain + 1;
  std::atomic<std::uint64_t> next{0};
  threads.run(static_cast<unsigned>(std::min<std::uint64_t>(threads.count(), slices)),
              [&](unsigned) {
                try {
                  // The asker looks once at least, also where the others are done before it begins.
                  for (threads.look();; threads.look()) {
                    const std::uint64_t s = next.fetch_add(1, std::memory_order_relaxed);
                    if (s >= slices) break;
                    f(s * grain, std::min(count, (s + 1) * grain));
                  }
                } catch (...) {
                  next = slices;  // the others stop soon
                  throw;
                }
              });
}

}  // namespace grosr::graphs
