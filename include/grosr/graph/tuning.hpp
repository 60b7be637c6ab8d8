// Numbers by which searches choose how to go on; found by measuring (docs/internals/graphs.md).
#pragma once

#include <cstdint>

namespace grosr::graphs {

/// Where one way of going on is left for another.
struct wave_tuning {
  /// Entries a block holds when it gives to those who wait, or calls for another helper.
  std::uint32_t share_above = 48;
  /// Entries a block holds, which end a wave; at most 448, so that what fills the ring does, too.
  std::uint32_t much = 160;
  std::uint32_t much_if_all_fit = 448;  ///< the same, where all rings hold all vertices twice
  std::uint32_t heavy = 2048;  ///< edges of entries with more than 32, in a round, which do too
  /// Vertices a level that a wave left over whose blocks were ahead of each other, from which on
  /// they are corrected by steps, not by another wave.
  std::uint32_t many = 1024;
  std::uint32_t few_vertices = 256;  ///< a level that is left to a wave, up to 512
  std::uint32_t few_edges = 1024;    ///< and its edges
  std::uint32_t dense = 8;           ///< edges a vertex, from which on the first levels are no wave
  // A level goes bottom-up when its edges are more than a share of those that no top-down step has
  // expanded yet, and top-down again when it has not grown and is at most a share of all vertices.
  std::uint32_t alpha = 15, beta = 18;
};

}  // namespace grosr::graphs
