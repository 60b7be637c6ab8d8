// What the algorithms must find, computed on the CPU in the plainest way.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "grosr/graph/csr_graph.hpp"

namespace grosr::graphs {

/// Distances of vertices that were not reached.
inline constexpr std::uint32_t no_distance = ~std::uint32_t{0};
inline constexpr float no_length = std::numeric_limits<float>::infinity();

/// Edges from the source to each vertex, or no_distance. A source that is no vertex reaches none.
std::vector<std::uint32_t> bfs_distances(const csr_graph& g, vertex source);

/// The length of the shortest path from the source to each vertex, or no_length. The length of a
/// path is the sum of its weights from the source on, rounded to float after each edge; edges of
/// graphs without weights count 1. Rounded addition of a number that is not negative is monotone
/// and never makes less of a sum, so Dijkstra's algorithm finds exactly the least of these lengths,
/// bit for bit, whatever the order of work. A vertex to which only paths of infinite length lead is
/// not reached.
std::vector<float> shortest_distances(const csr_graph& g, vertex source);

/// The smallest vertex of each vertex's component; edges count in both directions.
std::vector<vertex> component_labels(const csr_graph& g);

/// rank[v] = (1 - damping) / n + damping * (sum of rank[u] / edges out of u, over all edges u to v,
/// + sum of rank[u] / n, over all u without an edge out), by iteration from 1 / n until the ranks
/// change by less than `tolerance`, summed over all vertices; they are then at most damping / (1 -
/// damping) times as much from the exact ones. 0 <= damping < 1. Stops too after as many iterations
/// as exact numbers would need at most: rounding may prevent very small changes. Uses OpenMP.
std::vector<double> pageranks(const csr_graph& g, double damping, double tolerance);

}  // namespace grosr::graphs
