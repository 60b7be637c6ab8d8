// `grosr graph convert` and `grosr graph info`.
#pragma once

#include <optional>
#include <string>

#include "graph/arguments.hpp"

namespace grosr::tool {

/// Writes the graph in the binary format; the exit code.
int convert_graph(const graph_arguments& graph, const std::string& to);

/// Says what it is; the exit code.
int describe_graph(const graph_arguments& graph, const std::optional<std::string>& json);

}  // namespace grosr::tool
