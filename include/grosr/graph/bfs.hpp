// Breadth-first search on the resident runtime.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grosr/graph/device_graph.hpp"
#include "grosr/graph/tuning.hpp"
#include "grosr/run/options.hpp"

namespace grosr::graphs {

/// Called some twenty times a second while a search runs; what it throws ends that, and no other
/// can be run then.
using progress_callback = std::function<void()>;

struct search_options {
  runtime_options runtime = {};
  /// Blocks that take part besides the coordinator, at most; 0: all there are.
  unsigned members = 0;
  std::uint32_t capacity = 0;  ///< vertices a frontier's queue holds; 0: half of all
  wave_tuning tuning = {};
};

/// The blocks that work at a time: see docs/internals/graphs.md.
enum class phase {
  alone,     ///< a wave of one block
  together,  ///< a wave of several
  levels,    ///< a step of the whole team
};

/// A part of the last search. Nanoseconds since its first one began.
struct search_step {
  std::string name;
  phase how;
  std::uint64_t began, ended;
  std::uint32_t level;   ///< of a step; the last one that a wave reached
  std::uint32_t chunks;  ///< that a step was divided into
  std::uint32_t
      members;  ///< besides the coordinator: called for a step; there at the end of a wave
};

/// Not thread-safe. Between searches a block waits for the next one, on GPUs for 10 ms; so long the
/// destructor may take.
class bfs {
 public:
  /// Takes device memory: see bytes(). The graph must live as long. Throws grosr::error.
  bfs(const device_graph& g, const search_options& options = {});
  ~bfs();

  /// Searches from `source` (counted from 0, below vertices()). Returns when the labels are there.
  void run(vertex source, const progress_callback& between = {});

  /// Results of the last search: hops from the source (~0: not reached), and parents in a tree
  /// (no_vertex).
  std::vector<std::uint32_t> distances() const;
  std::vector<vertex> parents() const;

  std::vector<search_step> steps() const;  ///< its first ones, 512 or some more
  runtime_stats stats() const;
  std::size_t bytes() const;  ///< device memory besides the graph and the runtime's

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::graphs
