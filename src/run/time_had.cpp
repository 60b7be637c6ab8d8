#include "run/time_had.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace grosr::run {
namespace {

std::optional<processor_use> use_of(long thread) {
  const std::string folder = "/proc/self/task/" + std::to_string(thread);
  std::int64_t ran = 0, waited = 0;  // waits that have ended
  if (!(std::ifstream(folder + "/schedstat") >> ran >> waited)) return std::nullopt;
  std::string line;
  std::getline(std::ifstream(folder + "/stat"), line);
  const std::size_t name_ends = line.rfind(')');
  if (name_ends == std::string::npos || name_ends + 2 >= line.size()) return std::nullopt;
  return processor_use{std::chrono::nanoseconds(ran), std::chrono::nanoseconds(waited),
                       line[name_ends + 2] == 'R'};
}

}  // namespace

void time_had::begin(clock::time_point now) {
  began_ = now;
  accounts_.clear();
}

std::chrono::nanoseconds time_had::until(clock::time_point now, const std::vector<long>& threads) {
  std::chrono::nanoseconds least = now - began_;
  for (const long thread : threads) {
    const auto use = use_of(thread);
    const auto [found, is_new] = accounts_.try_emplace(thread, account{now, {}, {}});
    account& a = found->second;
    const std::chrono::nanoseconds since = now - a.at;
    std::chrono::nanoseconds had = since;
    if (use && !is_new)
      had = use->ready ? use->ran - a.use.ran : since - (use->waited - a.use.waited);
    a.had += std::clamp(had, std::chrono::nanoseconds(0), since);
    a.at = now;
    a.use = use.value_or(processor_use{});
    least = std::min(least, a.had);
  }
  return least;
}

}  // namespace grosr::run
