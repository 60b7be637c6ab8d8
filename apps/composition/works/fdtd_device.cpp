#include "kernels.hpp"
#include "operations.hpp"
#include "works.hpp"

namespace grosr::composition {
namespace {

struct fields {
  const float* ez;
  const float* hx;
  const float* hy;
  std::uint32_t side;
};

struct advance_magnetic : fields {
  float* new_hx;
  float* new_hy;

  /// Beyond the first and the last point is a wall, where Ez is 0.
  GROSR_DEVICE void operator()() const {
    const std::uint32_t n = side;
    each(n * (n + 1), [&](std::uint32_t i) {
      const std::uint32_t y = i / n;
      const float below = y < n ? ez[i] : 0, above = y != 0 ? ez[i - n] : 0;
      new_hx[i] = hx[i] - courant_number * (below - above);
      const std::uint32_t row = i / (n + 1), x = i % (n + 1);
      const float right = x < n ? ez[row * n + x] : 0, left = x != 0 ? ez[row * n + x - 1] : 0;
      new_hy[i] = hy[i] + courant_number * (right - left);
    });
  }
};

struct advance_electric : fields {
  float* new_ez;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t n = side;
    each(n * n, [&](std::uint32_t i) {
      const std::uint32_t left = i + i / n;
      new_ez[i] = ez[i] + courant_number * ((hy[left + 1] - hy[left]) - (hx[i + n] - hx[i]));
    });
  }
};

}  // namespace

void launch_fdtd_step(simt::stream& s, const step& what, const places& at) {
  const std::uint32_t side = what.parameters[0];
  const fields f{at.reads[0], at.reads[1], at.reads[2], side};
  if (what.what == operation::fdtd_magnetic)
    simt::launch<block_threads>(s, threads_for(side * (side + 1)),
                                advance_magnetic{f, at.results[0], at.results[1]});
  else
    simt::launch<block_threads>(s, threads_for(side * side), advance_electric{f, at.results[0]});
}

}  // namespace grosr::composition
