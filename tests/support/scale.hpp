// How long tests run. GROSR_TEST_SCALE in the environment multiplies iteration counts (default 1):
// 0.1 for a quick look or a sanitizer, 10 for a night.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace grosr::testing {

inline double scale() {
  const char* text = std::getenv("GROSR_TEST_SCALE");
  const double value = text != nullptr ? std::strtod(text, nullptr) : 1.0;
  return value > 0 ? value : 1.0;
}

/// n scaled, but never below `least`: a property that needs 1000 schedules says scaled(1000, 1000).
inline std::uint64_t scaled(std::uint64_t n, std::uint64_t least = 1) {
  return std::max(least, static_cast<std::uint64_t>(static_cast<double>(n) * scale()));
}

}  // namespace grosr::testing
