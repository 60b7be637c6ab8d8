// What a search did and when, as a trace that Perfetto opens.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bfs.hpp"

namespace grosr::tool {

/// A track for each regime, and counters of the blocks that take part and of the level. The graph
/// and the device stand in it as they are named here.
nlohmann::ordered_json search_trace(const std::vector<graphs::search_step>& steps,
                                    const std::string& graph, const std::string& device);

}  // namespace grosr::tool
