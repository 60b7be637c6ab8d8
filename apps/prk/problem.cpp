#include "problem.hpp"

#include <fmt/format.h>

#include <cmath>

namespace grosr::prk {

std::string compare(const char* what, double got, double expected, double epsilon) {
  // Also of no number.
  if (std::abs(got - expected) <= epsilon) return "";
  return fmt::format("{} is {}, not {}", what, got, expected);
}

std::size_t problem::flowing_bytes() const {
  std::size_t all = 0;
  for (const array_description& a : state)
    if (a.flows) all += a.bytes();
  return all;
}

}  // namespace grosr::prk
