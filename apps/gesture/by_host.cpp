// All stages on the processors of the machine, by OpenMP where the compiler has it. Points lie in
// planes, each of which has one coordinate, so that the compiler can compute several at a time.
#include <algorithm>
#include <cstdlib>

#ifdef _OPENMP
#include <omp.h>
#endif

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

/// Also for processors that have AVX2, where the loader can choose and no sanitizer is in its way.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define GROSR_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define GROSR_WIDE
#endif

/// Adds, for each point of a row, how far the neighbour is that lies `to` behind it, times its
/// weight: x, y, z, depth, and the weight itself, each `width` numbers. Neighbours are the outer
/// loops, so that this one goes along the row.
GROSR_WIDE void add_neighbours(const number* const* points, std::ptrdiff_t to, number nearness,
                               std::size_t width, number* result) {
  const number* const x = points[0];
  const number* const y = points[1];
  const number* const z = points[2];
  const number* const depth = points[3];
  number* const sum_x = result;
  number* const sum_y = result + width;
  number* const sum_z = result + 2 * width;
  number* const sum_depth = result + 3 * width;
  number* const sum = result + 4 * width;
#pragma omp simd
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(width); ++i) {
    // What is beyond the reach has no weight, however far.
    number farther = depth[i + to] - depth[i];
    farther = farther < -depth_reach ? -depth_reach : farther;
    farther = farther > depth_reach ? depth_reach : farther;
    const number left_over = depth_reach * depth_reach - farther * farther;
    const number weight = ((left_over * left_over) >> 16) * nearness >> 8;
    sum[i] += weight;
    sum_x[i] += weight * (x[i + to] - x[i]);
    sum_y[i] += weight * (y[i + to] - y[i]);
    sum_z[i] += weight * (z[i + to] - z[i]);
    sum_depth[i] += weight * farther;
  }
}

class by_host final : public way {
 public:
  explicit by_host(const setup& s) : s_(s), weights_(weights_of(s.radius)), summary_(cells) {
    for (unsigned c = 0; c < cameras; ++c) {
      cameras_[c] = camera_of(s.shape(), c);
      clouds_.emplace_back(s.shape());
    }
  }

  ~by_host() override {
#ifdef _OPENMP
    omp_pause_resource_all(omp_pause_hard);  // its threads are no other way's
#endif
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
      std::vector<number> row(5 * width);
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

  /// A row of points: x, y, z, depth; and `width` numbers more to compute with.
  void filter(planes& cloud, std::size_t row, number* result) const {
    const std::size_t width = s_.shape().width;
    const number* const depth = cloud.row(3, row);
    const number* const points[4] = {cloud.row(0, row), cloud.row(1, row), cloud.row(2, row),
                                     depth};
    const number* const sum = result + 4 * width;
    std::fill(result, result + 5 * width, 0);
    const number reach = weights_.radius;
    for (number v = -reach; v <= reach; ++v)
      for (number u = -reach; u <= reach; ++u) {
        const std::ptrdiff_t to = v * static_cast<std::ptrdiff_t>(cloud.pitch) + u;
        const number nearness = weights_.at[std::abs(v)][std::abs(u)];
        add_neighbours(points, to, nearness, width, result);
      }
    for (std::size_t i = 0; i < width; ++i) {
      if (depth[i] == 0) {
        result[3 * width + i] = 0;
        continue;
      }
      for (unsigned a = 0; a < 3; ++a)
        result[a * width + i] = points[a][i] + result[a * width + i] / sum[i];
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
