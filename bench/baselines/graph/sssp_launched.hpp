// Shortest paths without a resident runtime, to compare with: Bellman-Ford by launches, a round
// each, of those vertices alone that came nearer in the last round (Moore's queue).
#pragma once

#include <memory>
#include <vector>

#include "grosr/graph/bfs.hpp"
#include "grosr/graph/device_graph.hpp"

namespace grosr::graphs {

class launched_sssp {
 public:
  /// As sssp. `ahead`: launches ahead of what the CPU knows, instead of waiting for each.
  launched_sssp(const device_graph& g, bool ahead);
  ~launched_sssp();

  void run(vertex source, const progress_callback& between = {});

  std::vector<float> distances() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
