// The readers of lines: one body, compiled for each form, as this is where the time goes.
#include "graph/io/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace grosr::graphs {
namespace {

bool begins_comment(char c) { return c == '#' || c == '%'; }
bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

const char* end_of_line(const char* at, const char* end) {
  return static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
}

[[noreturn, gnu::cold]] void refuse_vertex(const char* at, const char* end, const line_form& form) {
  const char* behind = at;
  std::uint64_t n = 0;
  if (*at == '\n') throw bad_line{fmt::format("ends too early; {}", form.is)};
  if (!is_digit(*at)) throw bad_line{fmt::format("{} is no vertex; {}", quoted(at, end), form.is)};
  if (read_number(behind, end, n) && n < form.first)
    throw bad_line{fmt::format("vertex {} is out of range; they count from {}", n, form.first)};
  while (is_digit(*behind)) ++behind;
  const std::string shown(at, std::min(behind, at + 40));
  throw bad_line{fmt::format("vertex {} is out of range; {}", shown, form.limit)};
}

[[noreturn, gnu::cold]] void refuse_word(const char* at, const char* end, const line_form& form) {
  throw bad_line{fmt::format("{} is too much; {}", quoted(at, end), form.is)};
}

vertex read_vertex(const char*& at, const char* end, const line_form& form) {
  const char* const begin = at;
  std::uint64_t n = 0;
  for (; is_digit(*at); ++at) n = n * 10 + static_cast<unsigned char>(*at - '0');
  if (at == begin || at - begin > 18 || n - form.first >= form.vertices) [[unlikely]] {
    at = begin;  // more digits may be zeros
    if (!read_number(at, end, n) || n - form.first >= form.vertices)
      refuse_vertex(begin, end, form);
  }
  return static_cast<vertex>(n - form.first);
}

/// What strtof makes of a number: zero, or infinity, where it is too small or large for a float.
[[gnu::cold]] float read_extreme(const char* at, const char* behind) {
  return std::strtof(std::string(at, behind).c_str(), nullptr);
}

float read_weight(const char*& at, const char* end, const line_form& form) {
  const char* begin = at;
  std::uint64_t n = 0;
  for (; is_digit(*at); ++at) n = n * 10 + static_cast<unsigned char>(*at - '0');
  if (at != begin && at - begin <= 18 && (*at == '\n' || is_blank(*at)))
    return static_cast<float>(n);
  at = begin;
  if (*begin == '+' && begin[1] != '-') ++begin;
  float w = 0;
  const auto [behind, bad] = std::from_chars(begin, end, w);
  if (bad == std::errc::invalid_argument)
    throw bad_line{fmt::format("{} is no weight; {}", quoted(at, end), form.is)};
  if (bad == std::errc::result_out_of_range) w = read_extreme(begin, behind);
  if (std::isnan(w) || std::isinf(w))
    throw bad_line{fmt::format("weight {} is no finite 32-bit number; give one up to 3.4e38",
                               quoted(at, end))};
  if (w < 0) throw bad_line{fmt::format("weight {} is negative; give 0 or more", quoted(at, end))};
  at = behind;
  return std::fabs(w);  // of -0
}

template <bool Arcs, bool Commas, bool Weighted>
struct line_reader {
  bool operator()(const char*& at, const char* end, const line_form& form, weighted_edge& e) const;
};

template <bool Arcs, bool Commas, bool Weighted>
inline bool line_reader<Arcs, Commas, Weighted>::operator()(const char*& at, const char* end,
                                                            const line_form& form,
                                                            weighted_edge& e) const {
  skip_blanks(at);
  if (*at == '\n') return false;
  if constexpr (Arcs) {
    const char kind = *at, next = at[1];
    const bool alone = next == '\n' || is_blank(next);
    if (kind == 'c' && alone) {
      at = end_of_line(at, end);
      return false;
    }
    if (kind != 'a' || !alone)
      throw bad_line{fmt::format("{} is no line of a graph; {}", quoted(at, end), form.is)};
    ++at;
    skip_blanks(at);
  } else if (begins_comment(*at)) {
    at = end_of_line(at, end);
    return false;
  }
  const auto next_field = [&] {
    const char* const before = at;
    skip_blanks(at);
    if (Commas && *at == ',') {
      ++at;
      skip_blanks(at);
    } else if (at == before && *at != '\n' && (Arcs || !begins_comment(*at))) {
      refuse_word(at, end, form);
    }
  };
  e.ends.from = read_vertex(at, end, form);
  next_field();
  e.ends.to = read_vertex(at, end, form);
  const char* const behind = at;
  next_field();
  const bool ends = *at == '\n' || (!Arcs && begins_comment(*at));
  if constexpr (Weighted) {
    if (ends) throw bad_line{form.no_weight};
    e.weight = read_weight(at, end, form);
    skip_blanks(at);
    if (*at != '\n' && (Arcs || !begins_comment(*at))) refuse_word(at, end, form);
  } else {
    if (!ends) throw bad_line{fmt::format("{} {}", quoted(at, end), form.one_weight)};
    if (std::find(behind, at, ',') != at) refuse_word(behind, end, form);
  }
  if (*at != '\n') at = end_of_line(at, end);
  return true;
}

/// Calls f(reader) with the reader of this form.
template <class F>
auto with_reader(const line_form& form, F&& f) {
  if (form.arcs) return f(line_reader<true, false, true>());
  if (form.commas)
    return form.weighted ? f(line_reader<false, true, true>())
                         : f(line_reader<false, true, false>());
  return form.weighted ? f(line_reader<false, false, true>())
                       : f(line_reader<false, false, false>());
}

}  // namespace

