// Programs as flow graphs: recursion, a relay, scattering; and recursion by spawning beside them.
// What they count is added up where all can reach it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cases/reserve_by.hpp"
#include "grosr/flow/options.hpp"
#include "grosr/flow/router.hpp"

namespace grosr::channels {

/// A graph that stays between runs, and what it counts. Not thread-safe.
class program {
 public:
  virtual ~program() = default;
  /// Throws grosr::error.
  virtual std::uint64_t run(std::uint32_t n) = 0;
  virtual std::vector<channel_stats> channels() const = 0;
  virtual runtime_stats scheduler() const = 0;
  virtual std::string dot() const = 0;
};

struct program_options {
  runtime_options runtime;
  std::uint32_t capacity = 1u << 16;  ///< of each channel
  channels::reserve_by reserve_by = channels::reserve_by::warp;
};

/// fib(n): a function that pushes two elements for each that it serves, and adds up leaves.
std::unique_ptr<program> make_fib(const device& d, const program_options& o);
/// The same recursion as tasks that start tasks, without channels.
std::unique_ptr<program> make_spawned_fib(const device& d, const program_options& o);

/// n queens: rows are placed by one function, the last `base` of them counted by another, which has
/// a channel of its own.
std::unique_ptr<program> make_queens(const device& d, const program_options& o, std::uint32_t base);

/// One element that is passed from channel to channel n times: what a step costs that waits for the
/// one before.
std::unique_ptr<program> make_relay(const device& d, const program_options& o);

/// n elements from many warps, each to one of `targets` channels, 1 to 60, as its number says: how
/// they are collected. run() returns the sum of their numbers, 0 to n - 1.
std::unique_ptr<program> make_scatter(const device& d, const program_options& o,
                                      std::uint32_t targets, aggregation how);

}  // namespace grosr::channels
