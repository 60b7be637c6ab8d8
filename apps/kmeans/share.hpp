// What device code of all ways knows: how a clustering lies on ranks, and the steps of an
// iteration. Coordinates and sums are whole numbers, so that the order of additions does not count.
#pragma once

#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::kmeans {

/// A cluster has `width()` numbers: a sum or a coordinate for each dimension, and how many points.
struct sizes {
  std::uint32_t dimensions, clusters, ranks;

  GROSR_DEVICE std::uint32_t width() const { return dimensions + 1; }
  /// The rank that has the sums of a cluster, and where they lie in its part.
  GROSR_DEVICE std::uint32_t rank_of(std::uint32_t cluster) const { return cluster % ranks; }
  GROSR_DEVICE std::uint32_t offset_of(std::uint32_t cluster) const {
    return cluster / ranks * width();
  }
  /// Numbers of a rank's part of the sums, and of all centroids.
  GROSR_DEVICE std::uint32_t part() const { return (clusters + ranks - 1) / ranks * width(); }
  GROSR_DEVICE std::uint32_t all() const { return clusters * width(); }
};

/// The points of a rank: coordinate j of all points lies before coordinate j + 1 of any.
struct share {
  const std::int32_t* coordinates;
  std::uint64_t points;
  sizes size;

  GROSR_DEVICE std::int32_t at(std::uint64_t point, std::uint32_t j) const {
    return coordinates[j * points + point];
  }
  /// What a point adds to number j of its cluster.
  GROSR_DEVICE std::uint64_t addend(std::uint64_t point, std::uint32_t j) const {
    return j == size.dimensions ? 1 : static_cast<std::uint64_t>(std::int64_t{at(point, j)});
  }
  /// The cluster whose centroid is nearest; of those that are as near, the first.
  GROSR_DEVICE std::uint32_t nearest(std::uint64_t point, const std::int32_t* centroids) const {
    std::uint32_t best = 0;
    std::int64_t least = INT64_MAX;
    GROSR_NO_UNROLL
    for (std::uint32_t c = 0; c < size.clusters; ++c) {
      std::int64_t distance = 0;
      for (std::uint32_t j = 0; j < size.dimensions; ++j) {
        const std::int32_t d = at(point, j) - centroids[c * size.width() + j];
        distance += std::int64_t{d} * d;
      }
      if (distance < least) {
        least = distance;
        best = c;
      }
    }
    return best;
  }
};

/// Number j of the centroid that a cluster's sums make, and of one without points: what it was.
GROSR_DEVICE inline std::int32_t renewed(const std::uint64_t* sums, const sizes& size,
                                         std::uint32_t j, std::int32_t before) {
  const auto count = static_cast<std::int64_t>(sums[size.dimensions]);
  if (j == size.dimensions) return static_cast<std::int32_t>(count);
  return count == 0 ? before
                    : static_cast<std::int32_t>(static_cast<std::int64_t>(sums[j]) / count);
}

}  // namespace grosr::kmeans