std::string quoted(const char* at, const char* end) {
  constexpr std::ptrdiff_t longest = 40;
  std::string word = "\"";
  const char* p = at;
  for (; p != end && *p != '\n' && !is_blank(*p) && p - at < longest; ++p)
    word += *p < 0x20 || *p == 0x7f ? '?' : *p;  // bytes of UTF-8 too: words may be cut inside one
  if (p - at == longest) word += "...";
  return word + "\"";
}

bool read_number(const char*& at, const char* end, std::uint64_t& n) {
  const auto [behind, bad] = std::from_chars(at, end, n);
  if (bad != std::errc()) return false;
  at = behind;
  return true;
}

bool read_line(const char*& at, const char* end, const line_form& form, weighted_edge& e) {
  return with_reader(form, [&](auto read) { return read(at, end, form, e); });
}

lines_read read_lines(std::string_view lines, const line_form& form, edge_list& to) {
  lines_read result;
  const char* const end = lines.data() + lines.size();
  vertex greatest = 0;
  const auto loop = [&](auto read) {
    weighted_edge e{};
    for (const char* at = lines.data(); at != end; ++at) {
      ++result.lines;
      if (!read(at, end, form, e)) continue;
      ++result.edges;
      greatest = std::max(greatest, std::max(e.ends.from, e.ends.to));
      if (form.weighted)
        to.add(e.ends, e.weight);
      else
        to.add(e.ends);
    }
  };
  try {
    with_reader(form, loop);
  } catch (bad_line& bad) {
    result.wrong = std::move(bad.what);
  }
  result.vertices = result.edges == 0 ? 0 : std::uint64_t{greatest} + 1;
  return result;
}

std::uint64_t line_of_edge(std::string_view lines, const line_form& form, std::uint64_t n) {
  const char* const end = lines.data() + lines.size();
  weighted_edge e{};
  std::uint64_t line = 0;
  for (const char* at = lines.data(); at != end; ++at) {
    ++line;
    if (read_line(at, end, form, e) && n-- == 0) break;
  }
  return line;
}

}  // namespace grosr::graphs
