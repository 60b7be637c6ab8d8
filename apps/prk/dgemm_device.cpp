#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "kernels.hpp"

namespace grosr::prk {
namespace {

/// A block of 16 x 16 threads has 64 x 64 elements of the product, and a thread 4 x 4 of these.
constexpr std::uint32_t tile = 64, depth = 16, across = 16, each = tile / across;
constexpr unsigned block_threads = across * across;

struct shared_tiles {
  double a[depth][tile + 1], b[depth][tile];  // a is transposed
};

struct multiply {
  const double* a;
  const double* b;
  double* c;
  std::uint32_t side;

  GROSR_DEVICE double at(const double* m, std::uint32_t y, std::uint32_t x) const {
    return y < side && x < side ? m[std::size_t{y} * side + x] : 0;
  }

  GROSR_DEVICE void operator()() const {
    shared_tiles& shared = simt::block_shared<shared_tiles>();
    const std::uint32_t in_row = (side + tile - 1) / tile, thread = simt::thread_id();
    const std::uint32_t y = simt::block_id() / in_row * tile, x = simt::block_id() % in_row * tile;
    const std::uint32_t row = thread / across, column = thread % across;
    double sum[each][each] = {};
    for (std::uint32_t k = 0; k < side; k += depth) {
      for (std::uint32_t i = thread; i < tile * depth; i += block_threads) {
        shared.a[i % depth][i / depth] = at(a, y + i / depth, k + i % depth);
        shared.b[i / tile][i % tile] = at(b, k + i / tile, x + i % tile);
      }
      simt::sync_block();
      for (std::uint32_t d = 0; d < depth; ++d) {
        double left[each], right[each];
        for (std::uint32_t i = 0; i < each; ++i) {
          left[i] = shared.a[d][row + i * across];
          right[i] = shared.b[d][column + i * across];
        }
        for (std::uint32_t r = 0; r < each; ++r)
          for (std::uint32_t i = 0; i < each; ++i) sum[r][i] += left[r] * right[i];
      }
      simt::sync_block();
    }
    for (std::uint32_t r = 0; r < each; ++r)
      for (std::uint32_t i = 0; i < each; ++i) {
        const std::uint32_t to_y = y + row + r * across, to_x = x + column + i * across;
        if (to_y < side && to_x < side) c[std::size_t{to_y} * side + to_x] += sum[r][i];
      }
  }
};

}  // namespace

void launch_multiply(simt::stream& s, const double* a, const double* b, double* c,
                     std::uint32_t side) {
  const std::uint32_t in_row = (side + tile - 1) / tile;
  simt::launch<block_threads>(s, {in_row * in_row, block_threads}, multiply{a, b, c, side});
}

}  // namespace grosr::prk
