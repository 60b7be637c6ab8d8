// Work of the host on a graph: on how many threads, and who watches it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace grosr::graphs {

/// How far it is: `done` of the `steps` of a stage; 0 steps: how many there are is not known.
struct work_progress {
  std::string_view stage;  ///< "reading roads.gr, MB"; or empty
  std::uint64_t done, steps;
};

/// Called again and again while work goes on, by the thread that asked for it and by no other. What
/// it throws ends the work, and comes out of the function that was asked.
using work_watcher = std::function<void(const work_progress&)>;

struct host_work {
  unsigned threads = 0;  ///< 0: as many as there are processors
  work_watcher watch = {};
};

}  // namespace grosr::graphs
