// What is computed: a Parallel Research Kernel of a size, as arrays and the launches of an
// iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "grosr/simt/launch.hpp"

namespace grosr::prk {

using arrays = std::vector<std::vector<double>>;

struct array_description {
  std::string name;
  std::size_t elements;
  std::function<double(std::size_t)> initial;
  bool flows = true;  ///< through a dataflow graph; else its nodes have parts of it

  std::size_t bytes() const { return elements * sizeof(double); }
};

/// One kernel launch of an iteration.
struct part {
  std::string name;
  std::vector<unsigned> uses;   ///< array numbers
  std::vector<unsigned> after;  ///< parts of the same iteration
  /// Puts the kernel into a stream. Gets where the arrays lie that it uses, in order.
  std::function<void(simt::stream&, const std::vector<double*>&)> launch;
};

/// The wavefront's matrix, whose row 0 and column 0 are given; tiles divide the rest.
struct tile_grid {
  std::uint32_t side;  ///< of the matrix
  std::uint32_t tile;  ///< rows, and columns, of a tile; the last one may have fewer

  std::uint32_t count() const { return (side - 1 + tile - 1) / tile; }  ///< in a row, or column
  bool is_last(std::uint32_t row, std::uint32_t column) const {
    return row + 1 == count() && column + 1 == count();
  }
};

struct problem {
  std::string name;
  std::vector<array_description> state;  ///< changed in place, iteration after iteration
  /// Each behind those that it needs. All are behind the first one, and the last one is behind all.
  std::vector<part> parts;
  std::optional<tile_grid> tiles;  ///< of the wavefront
  unsigned most_unrolled = 16;     ///< iterations that one CUDA graph has, at most
  const char* rate_key = "";       ///< of PRK's rate
  double work = 0;                 ///< of an iteration, in units of the rate
  /// PRK's verification after so many iterations. Empty: the arrays are right.
  std::function<std::string(std::uint64_t iterations, const arrays&)> check;

  /// Of all arrays that flow.
  std::size_t flowing_bytes() const;
};

/// "is X, not Y" unless the two differ by no more than `epsilon`.
std::string compare(const char* what, double got, double expected, double epsilon);

// The kernels, for matrices of side x side.

/// side >= 2. At most largest_tile for a tile, and most_tiles of them in a row.
problem p2p(std::uint32_t side, std::uint32_t tile);
inline constexpr std::uint32_t largest_tile = 64;
inline constexpr std::uint32_t most_tiles = 32;  ///< 1024 nodes are as many as run as one
/// side > 2 * stencil_radius.
problem stencil(std::uint32_t side);
inline constexpr std::uint32_t stencil_radius = 2;
/// side >= 1.
problem transpose(std::uint32_t side);
/// side >= 2.
problem dgemm(std::uint32_t side);

}  // namespace grosr::prk
