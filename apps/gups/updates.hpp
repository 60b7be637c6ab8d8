// Random updates of a table that lies on several ranks, in several ways.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ranks/placement.hpp"

namespace grosr::gups {

/// What is to be done, the same in each way.
struct problem : ranks::placement {
  std::uint64_t elements = 0;     ///< of the table, a power of two; each of 8 bytes
  std::uint64_t updates = 0;      ///< of each rank
  std::uint32_t per_task = 1024;  ///< updates of a task
  std::size_t buffer_bytes = 0;   ///< of the coprocessor, for each pair of ranks
  /// Processes that each have so many ranks; null: this one. Then by messages alone.
  net::transport* processes = nullptr;
};

/// A way to do it. Made once; a round adds a number to that many elements, or takes it away again.
class way {
 public:
  virtual ~way() = default;
  virtual void round(bool back) = 0;
  /// Elements that are not zero.
  virtual std::uint64_t wrong() = 0;
  /// In a round, on average: how often the host exchanged buffers. 0 where it does not.
  virtual double exchanges() { return 0; }
  /// For each rank; nothing where none sends.
  virtual std::vector<net::rank_stats> stats() { return {}; }
};

struct named_way {
  const char *name, *text;
  std::unique_ptr<way> (*make)(const problem&);
};
const std::vector<named_way>& all_ways();

/// With buffers of so many times `p.buffer_bytes`.
std::unique_ptr<way> by_coprocessor(const problem& p, unsigned times);

}  // namespace grosr::gups
