// For how long threads have been able to do something: time without a processor does not count.
#pragma once

#include <chrono>
#include <map>
#include <vector>

namespace grosr::run {

/// What one thread of this process has had so far, as Linux counts it.
struct processor_use {
  std::chrono::nanoseconds ran{}, waited{};
  bool ready = false;  ///< it runs, or waits for a processor
};

/// The time since a moment, by the thread that could use least of it. A thread that sleeps uses all
/// of it; one that is ready, the time in which it ran. Not thread-safe.
class time_had {
 public:
  using clock = std::chrono::steady_clock;

  void begin(clock::time_point now);

  /// Since begin(), of threads with these numbers; what lies before the first call for a thread is
  /// not known, and does not count. Without threads: all of the time since begin(). Of a thread
  /// that Linux tells nothing about all time counts.
  std::chrono::nanoseconds until(clock::time_point now, const std::vector<long>& threads);

 private:
  struct account {
    clock::time_point at;
    processor_use use;
    std::chrono::nanoseconds had{};
  };
  clock::time_point began_{};
  std::map<long, account> accounts_;
};

}  // namespace grosr::run
