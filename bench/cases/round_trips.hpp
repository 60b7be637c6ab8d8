// One task, or a dependent pair, submitted and seen complete: what `latency` and `submit` measure.
#pragma once

#include <optional>

#include "measure/session.hpp"

namespace grosr::tool {

/// Targets of p50, in times the ping-pong.
struct round_trip_goal {
  double times;
  const char* reason;
};

/// The same without a runtime, in microseconds.
struct launched_round_trips {
  double one;   ///< a launch and a wait
  double pair;  ///< two launches, one wait
  std::string wrong;
};

/// Measured before a runtime is resident.
launched_round_trips measure_launched_round_trips(session& s);

/// Adds the rows, beside the ping-pong and what else there is.
void round_trip_rows(session& s, double ping_pong_us, round_trip_goal ticket, round_trip_goal pair,
                     const std::optional<launched_round_trips>& launched = std::nullopt);

}  // namespace grosr::tool
