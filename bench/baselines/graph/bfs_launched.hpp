// Breadth-first search without a resident runtime, to compare with: the same steps, driven by the
// ways there are to get from one level to the next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grosr/graph/bfs.hpp"
#include "grosr/graph/device_graph.hpp"

namespace grosr::graphs {

enum class driver {
  waits,  ///< a launch a step, whose outcome the CPU waits for: the grid is as large as it should
          ///< be
  ahead,  ///< launches ahead of what the CPU knows; those behind the last step do nothing
  loop,   ///< a CUDA graph whose conditional node launches a step again and again; GPUs only
  cooperative,  ///< one kernel of one block of 1024 threads a multiprocessor, with barriers
};
std::string name_of(driver d);

class launched_bfs {
 public:
  /// As bfs. `blocks` bounds the grid; 0: as many as there can be at a time. Throws
  /// error(not_built) for a loop without a GPU.
  launched_bfs(const device_graph& g, driver d, unsigned blocks = 0);
  ~launched_bfs();

  void run(vertex source, const progress_callback& between = {});

  std::vector<std::uint32_t> distances() const;
  std::vector<vertex> parents() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
