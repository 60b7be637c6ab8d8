#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "kernels.hpp"

namespace grosr::prk {
namespace {

/// A tile behind a row and a column of neighbours. Neighbours on a diagonal are in different banks.
struct shared_tile {
  double at[largest_tile + 1][largest_tile + 2];
};

/// By one block. A thread has a row, and is one column behind the thread of the row above.
struct sweep : sweep_tile {
  explicit sweep(const sweep_tile& t) : sweep_tile(t) {}

  GROSR_DEVICE void operator()() const {
    shared_tile& tile = simt::block_shared<shared_tile>();
    const std::uint32_t row = simt::thread_id(), threads = simt::block_size();
    for (std::uint32_t c = row; c <= columns; c += threads)
      tile.at[0][c] = c == 0 && corner ? *corner : above[c];
    for (std::uint32_t r = row; r < rows; r += threads)
      tile.at[r + 1][0] = left[std::size_t{r} * left_pitch];
    simt::sync_block();
    double before = row < rows ? tile.at[row + 1][0] : 0;
    double above_before = row < rows ? tile.at[row][0] : 0;
    for (std::uint32_t step = 0; step + 1 < rows + columns; ++step) {
      const std::uint32_t column = step - row;
      if (row < rows && step >= row && column < columns) {
        const double over = tile.at[row][column + 1];
        before = over + before - above_before;
        above_before = over;
        tile.at[row + 1][column + 1] = before;
      }
      simt::sync_block();
    }
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::uint32_t c = row; c < columns; c += threads)
        elements[std::size_t{r} * pitch + c] = tile.at[r + 1][c + 1];
    if (below)
      for (std::uint32_t c = row; c <= columns; c += threads) below[c] = tile.at[rows][c];
    if (right)
      for (std::uint32_t r = row; r < rows; r += threads) right[r] = tile.at[r + 1][columns];
    if (next_corner && row == 0) *next_corner = -tile.at[rows][columns];
  }
};

}  // namespace

void launch_sweep(simt::stream& s, const sweep_tile& t) {
  const unsigned warps = (t.rows + simt::warp_size - 1) / simt::warp_size;
  simt::launch<largest_tile>(s, {1, warps * simt::warp_size}, sweep(t));
}

}  // namespace grosr::prk
