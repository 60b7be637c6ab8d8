// Rows of programs that do the same in several ways. A way has a `name` and a `text`.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ranks/messages.hpp"

namespace grosr::ways {

/// Those that were named, or all.
template <class Way>
std::vector<const Way*> chosen(const std::vector<Way>& all, const std::vector<std::string>& named) {
  std::vector<const Way*> ways;
  for (const Way& way : all)
    if (named.empty() || std::find(named.begin(), named.end(), way.name) != named.end())
      ways.push_back(&way);
  return ways;
}

/// Of a value of a way.
template <class Way>
std::string key_of(const Way& way, const char* what) {
  std::string key = fmt::format("{}_{}", way.name, what);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

template <class Way>
bool is_messages(const Way& way) {
  return way.name == std::string("messages");
}

/// What messages took, of which all together made so many updates.
inline void set_messages(tool::row& r, const std::vector<net::rank_stats>& ranks, double updates) {
  const ranks::messages all(ranks);
  all.add_to(r, "words_an_update", all.words, updates);
}

/// Sets the last way beside the others, by its value of that name: the kernel is the limit.
template <class Way>
void compare_last(tool::row& r, const std::vector<const Way*>& ways, const char* what) {
  const std::string key = key_of(*ways.back(), what);
  for (const Way* way : ways) {
    if (way == ways.back()) continue;
    const double rate = r.value(key_of(*way, what));
    if (way->name == std::string("kernel"))
      r.limit(way->text, key, rate);
    else
      r.baseline(way->text, key, rate);
  }
}

}  // namespace grosr::ways
