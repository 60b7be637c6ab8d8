// A run of an algorithm that is timed, checked and reported.
#pragma once

#include "graph/algorithm.hpp"
#include "graph/arguments.hpp"

namespace grosr::tool {

struct graph_run_options {
  graph_arguments graph;
  std::optional<std::string> device, repeat, json, output, trace;
  bool check = false;

  void add_to(CLI::App& command, const graph_algorithm& what);
};

/// The exit code.
int run_on_graph(graph_algorithm& what, const graph_run_options& o);

}  // namespace grosr::tool
