// Whether a graph fits into memory, before it is allocated.
#pragma once

#include <cstdint>
#include <string>

namespace grosr::graphs {

/// What a graph of so many vertices and edges takes while it is built.
struct size_of_graph {
  std::uint64_t vertices = 0, edges = 0;
  bool weighted = false, undirected = false;

  std::uint64_t entries() const { return undirected ? 2 * edges : edges; }
  /// Bytes at most at a time, the list of edges included.
  std::uint64_t to_build() const;
  /// Bytes of the finished graph, if all its entries stay.
  std::uint64_t finished() const;
};

/// Bytes that can be allocated without pushing others out.
std::uint64_t available_memory();

/// Throws error(bad_input) unless the graph is one of at most most_vertices and most_entries,
/// whose `bytes` are available. `where`: what the error begins with.
void require(const size_of_graph& size, std::uint64_t bytes, std::uint64_t available,
             const std::string& where);

}  // namespace grosr::graphs
