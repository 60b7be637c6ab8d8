// Graphs of one shape, as large as a test says.
#pragma once

#include <random>
#include <vector>

#include "small_graphs.hpp"

namespace grosr::graphs {

inline csr_graph chain(vertex n) {
  std::vector<test_edge> edges;
  for (vertex v = 0; v + 1 < n; ++v) edges.push_back({v, v + 1});
  return make_graph(n, edges, false);
}

inline csr_graph grid(vertex side) {
  std::vector<test_edge> edges;
  for (vertex y = 0; y < side; ++y)
    for (vertex x = 0; x < side; ++x) {
      if (x + 1 < side) edges.push_back({y * side + x, y * side + x + 1});
      if (y + 1 < side) edges.push_back({y * side + x, y * side + x + side});
    }
  return make_graph(side * side, edges, false);
}

/// Some vertices with edges to very many.
inline csr_graph hubs(vertex n, vertex count, bool directed) {
  std::mt19937 random(n + count);
  std::vector<test_edge> edges;
  for (vertex i = 0; i < n * 3; ++i) {
    const vertex hub = static_cast<vertex>(random() % count);
    edges.push_back({hub, static_cast<vertex>(random() % n)});
    edges.push_back({static_cast<vertex>(random() % n), static_cast<vertex>(random() % n)});
  }
  return make_graph(n, edges, directed);
}

}  // namespace grosr::graphs
