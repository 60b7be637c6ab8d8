// Numbers and times as people read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace grosr::tool {

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t n);

/// A value by its key, whose last word is the unit: ("p50_us", 3.1) -> "p50 3.10 us",
/// ("tasks_per_s", 1.2e9) -> "1.20 G tasks/s", ("bytes", 4096) -> "4.10 kB".
std::string with_unit(std::string_view key, double number);

/// The same without the words before the unit.
std::string only_unit(std::string_view key, double number);

/// Three significant digits: 0.00123, 1.23, 12.3, 1,230.
std::string three_digits(double number);

/// Reads "50000", "50k", "1M", "2G". Throws usage_error naming `what` unless it is a whole number
/// from `least` to `most`.
std::uint64_t parse_number(std::string_view what, std::string_view text, std::uint64_t least,
                           std::uint64_t most);

/// The same for bytes: "512", "8K", "64M", "4G", which are powers of two.
std::uint64_t parse_bytes(std::string_view what, std::string_view text, std::uint64_t least,
                          std::uint64_t most);

/// Writes to standard error. Where that cannot be written there is nobody to tell.
void say(std::string_view text);

/// Now, in UTC: "2025-11-21T09:39:00Z".
std::string utc_now();

/// The same text with control characters shown as '?', so that it stays one line.
std::string one_line(std::string_view text);

}  // namespace grosr::tool
