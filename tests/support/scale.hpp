// How long tests run. GROSR_TEST_SCALE in the environment multiplies iteration counts (default 1):
// 0.1 for a quick look or a sanitizer, 10 for a night.
#pragma once

#include <algorithm>
#include <bit>
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

/// A depth whose tree has 2^depth leaves, scaled; never below `least`.
inline std::uint32_t scaled_depth(std::uint32_t depth, std::uint32_t least) {
  const auto leaves = scaled(std::uint64_t{1} << depth, std::uint64_t{1} << least);
  return static_cast<std::uint32_t>(std::bit_width(leaves) - 1);
}

/// How many times slower than usual what is built with a sanitizer runs: for spans of time that
/// must be long against what a lane does meanwhile.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr unsigned slowdown = 10;
#else
inline constexpr unsigned slowdown = 1;
#endif

}  // namespace grosr::testing
