// The programs of the collection, each with its input: on the ranks of a world, and by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ranks/placement.hpp"

namespace grosr::bale {

/// What is to be done, and where.
struct problem : ranks::placement {
  std::uint32_t size = 0;       ///< updates, gathers, darts, rows or vertices of all ranks
  std::uint32_t nonzeros = 10;  ///< of a row, on average
  std::uint64_t seed = 1;
};

/// Made once; may run many times.
class program {
 public:
  virtual ~program() = default;
  /// By one thread of the CPU. What the last call found is what ranks are to find.
  virtual void run_sequentially() = 0;
  /// Before the first run: copies the input to the ranks.
  virtual void begin() = 0;
  /// Before each run: forgets what the run before has found.
  virtual void clear() = 0;
  virtual void run() = 0;
  /// What is wrong with what the last run found; empty: nothing.
  virtual std::string wrong() = 0;
  /// Of a run, after run_sequentially().
  virtual double operations() const = 0;
  virtual std::vector<net::rank_stats> stats() const = 0;
};

struct named_program {
  const char *name, *text, *operations;
  std::uint32_t gpu_size, host_size;  ///< of problem, by default
  std::unique_ptr<program> (*make)(const problem&);
};
const std::vector<named_program>& all_programs();

}  // namespace grosr::bale
