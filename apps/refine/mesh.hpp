// A mesh of blocks in a cube, finer where a ball moves through it. What is the same on the device
// and on the host: shapes, and where the ball is.
//
//   coarse data   4^3 cells a block; in device memory, always
//   fine data     16^3 cells; in host memory that the kernel has mapped, while the block is refined
//
// Whole numbers throughout, so that device and host agree to the last bit.
#pragma once

#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::refine {

inline constexpr unsigned variables = 4;                    ///< values of a cell
inline constexpr unsigned fine_side = 16, coarse_side = 4;  ///< cells of a block
inline constexpr unsigned fine_cells = fine_side * fine_side * fine_side;
inline constexpr unsigned coarse_cells = coarse_side * coarse_side * coarse_side;
inline constexpr unsigned cells_in_one = fine_cells / coarse_cells;  ///< fine cells in a coarse one
inline constexpr std::uint32_t fine_words = fine_cells * variables;
inline constexpr std::uint32_t coarse_words = coarse_cells * variables;
inline constexpr std::uint32_t fine_bytes = fine_words * 4;

struct mesh_shape {
  std::uint32_t side = 8;    ///< blocks along the cube
  std::uint32_t steps = 16;  ///< in which the ball comes in at one corner and leaves at the other
  GROSR_DEVICE std::uint32_t blocks() const { return side * side * side; }
  std::uint64_t bytes() const { return std::uint64_t{side} * side * side * fine_bytes; }
};

/// Whether the ball touches the block in this step, so that it is to be refined.
GROSR_DEVICE inline bool is_touched(const mesh_shape& m, std::uint32_t step, std::uint32_t block) {
  constexpr std::int64_t unit = 64;  // of length, in a block's side
  const std::int64_t all = m.side * unit, radius = all * 35 / 100;
  const std::int64_t center = -radius + (all + 2 * radius) * (step + 1) / m.steps;
  const std::int64_t corner[] = {block % m.side * unit, block / m.side % m.side * unit,
                                 block / m.side / m.side * unit};
  std::int64_t away = 0;
  for (const std::int64_t begin : corner) {
    const std::int64_t d = center < begin          ? begin - center
                           : center > begin + unit ? center - begin - unit
                                                   : 0;
    away += d * d;
  }
  return away < radius * radius;
}

/// Which coarse cell a fine one lies in, and which of its cells it is.
GROSR_DEVICE inline std::uint32_t coarse_of(std::uint32_t cell) {
  constexpr unsigned n = fine_side / coarse_side;
  const std::uint32_t x = cell % fine_side, y = cell / fine_side % fine_side;
  const std::uint32_t z = cell / fine_side / fine_side;
  return x / n + y / n * coarse_side + z / n * coarse_side * coarse_side;
}
GROSR_DEVICE inline std::uint32_t place_in_coarse(std::uint32_t cell) {
  constexpr unsigned n = fine_side / coarse_side;
  return cell % n + cell / fine_side % n * n + cell / fine_side / fine_side % n * n * n;
}

/// The coarse value that a block begins with.
GROSR_DEVICE inline std::uint32_t first_value(std::uint32_t block, std::uint32_t word) {
  const std::uint64_t x = (std::uint64_t{block} * coarse_words + word) * 0x9e3779b97f4a7c15ull;
  return static_cast<std::uint32_t>(x >> 34);  // 30 bits
}

/// What flows from a cell to its neighbour in one step.
GROSR_DEVICE inline std::int32_t flow(std::uint32_t from, std::uint32_t to) {
  return (static_cast<std::int32_t>(from) - static_cast<std::int32_t>(to)) / 8;
}

}  // namespace grosr::refine
