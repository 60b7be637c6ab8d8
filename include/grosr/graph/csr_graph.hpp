// A graph in memory: compressed rows, as readers, generators and algorithms share it.
#pragma once

#include <cstdint>

#include "grosr/graph/graph_ref.hpp"
#include "grosr/graph/huge_vector.hpp"

namespace grosr::graphs {

/// Most vertices and most entries of a graph: 32-bit numbers, with room for steps past the last
/// entry.
inline constexpr std::uint64_t most_vertices = 0xffff'fffe, most_entries = 0xffff'f000;

/// Vertex v has edges to column[row[v]] to column[row[v + 1] - 1], in ascending order,
/// without v itself and without duplicates. Vertices count from 0.
struct csr_graph {
  huge_vector<std::uint32_t> row;  ///< vertices + 1
  huge_vector<vertex> column;      ///< an entry for each directed edge
  huge_vector<float> weight;       ///< of each entry, not negative and not NaN; or empty
  /// False: each edge stands in the rows of both its ends, with the same weight.
  bool directed = true;
  /// The number that the input gives to vertex 0: 1 in Matrix Market and DIMACS files.
  vertex first = 0;

  vertex vertices() const { return row.empty() ? 0 : static_cast<vertex>(row.size() - 1); }
  std::uint32_t entries() const { return static_cast<std::uint32_t>(column.size()); }
  /// As people count them: entries, or half of them.
  std::uint64_t edges() const { return directed ? entries() : entries() / 2; }
  bool weighted() const { return !weight.empty(); }
};

/// What was left out when a graph was built.
struct left_out {
  std::uint64_t loops = 0;       ///< edges from a vertex to itself
  std::uint64_t duplicates = 0;  ///< edges that there were already; the least weight stays
};

}  // namespace grosr::graphs
