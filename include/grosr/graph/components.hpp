// Connected components on the resident runtime.
#pragma once

#include <memory>

#include "grosr/graph/bfs.hpp"

namespace grosr::graphs {

/// Connected components; of a directed graph the weakly connected ones: edges join both ways.
class components {
 public:
  /// As bfs; 4 bytes a vertex. `capacity` and `tuning` mean nothing here.
  components(const device_graph& g, const search_options& options = {});
  ~components();

  /// As bfs::run().
  void run(const progress_callback& between = {});

  /// Results of the last run: for each vertex, the least vertex of its component.
  std::vector<vertex> labels() const;

  runtime_stats stats() const;
  std::size_t bytes() const;  ///< device memory besides the graph and the runtime's

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
