// Writes what workers recorded as a trace that Perfetto opens.
#pragma once

#include <string>
#include <vector>

#include "grosr/run/engine.hpp"

namespace grosr::run {

/// Chrome trace event format, in JSON: a process for each SM, a track for each worker, a span for
/// each batch named by its task type, and a counter of the refs it has published. Throws
/// std::system_error when the file cannot be written.
void write_perfetto(const std::string& file, const device& d, const std::vector<task_type>& types,
                    const std::vector<trace_event>& events,
                    const std::vector<std::uint32_t>& counts, std::uint32_t capacity);

}  // namespace grosr::run
