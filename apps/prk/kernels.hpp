// The kernels on a device: the same, in the same shapes, for all ways.
#pragma once

#include "grosr/simt/launch.hpp"
#include "problem.hpp"

namespace grosr::prk {

/// A tile of the wavefront, and where what it depends on lies.
struct sweep_tile {
  double* elements;
  std::uint32_t pitch, rows, columns;  ///< at most largest_tile rows and columns
  const double* above;                 ///< columns + 1, from the element above and to the left on
  const double* left;                  ///< rows, left_pitch apart
  std::uint32_t left_pitch;
  const double* corner = nullptr;  ///< stands for above[0], unless null
  double* next_corner = nullptr;   ///< gets the last element with the other sign, unless null
  double* below = nullptr;         ///< gets what `above` is for the tile below, unless null
  double* right = nullptr;         ///< gets what `left` is for the tile to the right, unless null
};

/// A tile in its matrix, which depends on neighbours there.
sweep_tile tile_of(const tile_grid& g, double* matrix, std::uint32_t row, std::uint32_t column);

void launch_sweep(simt::stream& s, const sweep_tile& t);
/// out += the weighted sum of the neighbours of each inner element.
void launch_star(simt::stream& s, const double* in, double* out, std::uint32_t side);
/// in += 1.
void launch_increment(simt::stream& s, double* in, std::uint32_t side);
/// b += the transposed a, a += 1.
void launch_transpose(simt::stream& s, double* a, double* b, std::uint32_t side);
/// c += a b.
void launch_multiply(simt::stream& s, const double* a, const double* b, double* c,
                     std::uint32_t side);

}  // namespace grosr::prk
