// What kernels see of a graph in device memory, which a device_graph owns.
#pragma once

#include <cstdint>

#include "grosr/simt/lanes.hpp"

namespace grosr::graphs {

using vertex = std::uint32_t;

/// No vertex: the parent of one that was not reached.
inline constexpr vertex no_vertex = ~vertex{0};

/// Passed by value.
struct graph_ref {
  const std::uint32_t* row;
  const vertex* column;
  const float* weight;  ///< null: every edge weighs 1
  vertex vertices;
  std::uint32_t entries;
};

/// What one access of memory brings of graph_ref::column.
struct alignas(16) entry_quad {
  vertex column[4];
};

/// Entry `e` and others around it, from e / 4 * 4 on; they may be beyond the last one of the graph.
GROSR_DEVICE inline entry_quad quad_of(const vertex* column, std::uint32_t e) {
  return reinterpret_cast<const entry_quad*>(column)[e / 4];
}

}  // namespace grosr::graphs
