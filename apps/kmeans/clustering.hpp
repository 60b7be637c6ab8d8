// K-means of points that lie on several ranks, in several ways.
#pragma once

#include <memory>
#include <vector>

#include "points.hpp"
#include "ranks/placement.hpp"

namespace grosr::kmeans {

/// What is to be done, the same in each way.
struct problem : ranks::placement {
  const point_set* points = nullptr;
  std::uint32_t clusters = 8, iterations = 10;
  std::uint32_t per_task = 1024;  ///< points of a task
  std::size_t buffer_bytes = 0;   ///< of the coprocessor, for each pair of ranks

  sizes size() const { return {points->dimensions, clusters, ranks}; }
};

/// A way to do it. Made once, with all sums zero.
class way {
 public:
  virtual ~way() = default;
  /// Hands the ranks their first centroids.
  virtual void begin(const centroid_list& first) = 0;
  /// All iterations.
  virtual void iterate() = 0;
  /// The centroids that the ranks have now; more than one list where they have copies.
  virtual std::vector<centroid_list> centroids() = 0;
  /// In an iteration, on average: how often the host exchanged buffers. 0 where it does not.
  virtual double exchanges() { return 0; }
  /// For each rank; nothing where none sends.
  virtual std::vector<net::rank_stats> stats() { return {}; }
};

struct named_way {
  const char *name, *text;
  std::unique_ptr<way> (*make)(const problem&);
};
const std::vector<named_way>& all_ways();

std::unique_ptr<way> by_tasks(const problem& p, net::path path);
std::unique_ptr<way> by_kernel(const problem& p);
/// With buffers of so many times `p.buffer_bytes`.
std::unique_ptr<way> by_coprocessor(const problem& p, unsigned times);

}  // namespace grosr::kmeans
