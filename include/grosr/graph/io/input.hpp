// Graphs from files and generators.
#pragma once

#include <string>

#include "grosr/graph/csr_graph.hpp"
#include "grosr/graph/host_work.hpp"

namespace grosr::graphs {

enum class symmetry { as_given, undirected };

struct input_options {
  symmetry edges = symmetry::as_given;  ///< undirected: every edge also counts the other way
  /// Weights for graphs without any: uniform in (0, 1], the same for both directions of an edge;
  /// 0: none.
  std::uint64_t random_weights = 0;
  unsigned threads = 0;  ///< as host_work has them
  work_watcher watch = {};
};

struct loaded {
  csr_graph g;
  left_out dropped;
  std::string what;           ///< "road.gr.gz (DIMACS)", "grid:1000x1000"
  double seconds = 0;         ///< from opening the file to the finished graph
  std::uint64_t bytes = 0;    ///< of the file as it is on disk; 0 for generators
  bool kept_weights = false;  ///< it had weights, and random ones were asked for
};

/// Reads a file in any of the formats, told apart by its content (gzip too), or generates a graph:
/// docs/guide/graphs.md, "Input". Throws error(bad_input): one line, with file and line number,
/// that says what was found and what to do; when memory does not suffice too.
loaded load(const std::string& file_or_generator, const input_options& options = {});

/// Writes the binary format. Throws error(write_failed) when it cannot; `path` leads to what it led
/// to before until all is written.
void write_binary(const csr_graph& g, const std::string& path, const host_work& how = {});

}  // namespace grosr::graphs
