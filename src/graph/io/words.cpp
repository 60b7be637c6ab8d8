#include "graph/io/words.hpp"

#include <fmt/format.h>

#include <charconv>

namespace grosr::graphs {

std::string grouped(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"B", "kB", "MB", "GB", "TB"};
  double n = static_cast<double>(bytes);
  std::size_t i = 0;
  for (; n >= 999.5 && i + 1 < std::size(units); ++i) n /= 1000;
  const int decimals = i == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", n, decimals, units[i]);
}

std::string one_line(std::string_view text) {
  std::string clean(text);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return clean;
}

std::optional<std::uint64_t> scaled_number(std::string_view text) {
  std::uint64_t n = 0;
  const char* const end = text.data() + text.size();
  const auto [at, bad] = std::from_chars(text.data(), end, n);
  if (bad != std::errc() || end - at > 1) return std::nullopt;
  const char unit = at == end ? '\0' : *at;
  const std::uint64_t factor = unit == '\0'                 ? 1
                               : unit == 'k' || unit == 'K' ? 1'000
                               : unit == 'M'                ? 1'000'000
                               : unit == 'G'                ? 1'000'000'000
                                                            : 0;
  if (factor == 0 || n > ~std::uint64_t{0} / factor) return std::nullopt;
  return n * factor;
}

}  // namespace grosr::graphs
