// Counts of calls. Each thread has its own, so that counting costs no traffic.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "grosr/sys/options.hpp"

namespace grosr::sys {

/// One call's counts, written by one thread and read by any.
struct call_counts {
  std::uint64_t calls = 0, errors = 0, bytes = 0, ns = 0;
  std::array<std::uint64_t, 40> latency{};
};

/// One thread's counts of all calls.
class thread_counts {
 public:
  static constexpr unsigned linux_calls = 512, handlers = 256, own = 16;

  /// No optional: one that is passed in memory is read as a whole right after its parts were
  /// written, which waits for all stores before it, among them a reply's way to the device.
  static constexpr std::uint64_t not_timed = ~std::uint64_t{0};

  /// `n` calls of one number took `ns` each, or are not_timed; `errors` of them failed.
  void add(unsigned number, std::uint64_t n, std::uint64_t errors, std::uint64_t bytes,
           std::uint64_t ns);

  /// Adds what this thread counted. Any thread.
  void sum(statistics& s) const;

  std::uint64_t batches = 0, denied = 0, sleeps = 0, waited = 0, ring = 0, thrown = 0;

 private:
  static constexpr unsigned kinds = linux_calls + handlers + own;
  static unsigned kind_of(unsigned number);
  std::array<std::unique_ptr<call_counts>, kinds> counts_{};
  std::array<call_counts*, kinds> seen_{};  // of those that are there; atomic
};

/// Adds to a counter that one thread writes.
inline void count(std::uint64_t& counter, std::uint64_t n = 1) {
  __atomic_store_n(&counter, counter + n, __ATOMIC_RELAXED);
}
inline std::uint64_t read_count(const std::uint64_t& counter) {
  return __atomic_load_n(&counter, __ATOMIC_RELAXED);
}

}  // namespace grosr::sys
