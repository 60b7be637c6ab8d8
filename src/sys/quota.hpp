// An amount of which kernels may have so much at a time.
#pragma once

#include <atomic>
#include <cstdint>

namespace grosr::sys {

/// Any thread may call. Never more than `most` is taken, but for what force() adds.
class quota {
 public:
  explicit quota(std::uint64_t most) : most_(most) {}
  quota(const quota&) = delete;

  /// False: so much is not left, and nothing was taken.
  bool take(std::uint64_t amount) {
    std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (taken > most_ || amount > most_ - taken) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + amount, std::memory_order_relaxed));
    return true;
  }
  /// What is there already, and is not asked for.
  void force(std::uint64_t amount) { taken_.fetch_add(amount, std::memory_order_relaxed); }
  void give(std::uint64_t amount) { taken_.fetch_sub(amount, std::memory_order_relaxed); }

  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  std::uint64_t most() const { return most_; }

 private:
  const std::uint64_t most_;
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace grosr::sys
