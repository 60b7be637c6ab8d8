// Shortest paths from one vertex on the resident runtime.
#pragma once

#include <memory>

#include "grosr/graph/bfs.hpp"

namespace grosr::graphs {

struct sssp_options {
  search_options search = {};
  /// How much farther each wave goes than the one before; 0: chosen by the weights and degrees.
  float delta = 0;
};

/// Not thread-safe. Waits between searches as bfs does.
class sssp {
 public:
  /// As bfs. Edges of a graph without weights are 1 long.
  sssp(const device_graph& g, const sssp_options& options = {});
  ~sssp();

  /// As bfs::run().
  void run(vertex source, const progress_callback& between = {});

  /// Results of the last run: the length of the shortest path to each vertex, the least float sum
  /// over all paths, added from the source on (infinity: not reached); and parents in a tree of
  /// such paths (no_vertex). The same from run to run but for parents over edges of length 0.
  std::vector<float> distances() const;
  std::vector<vertex> parents() const;

  std::uint32_t waves() const;  ///< of the last run
  runtime_stats stats() const;
  std::size_t bytes() const;  ///< device memory besides the graph and the runtime's

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
