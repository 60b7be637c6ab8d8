#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "kernels.hpp"

namespace grosr::prk {
namespace {

constexpr std::uint32_t tile_side = simt::warp_size;
constexpr unsigned tile_warps = 8;

/// Elements of a column are in different banks.
struct shared_tile {
  double at[tile_side][tile_side + 1];
};

struct add_transposed {
  double* a;
  double* b;
  std::uint32_t side;

  /// A block has a tile of a, and the opposite one of b; its warps take rows in turns.
  GROSR_DEVICE void operator()() const {
    shared_tile& tile = simt::block_shared<shared_tile>();
    const std::uint32_t in_row = (side + tile_side - 1) / tile_side, lane = simt::lane_id();
    const std::uint32_t y = simt::block_id() / in_row * tile_side;
    const std::uint32_t x = simt::block_id() % in_row * tile_side;
    for (std::uint32_t r = simt::warp_id(); r < tile_side; r += tile_warps)
      if (y + r < side && x + lane < side) {
        double& element = a[std::size_t{y + r} * side + x + lane];
        tile.at[r][lane] = element;
        element += 1.0;
      }
    simt::sync_block();
    for (std::uint32_t r = simt::warp_id(); r < tile_side; r += tile_warps)
      if (x + r < side && y + lane < side)
        b[std::size_t{x + r} * side + y + lane] += tile.at[lane][r];
  }
};

}  // namespace

void launch_transpose(simt::stream& s, double* a, double* b, std::uint32_t side) {
  constexpr unsigned threads = tile_warps * simt::warp_size;
  const std::uint32_t in_row = (side + tile_side - 1) / tile_side;
  simt::launch<threads>(s, {in_row * in_row, threads}, add_transposed{a, b, side});
}

}  // namespace grosr::prk
