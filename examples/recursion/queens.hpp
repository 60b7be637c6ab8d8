// N queens: in how many ways they stand on a board of N by N, none attacking another.
#pragma once

#include <cstdint>
#include <memory>

#include "recursion/await.hpp"

namespace grosr::recursion {

inline constexpr std::uint32_t queens_most = 23;       ///< the largest board whose number is here
inline constexpr std::uint32_t queens_most_base = 12;  ///< rows counted without forks

/// Owns a runtime, which stays between runs. Not thread-safe.
class queens {
 public:
  explicit queens(const device& d, const runtime_options& o = {});
  ~queens();
  queens(const queens&) = delete;

  /// All solutions for 1 to queens_most queens; a task counts the last `base` rows, 0 to
  /// queens_most_base, without forks. Throws grosr::error.
  std::uint64_t run(std::uint32_t n, std::uint32_t base, const progress_callback& between = {});
  /// When all has come to rest: nothing lags.
  runtime_stats stats();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The same on one CPU thread, by plain recursion, without symmetry.
std::uint64_t queens_on_host(std::uint32_t n);

/// The published number (OEIS A000170), n from 1 to queens_most.
std::uint64_t queens_number(std::uint32_t n);

}  // namespace grosr::recursion
