#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "kernels.hpp"

namespace grosr::prk {

problem dgemm(std::uint32_t side) {
  problem p;
  p.name = fmt::format("dgemm, {} x {}", side, side);
  const std::size_t all = std::size_t{side} * side;
  const auto column = [side](std::size_t i) { return static_cast<double>(i % side); };
  p.state = {{"a", all, column}, {"b", all, column}, {"c", all, [](std::size_t) { return 0.0; }}};
  p.parts = {{"multiply", {0, 1, 2}, {}, [side](simt::stream& s, const std::vector<double*>& at) {
                launch_multiply(s, at[0], at[1], at[2], side);
              }}};
  p.rate_key = "flop_per_s";
  p.work = 2.0 * std::pow(side, 3);
  p.check = [side](std::uint64_t iterations, const arrays& got) {
    const double expected =
        0.25 * std::pow(side, 3) * std::pow(side - 1.0, 2) * static_cast<double>(iterations);
    return compare("the sum of all elements", std::accumulate(got[2].begin(), got[2].end(), 0.0),
                   expected, 1e-8 * expected);
  };
  return p;
}

}  // namespace grosr::prk
