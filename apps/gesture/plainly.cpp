#include "plainly.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace grosr::gesture {

frame_weights weights_of(unsigned radius) {
  frame_weights w;
  w.radius = static_cast<std::int32_t>(radius);
  const std::int32_t reach = 2 * (w.radius + 1) * (w.radius + 1);  // squared
  for (std::int32_t v = 0; v <= w.radius; ++v)
    for (std::int32_t u = 0; u <= w.radius; ++u) {
      const std::int32_t left_over = reach - u * u - v * v;
      w.at[v][u] = 256 * left_over * left_over / (reach * reach);
    }
  return w;
}

namespace plainly {

void transform(const camera& c, const frame_shape& of, const std::uint16_t* depths, point* cloud) {
  for (std::int64_t row = 0; row < of.height; ++row)
    for (std::int64_t column = 0; column < of.width; ++column) {
      const std::int64_t depth = *depths++;
      point& p = *cloud++ = {};
      if (depth < least_depth || depth > most_depth) continue;
      double at[3];
      for (unsigned a = 0; a < 3; ++a) {
        const std::int64_t ray = c.corner[a] + column * c.per_column[a] + row * c.per_row[a];
        const double ray16 = std::floor(static_cast<double>(ray) / 16 + 0.5);
        at[a] = (std::floor(ray16 * static_cast<double>(depth) / 4096 + 0.5) + c.at[a]) / units;
      }
      p = {static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]),
           static_cast<float>(depth)};
    }
}

void filter(unsigned radius, const frame_shape& of, const point* cloud, point* filtered) {
  const frame_weights weights = weights_of(radius);
  const auto width = static_cast<std::int64_t>(of.width);
  const auto height = static_cast<std::int64_t>(of.height);
  const auto reach = static_cast<std::int64_t>(radius);
  for (std::int64_t row = 0; row < height; ++row)
    for (std::int64_t column = 0; column < width; ++column) {
      const point& middle = cloud[row * width + column];
      point& p = *filtered++ = {};
      if (middle.depth == 0) continue;
      std::int64_t sum = 0, moves[4] = {};
      for (std::int64_t y = std::max(row - reach, std::int64_t{0});
           y <= std::min(row + reach, height - 1); ++y)
        for (std::int64_t x = std::max(column - reach, std::int64_t{0});
             x <= std::min(column + reach, width - 1); ++x) {
          const point& other = cloud[y * width + x];
          const auto farther = static_cast<std::int64_t>(other.depth - middle.depth);
          const std::int64_t left_over = depth_reach * depth_reach - farther * farther;
          if (left_over <= 0) continue;
          const std::int64_t weight = left_over * left_over / 65536 *
                                      weights.at[std::abs(y - row)][std::abs(x - column)] / 256;
          sum += weight;
          moves[0] += weight * static_cast<std::int64_t>((other.x - middle.x) * units);
          moves[1] += weight * static_cast<std::int64_t>((other.y - middle.y) * units);
          moves[2] += weight * static_cast<std::int64_t>((other.z - middle.z) * units);
          moves[3] += weight * farther;
        }
      const auto moved = [&](unsigned a) { return static_cast<float>(moves[a] / sum); };
      p = {middle.x + moved(0) / units, middle.y + moved(1) / units, middle.z + moved(2) / units,
           middle.depth + moved(3)};
    }
}

std::vector<cell> summary(const std::vector<point>& filtered) {
  std::vector<cell> all(cells);
  for (const point& p : filtered) {
    const double x = p.x * units + cell_columns * cell_side / 2;
    const double y = p.y * units + cell_rows * cell_side / 2, z = p.z * units;
    if (p.depth == 0 || x < 0 || y < 0 || z < 0 || x >= cell_columns * cell_side ||
        y >= cell_rows * cell_side || z >= near_screen)
      continue;
    const auto column = static_cast<std::size_t>(x / cell_side);
    const auto row = static_cast<std::size_t>(y / cell_side);
    cell& c = all[row * cell_columns + column];
    ++c.count;
    c.x += static_cast<std::uint32_t>(x - static_cast<double>(column * cell_side));
    c.y += static_cast<std::uint32_t>(y - static_cast<double>(row * cell_side));
    c.nearest = std::max(c.nearest, static_cast<std::uint32_t>(near_screen - z));
  }
  return all;
}

std::vector<point> filtered_cloud(const frame_shape& of, unsigned radius,
                                  const std::uint16_t* depths) {
  std::vector<point> cloud(of.pixels()), filtered(cameras * of.pixels());
  for (unsigned c = 0; c < cameras; ++c) {
    transform(camera_of(of, c), of, depths + c * of.pixels(), cloud.data());
    filter(radius, of, cloud.data(), filtered.data() + c * of.pixels());
  }
  return filtered;
}

}  // namespace plainly
}  // namespace grosr::gesture
