#include <fmt/format.h>

#include <cmath>

#include "kernels.hpp"

namespace grosr::prk {

problem transpose(std::uint32_t side) {
  problem p;
  p.name = fmt::format("transpose, {} x {}", side, side);
  const std::size_t all = std::size_t{side} * side;
  p.state = {{"a", all, [](std::size_t i) { return static_cast<double>(i); }},
             {"b", all, [](std::size_t) { return 0.0; }}};
  p.parts = {{"transpose", {0, 1}, {}, [side](simt::stream& s, const std::vector<double*>& at) {
                launch_transpose(s, at[0], at[1], side);
              }}};
  p.rate_key = "gb_per_s";
  p.work = 2.0 * static_cast<double>(p.state[0].bytes()) / 1e9;
  p.check = [side](std::uint64_t iterations, const arrays& got) {
    const auto times = static_cast<double>(iterations);
    double wrong = 0;
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x)
        wrong += std::abs(got[1][y * side + x] -
                          (times * static_cast<double>(x * side + y) + times * (times - 1) / 2));
    return compare("the absolute error", wrong, 0, 1e-8);
  };
  return p;
}

}  // namespace grosr::prk
