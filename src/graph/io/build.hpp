// What builds graphs, for work that has threads already.
#pragma once

#include "graph/host_threads.hpp"
#include "grosr/graph/io/build.hpp"

namespace grosr::graphs {

csr_graph build(edge_list edges, vertex vertices, bool directed, left_out& dropped,
                host_threads& threads);
void give_random_weights(csr_graph& g, std::uint64_t seed, host_threads& threads);

/// Each entry of a graph as an edge.
edge_list edges_of(const csr_graph& g, host_threads& threads);

/// row[v + 1] holds the number of entries of v; becomes the end of its entries. row[0] must be 0.
void add_up(huge_vector<std::uint32_t>& row, host_threads& threads);

}  // namespace grosr::graphs
