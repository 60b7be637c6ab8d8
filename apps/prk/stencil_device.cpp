#include "grosr/simt/lanes.hpp"
#include "kernels.hpp"

namespace grosr::prk {
namespace {

/// A warp has 32 elements of a row.
constexpr std::uint32_t block_columns = simt::warp_size, block_rows = 8;

GROSR_DEVICE constexpr std::uint32_t blocks_for(std::uint32_t all, std::uint32_t in_block) {
  return (all + in_block - 1) / in_block;
}

/// Calls f(row, column) for the thread's element, if there is one.
template <class F>
GROSR_DEVICE void at_element(std::uint32_t side, const F& f) {
  const std::uint32_t in_row = blocks_for(side, block_columns);
  const std::uint32_t y = simt::block_id() / in_row * block_rows + simt::warp_id();
  const std::uint32_t x = simt::block_id() % in_row * block_columns + simt::lane_id();
  if (y < side && x < side) f(y, x);
}

struct star {
  const double* in;
  double* out;
  std::uint32_t side;

  GROSR_DEVICE void operator()() const {
    constexpr std::uint32_t radius = stencil_radius;
    at_element(side, [&](std::uint32_t y, std::uint32_t x) {
      if (y < radius || y + radius >= side || x < radius || x + radius >= side) return;
      const double* const at = in + std::size_t{y} * side + x;
      double sum = 0;
      for (std::uint32_t d = 1; d <= radius; ++d) {
        const std::size_t rows = std::size_t{d} * side;
        sum += (*(at + rows) - *(at - rows) + (*(at + d) - *(at - d))) * (1.0 / (2 * d * radius));
      }
      out[std::size_t{y} * side + x] += sum;
    });
  }
};

struct increment {
  double* in;
  std::uint32_t side;

  GROSR_DEVICE void operator()() const {
    at_element(side,
               [&](std::uint32_t y, std::uint32_t x) { in[std::size_t{y} * side + x] += 1.0; });
  }
};

template <class Kernel>
void launch_on_elements(simt::stream& s, std::uint32_t side, const Kernel& k) {
  constexpr unsigned threads = block_columns * block_rows;
  simt::launch<threads>(
      s, {blocks_for(side, block_columns) * blocks_for(side, block_rows), threads}, k);
}

}  // namespace

void launch_star(simt::stream& s, const double* in, double* out, std::uint32_t side) {
  launch_on_elements(s, side, star{in, out, side});
}

void launch_increment(simt::stream& s, double* in, std::uint32_t side) {
  launch_on_elements(s, side, increment{in, side});
}

}  // namespace grosr::prk
