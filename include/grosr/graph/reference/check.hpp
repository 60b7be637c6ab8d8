// Whether results are right. Each check returns an empty string, or a sentence about what is wrong;
// vertices have the numbers of the input there. Checks use OpenMP.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "grosr/graph/csr_graph.hpp"

namespace grosr::graphs {

/// By the rules of Graph500, which only the right distances obey. The source has distance 0 and is
/// its own parent; the vertices reached, and no others, have a parent; an edge of the graph leads
/// from it, one level up; no edge leads more than one level down or to where none was reached.
/// Names the smallest vertex at which something is wrong.
std::string wrong_bfs(const csr_graph& g, vertex source, std::span<const std::uint32_t> distance,
                      std::span<const vertex> parent);

/// Bit for bit what shortest_distances() returns, without computing it: an edge leads from each
/// parent, whose weight makes the distance out of the parent's; no edge makes a shorter one; and
/// parents lead to the source.
std::string wrong_shortest(const csr_graph& g, vertex source, std::span<const float> distance,
                           std::span<const vertex> parent);

/// Compares with component_labels().
std::string wrong_components(const csr_graph& g, std::span<const vertex> label);

/// Whether the differences from exact ranks, summed over all vertices, are at most `tolerance`
/// (give or take a hundredth: those come from pageranks()).
std::string wrong_ranks(const csr_graph& g, double damping, std::span<const float> rank,
                        double tolerance);

}  // namespace grosr::graphs
