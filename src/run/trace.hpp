// Writes what workers recorded as a trace that Perfetto opens.
#pragma once

#include <string>
#include <vector>

#include "grosr/run/detail/host_engine.hpp"

namespace grosr::run {

/// The file that a runtime of this process should write when `file` is asked for: the first one
/// that itself, later ones "x.2.json" for "x.json" and so on. Throws error(invalid_option) when it
/// cannot be written.
std::string trace_file_for(const std::string& file);

/// Chrome trace event format, in JSON: a process for each SM, a track for each worker, a span for
/// each batch named by its task type, and a counter of the refs it has published. Throws
/// error(invalid_option) when the file cannot be written.
void write_perfetto(const std::string& file, const device& d, const std::vector<task_type>& types,
                    const std::vector<trace_event>& events,
                    const std::vector<std::uint32_t>& counts, std::uint32_t capacity);

}  // namespace grosr::run
