#include <fmt/format.h>

#include <algorithm>

#include "kernels.hpp"

namespace grosr::prk {

sweep_tile tile_of(const tile_grid& g, double* matrix, std::uint32_t row, std::uint32_t column) {
  const std::uint32_t y = 1 + row * g.tile, x = 1 + column * g.tile;
  double* const first = matrix + std::size_t{y} * g.side + x;
  return {.elements = first,
          .pitch = g.side,
          .rows = std::min(g.tile, g.side - y),
          .columns = std::min(g.tile, g.side - x),
          .above = first - g.side - 1,
          .left = first - 1,
          .left_pitch = g.side};
}

// A[0,0] is an array of its own, so that a graph can hand it from the last tile to the first one.
problem p2p(std::uint32_t side, std::uint32_t tile) {
  const tile_grid grid{side, tile};
  const std::uint32_t count = grid.count();
  problem p;
  p.name = fmt::format("p2p, {} x {}, {} x {} tiles of {}", side, side, count, count, tile);
  p.state = {{"matrix", std::size_t{side} * side,
              [side](std::size_t i) {
                const std::size_t row = i / side, column = i % side;
                return row == 0 ? static_cast<double>(column)
                                : static_cast<double>(column == 0 ? row : 0);
              },
              false},
             {"corner", 1, [](std::size_t) { return 0.0; }}};
  for (std::uint32_t row = 0; row < count; ++row)
    for (std::uint32_t column = 0; column < count; ++column) {
      std::vector<unsigned> after;
      if (row != 0) after.push_back((row - 1) * count + column);
      if (column != 0) after.push_back(row * count + column - 1);
      p.parts.push_back({fmt::format("tile {} {}", row, column),
                         {0, 1},
                         after,
                         [=](simt::stream& s, const std::vector<double*>& at) {
                           sweep_tile t = tile_of(grid, at[0], row, column);
                           if (row + column == 0) t.corner = at[1];
                           if (grid.is_last(row, column)) t.next_corner = at[1];
                           launch_sweep(s, t);
                         }});
    }
  p.tiles = grid;
  p.most_unrolled =
      std::clamp(most_tiles * most_tiles / (count * count), 1u, problem{}.most_unrolled);
  p.rate_key = "flop_per_s";
  p.work = 2.0 * (side - 1) * (side - 1);
  p.check = [side](std::uint64_t iterations, const arrays& got) {
    const double expected = static_cast<double>(iterations) * (2.0 * side - 2);
    return compare("the last element", got[0].back(), expected, 1e-8 * expected);
  };
  return p;
}

}  // namespace grosr::prk
