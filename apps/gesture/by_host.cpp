// All stages on the processors of the machine, by OpenMP where the compiler has it. Points lie in
// planes, each of which has one coordinate, so that the compiler can compute several at a time.
#include <algorithm>
#include <cstdlib>

#include "ways.hpp"

namespace grosr::gesture {
namespace {

using number = std::int32_t;

/// x, y, z and depth of the points of a camera, in units; a border of most_radius points without
/// readings around them.
struct planes {
  std::size_t pitch, size;
  std::vector<number> of[4];

  explicit planes(const frame_shape& s)
      : pitch(s.width + 2 * most_radius), size(pitch * (s.height + 2 * most_radius)) {
    for (auto& p : of) p.resize(size);
  }
  number* row(unsigned plane, std::size_t y) {
    return of[plane].data() + (y + most_radius) * pitch + most_radius;
  }
};

class by_host final : public way {
 public:
  explicit by_host(const setup& s) : s_(s), weights_(weights_of(s.radius)), summary_(cells) {
    for (unsigned c = 0; c < cameras; ++c) {
      cameras_[c] = camera_of(s.shape(), c);
      clouds_.emplace_back(s.shape());
    }
  }

  run_usage run(const course& c, delivery& to) override {
    return run_here(c, [&](feed& from) {
      while (const auto t = from.next()) {
        compute(s_.frames.frame(t->number % s_.frames.frames));
        to.summary(*t, summary_.data());
      }
    });
  }

 private:
  void compute(const std::uint16_t* depths) {
    const auto height = static_cast<std::int64_t>(s_.shape().height);
    const std::size_t width = s_.shape().width;
    std::fill(summary_.begin(), summary_.end(), cell{});
#pragma omp parallel
    {
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < cameras * height; ++i) {
        const auto y = static_cast<std::size_t>(i % height);
        transform(cameras_[static_cast<std::size_t>(i / height)],
                  clouds_[static_cast<std::size_t>(i / height)],
                  depths + static_cast<std::size_t>(i) * width, y);
      }
      std::vector<cell> mine(cells);
      std::vector<number> row(9 * width);
#pragma omp for schedule(dynamic, 4)
      for (std::int64_t i = 0; i < cameras * height; ++i) {
        const auto y = static_cast<std::size_t>(i % height);
        filter(clouds_[static_cast<std::size_t>(i / height)], y, row.data());
        add(row.data(), mine);
      }
#pragma omp critical
      for (std::size_t i = 0; i < cells; ++i) {
        summary_[i].count += mine[i].count;
        summary_[i].x += mine[i].x;
        summary_[i].y += mine[i].y;
        summary_[i].nearest = std::max(summary_[i].nearest, mine[i].nearest);
      }
    }
  }

  void transform(const camera& c, planes& cloud, const std::uint16_t* depths,
                 std::size_t row) const {
    const std::size_t width = s_.shape().width;
    number* const depth = cloud.row(3, row);
    for (std::size_t u = 0; u < width; ++u)
      depth[u] = depths[u] < least_depth || depths[u] > most_depth ? 0 : depths[u];
    for (unsigned a = 0; a < 3; ++a) {
      const number from = c.at[a], step = c.per_column[a];
      const number ray = c.corner[a] + static_cast<number>(row) * c.per_row[a] + 8;
      number* const to = cloud.row(a, row);
      for (std::size_t u = 0; u < width; ++u)
        to[u] = ((((ray + static_cast<number>(u) * step) >> 4) * depth[u] + 2048) >> 12) + from;
    }
  }

  /// A row of points: x, y, z, depth. Neighbours are the outer loops, so that the inner one goes
  /// along the row.
  void filter(planes& cloud, std::size_t row, number* result) const {
    const std::size_t width = s_.shape().width;
    const number* const depth = cloud.row(3, row);
    const number* const middle[3] = {cloud.row(0, row), cloud.row(1, row), cloud.row(2, row)};
    number* const sum = result + 4 * width;
    std::fill(result, result + 9 * width, 0);
    const number reach = weights_.radius;
    for (number v = -reach; v <= reach; ++v)
      for (number u = -reach; u <= reach; ++u) {
        const std::ptrdiff_t to = v * static_cast<std::ptrdiff_t>(cloud.pitch) + u;
        const number nearness = weights_.at[std::abs(v)][std::abs(u)];
        for (std::size_t i = 0; i < width; ++i) {
          const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) + to;
          // Beyond the reach the square may be anything that is not below it.
          const number farther = std::clamp(depth[at] - depth[i], -depth_reach, depth_reach);
          const number left_over = depth_reach * depth_reach - farther * farther;
          const number weight = ((left_over * left_over) >> 16) * nearness >> 8;
          sum[i] += weight;
          // Those without weight may be too far to be multiplied, but by 0.
          result[i] += weight * (middle[0][at] - middle[0][i]);
          result[width + i] += weight * (middle[1][at] - middle[1][i]);
          result[2 * width + i] += weight * (middle[2][at] - middle[2][i]);
          result[3 * width + i] += weight * farther;
        }
      }
    for (std::size_t i = 0; i < width; ++i) {
      if (depth[i] == 0) {
        result[3 * width + i] = 0;
        continue;
      }
      for (unsigned a = 0; a < 3; ++a)
        result[a * width + i] = middle[a][i] + result[a * width + i] / sum[i];
      result[3 * width + i] = depth[i] + result[3 * width + i] / sum[i];
    }
  }

  void add(const number* row, std::vector<cell>& to) const {
    const std::size_t width = s_.shape().width;
    for (std::size_t i = 0; i < width; ++i) {
      const number x = row[i] + cell_columns * cell_side / 2;
      const number y = row[width + i] + cell_rows * cell_side / 2, z = row[2 * width + i];
      if (row[3 * width + i] == 0 || x < 0 || x >= cell_columns * cell_side || y < 0 ||
          y >= cell_rows * cell_side || z < 0 || z >= near_screen)
        continue;
      cell& c = to[static_cast<std::size_t>(y / cell_side * cell_columns + x / cell_side)];
      ++c.count;
      c.x += static_cast<std::uint32_t>(x % cell_side);
      c.y += static_cast<std::uint32_t>(y % cell_side);
      c.nearest = std::max(c.nearest, static_cast<std::uint32_t>(near_screen - z));
    }
  }

  const setup s_;
  const frame_weights weights_;
  camera cameras_[gesture::cameras];
  std::vector<planes> clouds_;
  std::vector<cell> summary_;
};

}  // namespace

std::unique_ptr<way> make_host(const setup& s) { return std::make_unique<by_host>(s); }

}  // namespace grosr::gesture
