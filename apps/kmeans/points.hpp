// Points on the host, and the same clustering by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "share.hpp"

namespace grosr::kmeans {

/// Numbers of all clusters, one cluster after the other, as share.hpp has them.
using centroid_list = std::vector<std::int32_t>;

struct point_set {
  std::uint32_t dimensions = 0;
  std::vector<std::int32_t> coordinates;  ///< one point after the other

  std::uint64_t size() const { return coordinates.size() / dimensions; }
  /// The points of a rank: its block, as `share` has them.
  std::vector<std::int32_t> block_of(std::uint32_t rank, std::uint32_t ranks) const;
  /// The first points are the first centroids.
  centroid_list first_centroids(std::uint32_t clusters) const;
};

/// Points around `clusters` random centres: a mixture of distributions that are near to normal ones
/// (each coordinate adds four even ones), in whole numbers below 2^20.
point_set random_points(std::uint64_t points, std::uint32_t dimensions, std::uint32_t clusters,
                        std::uint64_t seed);

centroid_list cluster_sequentially(const point_set& points, std::uint32_t clusters,
                                   std::uint32_t iterations);

}  // namespace grosr::kmeans
