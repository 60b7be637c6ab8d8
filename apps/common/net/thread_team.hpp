// Threads that do one thing over and over, and how often they did it while somebody looked.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace grosr::tool {

class thread_team {
 public:
  /// What a member counts; only it writes them.
  struct alignas(128) tally {
    std::atomic<std::uint64_t> done{0}, failed{0};
    static void add(std::atomic<std::uint64_t>& to, std::uint64_t n) {
      to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
  };
  using work = std::function<void(unsigned member, const std::atomic<bool>& ends, tally& counts)>;

  /// Starts `count` threads; each calls `w` once, which returns soon after `ends` is true.
  thread_team(unsigned count, const work& w);
  ~thread_team();
  thread_team(const thread_team&) = delete;

  struct measurement {
    double seconds = 0;
    std::uint64_t done = 0;
    std::uint64_t failed = 0;  ///< since the start
    double own_cpu_s = 0;      ///< CPU time of these threads
    double others_cpu_s = 0;   ///< of the other threads of the process
  };

  /// Lets `warm_up` seconds pass, then counts for `seconds`. Throws what a member threw, and
  /// interrupt::interrupted.
  measurement measure(double warm_up, double seconds);

  /// Ends the threads, and throws what one of them threw.
  void end();

 private:
  struct moment;
  moment now();
  void pass(double seconds);
  void run_member(unsigned member, const work& w);
  void join();

  std::atomic<bool> ends_{false}, threw_{false};
  std::unique_ptr<tally[]> tallies_;
  std::mutex lock_;
  std::exception_ptr thrown_;
  std::vector<std::thread> threads_;
};

}  // namespace grosr::tool
