// Graphs from a few numbers: the same for the same numbers, whatever the threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/host_threads.hpp"
#include "grosr/graph/csr_graph.hpp"

namespace grosr::graphs {

/// "chain:N" and its like: docs/guide/graphs.md, "Input". None if `text` does not begin with the
/// name of a generator and a colon. Throws error(bad_input) if it does, but what follows is wrong,
/// or the graph needs more than `memory` bytes.
std::optional<csr_graph> generate(const std::string& text, host_threads& threads,
                                  std::uint64_t memory, left_out& dropped);

}  // namespace grosr::graphs
