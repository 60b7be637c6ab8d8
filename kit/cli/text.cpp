#include "cli/text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>

#include "cli/errors.hpp"

namespace grosr::tool {
namespace {

struct scaled {
  double number;
  std::string_view prefix;
};

scaled si(double number) {
  constexpr std::array<std::string_view, 5> prefixes{"", "k", "M", "G", "T"};
  std::size_t i = 0;
  while (std::abs(number) >= 999.5 && i + 1 < prefixes.size()) {
    number /= 1000;
    ++i;
  }
  return {number, prefixes[i]};
}

struct split_key {
  std::string_view label, unit;  // unit "per_s" keeps its noun in front: "tasks_per_s"
};

split_key split(std::string_view key) {
  constexpr std::string_view rate = "_per_s";
  std::size_t end = key.ends_with(rate) ? key.size() - rate.size() : key.size();
  const std::size_t cut = key.substr(0, end).rfind('_');
  if (cut == std::string_view::npos) return {"", key};
  return {key.substr(0, cut), key.substr(cut + 1)};
}

std::string spaced(std::string_view words) {
  std::string text(words);
  for (char& c : text)
    if (c == '_') c = ' ';
  return text;
}

}  // namespace

std::string grouped(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string three_digits(double number) {
  const double size = std::abs(number);
  if (!std::isfinite(number)) return "?";
  if (size >= 999.5) return fmt::format("{}{}", number < 0 ? "-" : "", grouped(std::llround(size)));
  const int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.995 ? 2 : 3;
  return size != 0 && size < 0.0995 ? fmt::format("{:.3g}", number)
                                    : fmt::format("{:.{}f}", number, decimals);
}

std::string only_unit(std::string_view key, double number) {
  const std::string_view unit = split(key).unit;
  if (unit == "gb_per_s") {
    const scaled s = si(number * 1e9);
    return fmt::format("{} {}B/s", three_digits(s.number), s.prefix);
  }
  if (unit == "bytes") {
    const scaled s = si(number);
    return fmt::format("{} {}B", three_digits(s.number), s.prefix);
  }
  if (unit.ends_with("_per_s")) {
    const scaled s = si(number);
    const std::string noun = spaced(unit.substr(0, unit.size() - 6));
    return fmt::format("{} {}{}{}/s", three_digits(s.number), s.prefix, s.prefix.empty() ? "" : " ",
                       noun);
  }
  if (unit == "share") return fmt::format("{:.6g}%", std::floor(number * 1e6) / 1e4);  // not up
  if (unit == "percent") return three_digits(number) + "%";
  if (unit == "x") return three_digits(number) + "x";
  for (std::string_view time : {"s", "ms", "us", "ns"})
    if (unit == time) return fmt::format("{} {}", three_digits(number), unit);
  return fmt::format("{} {}", grouped(std::llround(number)), unit);  // a count of things
}

std::string with_unit(std::string_view key, double number) {
  const std::string_view label = split(key).label;
  return label.empty() ? only_unit(key, number) : spaced(label) + " " + only_unit(key, number);
}

namespace {

/// A whole number, and the letter behind it, or 0. None: it is neither.
std::optional<std::pair<std::uint64_t, char>> number_and_unit(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto left = text.data() + text.size() - end;
  if (bad != std::errc() || left > 1) return std::nullopt;
  return std::pair(number, left == 1 ? *end : '\0');
}

std::uint64_t read_scaled(std::string_view text, std::uint64_t thousand, std::uint64_t least,
                          std::uint64_t most, auto&& refuse) {
  const auto n = number_and_unit(text);
  if (!n) refuse();
  const char unit = n->second;
  const std::uint64_t factor = unit == 0                    ? 1
                               : unit == 'k' || unit == 'K' ? thousand
                               : unit == 'M'                ? thousand * thousand
                               : unit == 'G'                ? thousand * thousand * thousand
                                                            : 0;
  if (factor == 0 || n->first > most / factor || n->first * factor < least) refuse();
  return n->first * factor;
}

}  // namespace

std::uint64_t parse_number(std::string_view what, std::string_view text, std::uint64_t least,
                           std::uint64_t most) {
  return read_scaled(text, 1000, least, most, [&] {
    throw usage_error(fmt::format("{} is \"{}\"; give a whole number from {} to {}, such as {}",
                                  what, one_line(text), least, most,
                                  most >= 50000 ? "50000 or 50k" : std::to_string(least)));
  });
}

std::uint64_t parse_bytes(std::string_view what, std::string_view text, std::uint64_t least,
                          std::uint64_t most) {
  return read_scaled(text, 1024, least, most, [&] {
    throw usage_error(fmt::format("{} is \"{}\"; give bytes from {} to {}, such as {}", what,
                                  one_line(text), least, most,
                                  most >= 65536 ? "65536 or 64K" : std::to_string(most)));
  });
}

void say(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string one_line(std::string_view text) {
  std::string clean(text);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return clean;
}

}  // namespace grosr::tool
