#include <cmath>

#include "grosr/simt/shared.hpp"
#include "kernels.hpp"
#include "operations.hpp"
#include "works.hpp"

namespace grosr::composition {
namespace {

constexpr unsigned columns_of_block = simt::warp_size, most_warps = 8;

struct sums {
  float of[most_warps][columns_of_block];
};

GROSR_DEVICE std::uint32_t column_of_lane() {
  return simt::block_id() * columns_of_block + simt::lane_id();
}
GROSR_DEVICE unsigned warps_of_block() { return simt::block_size() / simt::warp_size; }

/// Each lane of a block has a column, and the block's warps share its rows. Returns the sum of
/// f(row, column) over all rows, to all warps.
template <class F>
GROSR_DEVICE float sum_of_column(std::uint32_t n, std::uint32_t column, const F& f) {
  sums& s = simt::block_shared<sums>();
  const unsigned warps = warps_of_block();
  float sum = 0;
  if (column < n)
    for (std::uint32_t row = simt::warp_id(); row < n; row += warps) sum += f(row, column);
  s.of[simt::warp_id()][simt::lane_id()] = sum;
  simt::sync_block();
  sum = 0;
  for (unsigned w = 0; w < warps; ++w) sum += s.of[w][simt::lane_id()];
  return sum;
}

struct centre {
  const float* x;
  float* result;
  std::uint32_t n;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t j = column_of_lane();
    const float mean =
        sum_of_column(n, j, [&](std::uint32_t i, std::uint32_t c) { return x[i * n + c]; }) /
        static_cast<float>(n);
    if (j < n)
      for (std::uint32_t i = simt::warp_id(); i < n; i += warps_of_block())
        result[i * n + j] = (x[i * n + j] - mean) / static_cast<float>(j + 1);
  }
};

struct loading {
  const float* x;
  const float* scores;
  float* result;
  std::uint32_t n;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t j = column_of_lane();
    const float sum = sum_of_column(
        n, j, [&](std::uint32_t i, std::uint32_t c) { return x[i * n + c] * scores[i]; });
    if (j < n && simt::warp_id() == 0) result[j] = sum;
  }
};

struct column {
  const float* x;
  float* result;
  std::uint32_t n, number;

  GROSR_DEVICE void operator()() const {
    each(n, [&](std::uint32_t i) { result[i] = x[i * n + number]; });
  }
};

/// Each warp sums up the whole vector, so that warps need not wait for each other.
struct normalise {
  const float* v;
  float* result;
  std::uint32_t n;

  GROSR_DEVICE void operator()() const {
    float squares = 0;
    for (std::uint32_t i = simt::lane_id(); i < n; i += simt::warp_size) squares += v[i] * v[i];
    const float length = std::sqrt(warp::sum_of_lanes(squares));
    each(n, [&](std::uint32_t i) { result[i] = v[i] / length; });
  }
};

struct score {
  const float* x;
  const float* loadings;
  float* result;
  std::uint32_t n;

  GROSR_DEVICE void operator()() const {
    each_by_warp(n, [&](std::uint32_t i) {
      float sum = 0;
      for (std::uint32_t j = simt::lane_id(); j < n; j += simt::warp_size)
        sum += x[i * n + j] * loadings[j];
      sum = warp::sum_of_lanes(sum);
      if (simt::lane_id() == 0) result[i] = sum;
    });
  }
};

struct deflate {
  const float* x;
  const float* scores;
  const float* loadings;
  float* result;
  std::uint32_t n;

  GROSR_DEVICE void operator()() const {
    each(n * n, [&](std::uint32_t i) { result[i] = x[i] - scores[i / n] * loadings[i % n]; });
  }
};

}  // namespace

void launch_pca_step(simt::stream& s, const step& what, const places& at) {
  const auto [n, number, unused] = what.parameters;
  const float* x = at.reads[0];
  float* result = at.results[0];
  const std::uint32_t warps = (n + 31) / 32;  // 32 rows each, or more
  const simt::shape by_column{(n + columns_of_block - 1) / columns_of_block,
                              (warps < most_warps ? warps : most_warps) * simt::warp_size};
  switch (what.what) {
    case operation::pca_centre:
      return simt::launch<most_warps * simt::warp_size>(s, by_column, centre{x, result, n});
    case operation::pca_loading:
      return simt::launch<most_warps * simt::warp_size>(s, by_column,
                                                        loading{x, at.reads[1], result, n});
    case operation::pca_column:
      return simt::launch<block_threads>(s, threads_for(n), column{x, result, n, number});
    case operation::pca_normalise:
      return simt::launch<block_threads>(s, threads_for(n), normalise{x, result, n});
    case operation::pca_score:
      return simt::launch<block_threads>(s, warps_for(n), score{x, at.reads[1], result, n});
    default:
      return simt::launch<block_threads>(s, threads_for(n * n),
                                         deflate{x, at.reads[1], at.reads[2], result, n});
  }
}

}  // namespace grosr::composition
