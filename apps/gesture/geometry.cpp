#include "geometry.hpp"

#include <cmath>

namespace grosr::gesture {

camera camera_of(const frame_shape& s, unsigned number) {
  constexpr double one = 1 << 20;
  constexpr double yaw = 1.2;          // radians, from the screen's normal towards its middle
  const double focal = 0.9 * s.width;  // in pixels: 58 degrees are seen
  const double side = number == 0 ? 1 : -1;
  // Columns of the rotation: the camera's x, y and z, on the screen's axes.
  const double right[3] = {std::cos(yaw), 0, -side * std::sin(yaw)};
  const double down[3] = {0, 1, 0};
  const double ahead[3] = {side * std::sin(yaw), 0, std::cos(yaw)};
  const double x = (1.0 - s.width) / (2 * focal), y = (1.0 - s.height) / (2 * focal);
  camera c{};
  for (unsigned i = 0; i < 3; ++i) {
    const auto fixed = [](double v) { return static_cast<std::int32_t>(std::lround(v * one)); };
    c.corner[i] = fixed(right[i] * x + down[i] * y + ahead[i]);
    c.per_column[i] = fixed(right[i] / focal);
    c.per_row[i] = fixed(down[i] / focal);
  }
  c.at = {static_cast<std::int32_t>(-side * 700 * units), 0, -30 * units};
  return c;
}

}  // namespace grosr::gesture
