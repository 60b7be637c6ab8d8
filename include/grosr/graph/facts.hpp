// What is said of a graph.
#pragma once

#include <cstdint>

#include "grosr/graph/graph.hpp"

namespace grosr::graphs {

struct facts {
  std::uint32_t greatest_degree = 0;  ///< edges of one vertex; of a directed graph, out of it
  vertex greatest = no_vertex;        ///< the first vertex with so many
  vertex without_edges = 0;           ///< vertices that no edge leaves or enters
};

/// With 0 threads, as many as there are processors. Throws tool::interrupt::interrupted.
facts facts_of(const graph& g, unsigned threads = 0);

}  // namespace grosr::graphs
