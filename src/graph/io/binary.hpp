// The binary format: docs/guide/graphs.md has its layout.
#pragma once

#include <string>
#include <string_view>

#include "graph/io/source.hpp"
#include "graph/io/text.hpp"
#include "grosr/graph/csr_graph.hpp"

namespace grosr::graphs {

bool is_binary(std::string_view head);

/// Throws error(bad_input) unless all of the file is as it must be.
csr_graph read_binary(source& from, const reading& how, host_threads& threads);

/// What is wrong with a graph, or an empty string: rows that overlap, columns that are out of range
/// or order, weights that are negative or not finite, undirected edges without their other
/// direction.
std::string broken(const csr_graph& g, host_threads& threads);

}  // namespace grosr::graphs
