// What is said of a graph.
#pragma once

#include <cstdint>

#include "grosr/graph/csr_graph.hpp"
#include "grosr/graph/host_work.hpp"

namespace grosr::graphs {

struct graph_statistics {
  std::uint32_t greatest_degree = 0;  ///< edges of one vertex; of a directed graph, out of it
  vertex greatest = no_vertex;        ///< the first vertex with so many
  vertex without_edges = 0;           ///< vertices that no edge leaves or enters
};

graph_statistics statistics_of(const csr_graph& g, const host_work& how = {});

}  // namespace grosr::graphs
