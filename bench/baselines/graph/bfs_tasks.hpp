// Breadth-first search as the plainest program of tasks: one for each vertex, which starts one for
// each neighbour that it brings nearer. What a graph library on the same runtime is compared with.
#pragma once

#include <memory>
#include <vector>

#include "grosr/graph/device_graph.hpp"

namespace grosr::graphs {

class task_bfs {
 public:
  /// As bfs.
  explicit task_bfs(const device_graph& g);
  ~task_bfs();

  void run(vertex source);

  std::vector<std::uint32_t> distances() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
