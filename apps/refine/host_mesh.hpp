// The same mesh, computed by the host alone.
#pragma once

#include <vector>

#include "mesh.hpp"

namespace grosr::refine {

struct host_result {
  std::vector<std::uint32_t> coarse;   ///< of all blocks, after all steps
  std::vector<std::uint64_t> refined;  ///< blocks, by step
  std::uint64_t total = 0;             ///< sum of all cells
};

/// On all processors.
host_result compute_on_host(const mesh_shape& m);

}  // namespace grosr::refine
