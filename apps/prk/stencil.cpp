#include <fmt/format.h>

#include <cmath>

#include "kernels.hpp"

namespace grosr::prk {

problem stencil(std::uint32_t side) {
  problem p;
  p.name = fmt::format("stencil, {} x {}, a star of radius {}", side, side, stencil_radius);
  const std::size_t all = std::size_t{side} * side;
  p.state = {
      {"in", all, [side](std::size_t i) { return static_cast<double>(i / side + i % side); }},
      {"out", all, [](std::size_t) { return 0.0; }}};
  p.parts = {{"star",
              {0, 1},
              {},
              [side](simt::stream& s, const std::vector<double*>& at) {
                launch_star(s, at[0], at[1], side);
              }},
             {"increment", {0}, {0}, [side](simt::stream& s, const std::vector<double*>& at) {
                launch_increment(s, at[0], side);
              }}};
  p.rate_key = "flop_per_s";
  const double inner = std::pow(side - 2.0 * stencil_radius, 2);
  p.work = (2 * (4 * stencil_radius + 1) + 1) * inner;
  p.check = [inner](std::uint64_t iterations, const arrays& got) {
    double norm = 0;  // elements that are not inner ones are 0
    for (const double x : got[1]) norm += std::abs(x);
    return compare("the norm", norm / inner, 2.0 * static_cast<double>(iterations), 1e-8);
  };
  return p;
}

}  // namespace grosr::prk
