// What a search did and when, as a trace that Perfetto opens.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "grosr/graph/bfs.hpp"

namespace grosr::tool {

/// Its events: a track for each phase, and counters of the level and of the blocks that were
/// called, the coordinator's included.
nlohmann::ordered_json search_events(const std::vector<graphs::search_step>& steps);

}  // namespace grosr::tool
