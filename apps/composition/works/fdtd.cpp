#include <fmt/format.h>

#include "works.hpp"

namespace grosr::composition {
namespace {

arrays compute(arrays all, std::size_t n, unsigned time_steps) {
  std::vector<float>&ez = all[0], &hx = all[1], &hy = all[2];
  const auto at = [&](std::size_t y, std::size_t x) { return ez[y * n + x]; };
  for (unsigned t = 0; t < time_steps; ++t) {
    // Between two points; beyond the first and the last one is a wall, where Ez is 0.
    for (std::size_t y = 0; y <= n; ++y)
      for (std::size_t x = 0; x < n; ++x)
        hx[y * n + x] -= courant_number * ((y < n ? at(y, x) : 0) - (y != 0 ? at(y - 1, x) : 0));
    for (std::size_t y = 0; y < n; ++y)
      for (std::size_t x = 0; x <= n; ++x)
        hy[y * (n + 1) + x] +=
            courant_number * ((x < n ? at(y, x) : 0) - (x != 0 ? at(y, x - 1) : 0));
    for (std::size_t y = 0; y < n; ++y)
      for (std::size_t x = 0; x < n; ++x)
        ez[y * n + x] += courant_number * ((hy[y * (n + 1) + x + 1] - hy[y * (n + 1) + x]) -
                                           (hx[(y + 1) * n + x] - hx[y * n + x]));
  }
  return all;
}

}  // namespace

work fdtd(std::uint32_t side, unsigned time_steps) {
  work w;
  w.name = fmt::format("fdtd, {} time steps, side {}", time_steps, side);
  const std::size_t points = std::size_t{side} * side, between = points + side;
  unsigned ez = w.add_input(points), hx = w.add_input(between), hy = w.add_input(between);
  for (unsigned t = 0; t < time_steps; ++t) {
    hx = w.add_step(operation::fdtd_magnetic, {side}, {ez, hx, hy}, {between, between});
    hy = hx + 1;
    ez = w.add_step(operation::fdtd_electric, {side}, {ez, hx, hy}, {points});
  }
  w.outputs = {ez, hx, hy};
  w.plainly = [side, time_steps](arrays all) { return compute(std::move(all), side, time_steps); };
  return w;
}

}  // namespace grosr::composition
