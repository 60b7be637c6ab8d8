// Breadth-first search without a scheduler, to compare with: the very search of bfs, waves and
// steps, as one kernel that is launched for it and ends with it.
#pragma once

#include <memory>
#include <vector>

#include "grosr/graph/device_graph.hpp"

namespace grosr::graphs {

class kernel_bfs {
 public:
  /// As bfs. `blocks`: that take part, at most as many as can be there at a time; 0: that many.
  explicit kernel_bfs(const device_graph& g, unsigned blocks = 0);
  ~kernel_bfs();

  void run(vertex source);

  std::vector<std::uint32_t> distances() const;
  std::vector<vertex> parents() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
