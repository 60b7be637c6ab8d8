#include "grosr/simt/lanes.hpp"
#include "operations.hpp"

namespace grosr::composition {
namespace {

constexpr unsigned threads = 128;

struct operands {
  const float* left;
  const float* right;
  float* result;
  std::uint32_t side;

  template <class F>
  GROSR_DEVICE void each(std::uint32_t all, const F& f) const {
    const std::uint32_t stride = simt::grid_size() * simt::block_size();
    for (std::uint32_t i = simt::block_id() * simt::block_size() + simt::thread_id(); i < all;
         i += stride)
      f(i);
  }
};

/// Four elements of a column at a time, so that an element of the right matrix is read once for
/// them.
struct multiply : operands {
  float scale;
  static constexpr std::uint32_t rows = 4;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t n = side;
    each(n * ((n + rows - 1) / rows), [&](std::uint32_t i) {
      const std::uint32_t x = i % n, y = i / n * rows;
      float sum[rows] = {};
      for (std::uint32_t k = 0; k < n; ++k) {
        const float b = right[k * n + x];
        for (std::uint32_t r = 0; r < rows; ++r)
          if (y + r < n) sum[r] += left[(y + r) * n + k] * b;
      }
      for (std::uint32_t r = 0; r < rows; ++r)
        if (y + r < n) result[(y + r) * n + x] = sum[r] * scale;
    });
  }
};

struct add : operands {
  GROSR_DEVICE void operator()() const {
    each(side * side, [&](std::uint32_t i) { result[i] = (left[i] + right[i]) / 2; });
  }
};

struct copy : operands {
  GROSR_DEVICE void operator()() const {
    each(side * side, [&](std::uint32_t i) { result[i] = left[i]; });
  }
};

}  // namespace

void launch_operation(simt::stream& s, operation what, std::uint32_t side, const float* left,
                      const float* right, float* result) {
  const operands o{left, right, result, side};
  const std::uint32_t points = what == operation::gemm ? side * ((side + 3) / 4) : side * side;
  const simt::shape grid{(points + threads - 1) / threads, threads};
  switch (what) {
    case operation::gemm:
      simt::launch<threads>(s, grid, multiply{o, product_scale(side)});
      break;
    case operation::madd:
      simt::launch<threads>(s, grid, add{o});
      break;
    case operation::mcopy:
      simt::launch<threads>(s, grid, copy{o});
      break;
  }
}

}  // namespace grosr::composition
