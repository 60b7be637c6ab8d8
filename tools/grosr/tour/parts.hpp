// The parts of the tour. A new one is a file that defines its function, and a line in parts.cpp.
#pragma once

#include <string>
#include <vector>

#include "measure/session.hpp"

namespace grosr::tool {

struct tour_part {
  const char* name;
  const char* summary;
  /// Does the work, checks it, and adds one row. `folder` exists.
  void (*run)(session&, const std::string& folder);
};

const std::vector<tour_part>& tour_parts();

void tour_words(session& s, const std::string& folder);
void tour_spawn(session& s, const std::string& folder);
void tour_join(session& s, const std::string& folder);
void tour_memory(session& s, const std::string& folder);
void tour_flow(session& s, const std::string& folder);
void tour_calls(session& s, const std::string& folder);
void tour_messages(session& s, const std::string& folder);
void tour_latency(session& s, const std::string& folder);

}  // namespace grosr::tool
