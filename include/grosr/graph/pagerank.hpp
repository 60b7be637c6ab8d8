// PageRank on the resident runtime.
#pragma once

#include <memory>

#include "grosr/graph/bfs.hpp"

namespace grosr::graphs {

struct pagerank_options {
  search_options search = {};
  float damping = 0.85f;    ///< from 0, below 1
  float tolerance = 1e-4f;  ///< how much all ranks together may be wrong, but for rounding
};

class pagerank {
 public:
  /// As bfs; 12 bytes a vertex, and 8 for each that has more than 32 edges. Throws
  /// error(invalid_option) for a damping or tolerance out of range.
  pagerank(const device_graph& g, const pagerank_options& options = {});
  ~pagerank();

  /// As bfs::run().
  void run(const progress_callback& between = {});

  /// Results of the last run: they add up to 1. What vertices without edges out would pass on goes
  /// to all vertices evenly.
  std::vector<float> ranks() const;

  std::uint32_t rounds() const;  ///< of the last run
  runtime_stats stats() const;
  std::size_t bytes() const;  ///< device memory besides the graph and the runtime's

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
