// How many calls a second there may be.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "sys/ticks.hpp"

namespace grosr::sys {

/// Lets so many through a second, and after a pause as many at once as come in 10 ms, or 32: the
/// generic cell rate algorithm (ITU-T I.371). Any number of threads.
class rate_limit {
 public:
  /// 0: no limit.
  explicit rate_limit(std::uint64_t per_second)
      : interval_(per_second == 0 ? 0
                                  : std::max<std::uint64_t>(unit * 1'000'000'000 / per_second, 1)),
        ahead_(std::max(unit * 10'000'000, 32 * interval_)) {}

  bool limited() const { return interval_ != 0; }

  /// Whether one more may go through now.
  bool take() {
    if (!limited()) return true;
    const std::uint64_t now = (now_ns() - start_) * unit;
    std::uint64_t next = next_.load(std::memory_order_relaxed);
    do {
      if (next > now + ahead_) return false;
    } while (!next_.compare_exchange_weak(next, std::max(next, now) + interval_,
                                          std::memory_order_relaxed));
    return true;
  }

 private:
  static constexpr std::uint64_t unit = 64;  // of a nanosecond: 9 years in 64 bits
  const std::uint64_t start_ = now_ns(), interval_, ahead_;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace grosr::sys
