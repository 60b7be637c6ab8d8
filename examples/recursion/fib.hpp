// Fibonacci numbers by the doubly recursive definition, without a cutoff: what a fork and a join
// cost.
#pragma once

#include <cstdint>
#include <memory>

#include "recursion/await.hpp"

namespace grosr::recursion {

inline constexpr std::uint32_t fib_most = 60;

/// Owns a runtime, which stays between runs. Not thread-safe.
class fib {
 public:
  explicit fib(const device& d, const runtime_options& o = {});
  ~fib();
  fib(const fib&) = delete;

  /// The n-th Fibonacci number, n up to fib_most. Throws grosr::error.
  std::uint64_t run(std::uint32_t n, const progress_callback& between = {});
  /// When all has come to rest: nothing lags.
  runtime_stats stats();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The same recursion on one CPU thread.
std::uint64_t fib_on_host(std::uint32_t n);

/// The number by addition from below.
std::uint64_t fib_number(std::uint32_t n);

/// How many calls the recursion makes.
inline std::uint64_t fib_calls(std::uint32_t n) { return 2 * fib_number(n + 1) - 1; }

}  // namespace grosr::recursion
