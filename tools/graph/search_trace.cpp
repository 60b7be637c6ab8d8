#include "graph/search_trace.hpp"

#include <nlohmann/json.hpp>

namespace grosr::tool {

nlohmann::ordered_json search_events(const std::vector<graphs::search_step>& steps) {
  using json = nlohmann::ordered_json;
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  json events = json::array();
  static constexpr const char* tracks[] = {"a wave of one block", "a wave of several blocks",
                                           "levels, by all blocks"};
  events.push_back({{"ph", "M"},
                    {"pid", 0},
                    {"name", "process_name"},
                    {"args", {{"name", "breadth-first search"}}}});
  for (int i = 0; i < 3; ++i)
    events.push_back({{"ph", "M"},
                      {"pid", 0},
                      {"tid", i},
                      {"name", "thread_name"},
                      {"args", {{"name", tracks[i]}}}});
  for (const graphs::search_step& s : steps) {
    const bool alone = s.how == graphs::phase::alone;
    events.push_back({{"ph", "X"},
                      {"pid", 0},
                      {"tid", static_cast<int>(s.how)},
                      {"name", s.name},
                      {"ts", us(s.began)},
                      {"dur", us(s.ended - s.began)},
                      {"args", {{"level", s.level}, {"chunks", s.chunks}}}});
    const auto count = [&](const char* name, std::uint32_t value) {
      events.push_back({{"ph", "C"},
                        {"pid", 0},
                        {"name", name},
                        {"ts", us(s.began)},
                        {"args", {{name, value}}}});
    };
    count("blocks called", alone ? 1 : s.members + 1);
    count("level", s.level);
  }
  return events;
}

}  // namespace grosr::tool
