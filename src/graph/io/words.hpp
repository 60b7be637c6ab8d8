// Numbers and names in errors, and numbers that people write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace grosr::graphs {

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t n);

/// 34359738368 -> "34.4 GB".
std::string bytes_text(std::uint64_t bytes);

/// The same text with control characters shown as '?', so that it stays one line.
std::string one_line(std::string_view text);

/// "50000", "50k", "1M", "2G"; none if it is no such number, or one of more than 64 bits.
std::optional<std::uint64_t> scaled_number(std::string_view text);

}  // namespace grosr::graphs
