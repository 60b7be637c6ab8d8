// How another thread asks what the lanes of a launch wait for. The threads that run the lanes
// answer, between two rounds, each for its own: nobody else may look at lanes that run.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace grosr::simt::host {

struct inquiry {
  std::atomic<unsigned> asked{0};  ///< how often
  std::mutex mutex{};              ///< guards what follows
  std::condition_variable answered{};
  unsigned answers = 0, workers = 0;
  std::map<std::string, unsigned> lanes{};  ///< how many wait so
  std::vector<long> threads{};              ///< Linux's numbers of those that run the lanes

  std::vector<long> all_threads() {
    std::lock_guard lock(mutex);
    return threads;
  }

  /// "gated polls for "the gate" at x.cpp:12 (3 lanes)": of lanes that do something that has a
  /// name, as far as their threads answer in time.
  std::vector<std::string> ask(std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex);
    if (workers == 0) return {};
    lanes.clear();
    answers = 0;
    asked.fetch_add(1);
    answered.wait_for(lock, limit, [this] { return answers >= workers; });
    std::vector<std::string> all;
    for (const auto& [wait, n] : lanes)
      all.push_back(wait + " (" + std::to_string(n) + (n == 1 ? " lane)" : " lanes)"));
    return all;
  }
};

}  // namespace grosr::simt::host
