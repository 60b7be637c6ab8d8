#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "stages.hpp"

namespace grosr::gesture {
namespace {

constexpr unsigned block_threads = 128;

simt::shape threads_for(std::uint32_t all) {
  if (all < block_threads)
    return {1, (all + simt::warp_size - 1) / simt::warp_size * simt::warp_size};
  return {(all + block_threads - 1) / block_threads, block_threads};
}

GROSR_DEVICE std::uint32_t this_thread() {
  return simt::block_id() * simt::block_size() + simt::thread_id();
}
GROSR_DEVICE std::int32_t in_units(float millimetres) {
  return static_cast<std::int32_t>(millimetres * units);
}
GROSR_DEVICE float in_millimetres(std::int32_t n) { return static_cast<float>(n) / units; }

struct transform {
  std::int32_t corner[3], per_column[3], per_row[3], from[3];
  const std::uint16_t* depths;
  point* cloud;
  std::uint32_t width, all;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t i = this_thread();
    if (i >= all) return;
    const std::int32_t depth = depths[i];
    if (depth < least_depth || depth > most_depth) {
      cloud[i] = {};
      return;
    }
    const std::int32_t column = static_cast<std::int32_t>(i % width);
    const std::int32_t row = static_cast<std::int32_t>(i / width);
    float at[3];
    for (unsigned a = 0; a < 3; ++a) {
      const std::int32_t ray = corner[a] + column * per_column[a] + row * per_row[a];
      at[a] = in_millimetres(((((ray + 8) >> 4) * depth + 2048) >> 12) + from[a]);
    }
    cloud[i] = {at[0], at[1], at[2], static_cast<float>(depth)};
  }
};

template <std::int32_t Radius>
struct filter {
  frame_weights weights;
  const point* left;
  const point* right;
  point* filtered;
  std::int32_t width, height;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t all = static_cast<std::uint32_t>(width * height);
    std::uint32_t i = this_thread();
    if (i >= 2 * all) return;
    point* const result = filtered + i;
    const point* const cloud = i < all ? left : right;
    if (i >= all) i -= all;
    const point middle = cloud[i];
    if (middle.depth == 0) {
      *result = {};
      return;
    }
    const std::int32_t x = in_units(middle.x), y = in_units(middle.y), z = in_units(middle.z);
    const auto depth = static_cast<std::int32_t>(middle.depth);
    const auto column = static_cast<std::int32_t>(i) % width;
    const auto row = static_cast<std::int32_t>(i) / width;
    std::int32_t sum = 0, sum_x = 0, sum_y = 0, sum_z = 0, sum_depth = 0;
    for (std::int32_t v = -Radius; v <= Radius; ++v) {
      if (row + v < 0 || row + v >= height) continue;
      for (std::int32_t u = -Radius; u <= Radius; ++u) {
        if (column + u < 0 || column + u >= width) continue;
        const point other = cloud[static_cast<std::int32_t>(i) + v * width + u];
        const std::int32_t farther = static_cast<std::int32_t>(other.depth) - depth;
        const std::int32_t left_over = depth_reach * depth_reach - farther * farther;
        if (left_over <= 0) continue;
        const std::int32_t weight =
            ((left_over * left_over) >> 16) * weights.at[v < 0 ? -v : v][u < 0 ? -u : u] >> 8;
        sum += weight;
        sum_x += weight * (in_units(other.x) - x);
        sum_y += weight * (in_units(other.y) - y);
        sum_z += weight * (in_units(other.z) - z);
        sum_depth += weight * farther;
      }
    }
    *result = {in_millimetres(x + sum_x / sum), in_millimetres(y + sum_y / sum),
               in_millimetres(z + sum_z / sum), static_cast<float>(depth + sum_depth / sum)};
  }
};

struct clear {
  cell* summary;
  GROSR_DEVICE void operator()() const {
    if (this_thread() < cells) summary[this_thread()] = {};
  }
};

struct count_points {
  const point* cloud;
  cell* summary;
  std::uint32_t all;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t i = this_thread();
    if (i >= all) return;
    const point p = cloud[i];
    const std::int32_t x = in_units(p.x) + cell_columns * cell_side / 2;
    const std::int32_t y = in_units(p.y) + cell_rows * cell_side / 2;
    const std::int32_t z = in_units(p.z);
    if (p.depth == 0 || x < 0 || x >= cell_columns * cell_side || y < 0 ||
        y >= cell_rows * cell_side || z < 0 || z >= near_screen)
      return;
    cell& c = summary[y / cell_side * cell_columns + x / cell_side];
    const auto add = [](std::uint32_t& to, std::int32_t n) {
      simt::atomic_ref(to).fetch_add(static_cast<std::uint32_t>(n), simt::relaxed);
    };
    add(c.count, 1);
    add(c.x, x % cell_side);
    add(c.y, y % cell_side);
    simt::atomic_ref(c.nearest).fetch_max(static_cast<std::uint32_t>(near_screen - z),
                                          simt::relaxed);
  }
};

template <std::int32_t Radius>
void launch_filter_of(simt::stream& s, const frame_weights& w, const frame_shape& of,
                      const point* left, const point* right, point* filtered) {
  simt::launch<block_threads>(
      s, threads_for(2 * static_cast<std::uint32_t>(of.pixels())),
      filter<Radius>{w, left, right, filtered, static_cast<std::int32_t>(of.width),
                     static_cast<std::int32_t>(of.height)});
}

}  // namespace

void launch_transform(simt::stream& s, const camera& c, const frame_shape& of,
                      const std::uint16_t* depths, point* cloud) {
  const auto all = static_cast<std::uint32_t>(of.pixels());
  transform k{{}, {}, {}, {}, depths, cloud, of.width, all};
  for (unsigned a = 0; a < 3; ++a) {
    k.corner[a] = c.corner[a];
    k.per_column[a] = c.per_column[a];
    k.per_row[a] = c.per_row[a];
    k.from[a] = c.at[a];
  }
  simt::launch<block_threads>(s, threads_for(all), k);
}

void launch_filter(simt::stream& s, const frame_weights& w, const frame_shape& of,
                   const point* left, const point* right, point* filtered) {
  switch (w.radius) {
    case 1:
      return launch_filter_of<1>(s, w, of, left, right, filtered);
    case 2:
      return launch_filter_of<2>(s, w, of, left, right, filtered);
    case 3:
      return launch_filter_of<3>(s, w, of, left, right, filtered);
    default:
      return launch_filter_of<4>(s, w, of, left, right, filtered);
  }
}

void launch_clear(simt::stream& s, cell* summary) {
  simt::launch<block_threads>(s, threads_for(cells), clear{summary});
}

void launch_summary(simt::stream& s, const frame_shape& of, const point* filtered, cell* summary) {
  const auto all = static_cast<std::uint32_t>(cameras * of.pixels());
  simt::launch<block_threads>(s, threads_for(all), count_points{filtered, summary, all});
}

}  // namespace grosr::gesture
