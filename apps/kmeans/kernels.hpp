// The kernel that makes new centroids.
#pragma once

#include "coprocessor/grid.hpp"
#include "grosr/simt/lanes.hpp"
#include "share.hpp"

namespace grosr::kmeans {

using coprocessor::grid_of;

/// New centroids of the clusters that a rank has.
struct renew_centroids {
  sizes size;
  std::uint32_t rank;
  std::uint64_t* sums;
  std::int32_t* centroids;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t step = simt::block_size() * size.ranks;
    GROSR_NO_UNROLL
    for (std::uint32_t c = rank + simt::thread_id() * size.ranks; c < size.clusters; c += step) {
      std::uint64_t* const mine = sums + size.offset_of(c);
      std::int32_t* const centroid = centroids + c * size.width();
      for (std::uint32_t j = 0; j < size.width(); ++j)
        centroid[j] = renewed(mine, size, j, centroid[j]);
      for (std::uint32_t j = 0; j < size.width(); ++j) mine[j] = 0;
    }
  }
};
constexpr simt::shape renew_grid{1, 64};

}  // namespace grosr::kmeans
