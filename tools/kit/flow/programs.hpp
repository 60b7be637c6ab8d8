// Programs as flow graphs: recursion whose leaves add up where all can reach it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "grosr/run/graph_plan.hpp"

namespace grosr::flow {

/// Who shares a reservation, of the lanes that push together.
enum class pushes { together, one_by_one };

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
  flow::pushes pushes = flow::pushes::together;
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

}  // namespace grosr::flow
