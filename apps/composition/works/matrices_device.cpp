#include "kernels.hpp"
#include "operations.hpp"
#include "works.hpp"

namespace grosr::composition {
namespace {

struct operands {
  const float* left;
  const float* right;
  float* result;
  std::uint32_t side;
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

void launch_matrix_step(simt::stream& s, const step& what, const places& at) {
  const std::uint32_t side = what.parameters[0];
  const operands o{at.reads[0], at.reads[1], at.results[0], side};
  if (what.what == operation::gemm)
    simt::launch<block_threads>(s, threads_for(side * ((side + 3) / 4)),
                                multiply{o, product_scale(side)});
  else if (what.what == operation::madd)
    simt::launch<block_threads>(s, threads_for(side * side), add{o});
  else
    simt::launch<block_threads>(s, threads_for(side * side), copy{o});
}

}  // namespace grosr::composition
