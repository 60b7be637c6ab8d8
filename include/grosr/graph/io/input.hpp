// Graphs from files and generators.
#pragma once

#include <functional>
#include <string>

#include "grosr/graph/graph.hpp"

namespace grosr::graphs {

enum class symmetry { as_given, undirected };

struct input_options {
  symmetry edges = symmetry::as_given;  ///< undirected: every edge also counts the other way
  /// Weights for graphs without any: uniform in (0, 1], the same for both directions of an edge;
  /// 0: none.
  std::uint64_t random_weights = 0;
  unsigned threads = 0;  ///< 0: as many as there are processors
};

struct loaded {
  graph g;
  left_out dropped;
  std::string what;           ///< "road.gr.gz (DIMACS)", "grid:1000x1000"
  double seconds = 0;         ///< from opening the file to the finished graph
  std::uint64_t bytes = 0;    ///< of the file as it is on disk; 0 for generators
  bool kept_weights = false;  ///< it had weights, and random ones were asked for
};

/// Reads a file in any of the formats, told apart by its content (gzip too), or generates a graph:
/// docs/graphs.md, "Input". Shows progress. Throws tool::usage_error: one line, with file and line
/// number, that says what was found and what to do; when memory does not suffice too. May be called
/// by several threads with options.threads == 1.
loaded load(const std::string& file_or_generator, const input_options& options = {});

/// Writes the binary format. Throws tool::usage_error when it cannot; a file half written is
/// removed.
void write_binary(const graph& g, const std::string& path);

}  // namespace grosr::graphs
