#include "measure/render.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"

namespace grosr::tool {
namespace {

std::string bound_of(const row::target& t) {
  return fmt::format("{} {}{}", t.at_most ? "at most" : "at least", with_unit(t.key, t.bound),
                     t.reason.empty() ? "" : " (" + t.reason + ")");
}

/// Counts stay whole numbers.
nlohmann::ordered_json as_number(double n) {
  if (n == std::floor(n) && std::abs(n) < 0x1p53) return static_cast<std::int64_t>(n);
  return n;
}

const char* name_of(row::side side) { return side == row::side::limit ? "limit" : "baseline"; }

}  // namespace

std::string as_text(const row& r, bool judge) {
  std::string text = fmt::format("{}{}\n", r.valid() ? "  " : "! INVALID: ", r.name());
  if (!r.valid()) text += fmt::format("!     {}\n", one_line(r.wrong()));
  std::string line;
  for (const auto& [key, number] : r.values()) {
    const std::string value = with_unit(key, number);
    if (line.size() + value.size() > 88) {
      text += fmt::format("      {}\n", line);
      line.clear();
    }
    line += (line.empty() ? "" : "   ") + value;
  }
  if (!line.empty()) text += fmt::format("      {}\n", line);
  for (const auto& c : r.comparisons())
    text += fmt::format("      {:<9} {}: {}, so {}x\n", name_of(c.kind), c.what,
                        only_unit(c.key, c.number), three_digits(c.ratio));
  for (const auto& t : r.targets())
    text += fmt::format("      target    {}{}\n", bound_of(t),
                        judge ? (t.met ? ": met" : ": MISSED") : "; for whole runs on GPUs");
  for (const auto& note : r.notes()) text += fmt::format("      note      {}\n", note);
  return text;
}

std::string as_line(const row& r) {
  std::string text = fmt::format("{} {:<9}", r.valid() ? " " : "!", r.name());
  for (const auto& [key, number] : r.values()) text += "  " + with_unit(key, number);
  for (const auto& c : r.comparisons())
    text += fmt::format("  {} {} {} ({}x)", name_of(c.kind), c.what, only_unit(c.key, c.number),
                        three_digits(c.ratio));
  for (const auto& note : r.notes()) text += "  " + note;
  return text + (r.valid() ? "  checked\n" : "  WRONG: " + one_line(r.wrong()) + "\n");
}

nlohmann::ordered_json as_json(const row& r, bool judge) {
  using json = nlohmann::ordered_json;
  json j{{"name", r.name()}, {"valid", r.valid()}};
  if (!r.valid()) j["wrong"] = r.wrong();
  for (const auto& [key, number] : r.values()) j[key] = as_number(number);
  for (const auto& c : r.comparisons())
    j[c.kind == row::side::limit ? "limits" : "baselines"].push_back(
        json{{"what", c.what}, {c.key, c.number}, {"ratio", c.ratio}});
  for (const auto& t : r.targets()) {
    json goal{{"key", t.key}, {t.at_most ? "at_most" : "at_least", t.bound}};
    if (!t.reason.empty()) goal["reason"] = t.reason;
    if (judge) goal["met"] = t.met;
    j["targets"].push_back(goal);
  }
  if (!r.notes().empty()) j["notes"] = r.notes();
  return j;
}

}  // namespace grosr::tool
