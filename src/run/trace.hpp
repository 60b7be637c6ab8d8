// Writes what workers recorded as a trace that Perfetto opens.
#pragma once

#include <string>
#include <vector>

#include "grosr/run/detail/host_engine.hpp"

namespace grosr::run {

/// What one runtime of this process writes.
struct trace_part {
  std::string file;
  unsigned number;  ///< of those that were asked for the same file, from 1
};

/// The first one that is asked for `file` gets that; later ones "x.PROGRAM.PID.DEVICE.2.json" for
/// "x.json", and so on. Throws error(invalid_option) when it cannot be written.
trace_part trace_part_for(const std::string& file, const device& d);

/// Chrome trace event format, in JSON: a track for each worker, named by its multiprocessor, in one
/// process; a span for each run, named by its task type, with the slot of what came from the host;
/// a counter of the refs that the worker has published; an arrow from where a batch of spawned
/// tasks became ready to each run of it; marks for steals and for leaving the device. Throws
/// error(invalid_option) when the file cannot be written.
void write_perfetto(const trace_part& part, const device& d, const std::vector<task_type>& types,
                    const std::vector<trace_event>& events,
                    const std::vector<std::uint32_t>& counts, std::uint32_t capacity);

}  // namespace grosr::run
