#include "points.hpp"

#include <algorithm>
#include <random>

namespace grosr::kmeans {

std::vector<std::int32_t> point_set::block_of(std::uint32_t rank, std::uint32_t ranks) const {
  const std::uint64_t each = (size() + ranks - 1) / ranks, first = std::min(rank * each, size()),
                      count = std::min(each, size() - first);
  std::vector<std::int32_t> block(count * dimensions);
  for (std::uint64_t i = 0; i < count; ++i)
    for (std::uint32_t j = 0; j < dimensions; ++j)
      block[j * count + i] = coordinates[(first + i) * dimensions + j];
  return block;
}

centroid_list point_set::first_centroids(std::uint32_t clusters) const {
  centroid_list all;
  for (std::uint32_t c = 0; c < clusters; ++c) {
    for (std::uint32_t j = 0; j < dimensions; ++j) all.push_back(coordinates[c * dimensions + j]);
    all.push_back(0);
  }
  return all;
}

point_set random_points(std::uint64_t points, std::uint32_t dimensions, std::uint32_t clusters,
                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> centres(std::size_t{clusters} * dimensions);
  for (std::int32_t& x : centres) x = static_cast<std::int32_t>(random() >> 44) - (1 << 19);
  point_set all{dimensions, std::vector<std::int32_t>(points * dimensions)};
  for (std::uint64_t i = 0; i < points; ++i) {
    const std::uint64_t of = random() % clusters;
    for (std::uint32_t j = 0; j < dimensions; ++j) {
      const std::uint64_t r = random();
      const auto sum = static_cast<std::int32_t>((r & 0xffff) + (r >> 16 & 0xffff) +
                                                 (r >> 32 & 0xffff) + (r >> 48));
      all.coordinates[i * dimensions + j] = centres[of * dimensions + j] + sum - (1 << 17);
    }
  }
  return all;
}

centroid_list cluster_sequentially(const point_set& points, std::uint32_t clusters,
                                   std::uint32_t iterations) {
  const std::uint32_t dimensions = points.dimensions, width = dimensions + 1;
  centroid_list centroids = points.first_centroids(clusters);
  std::vector<std::int64_t> sums(centroids.size());
  for (std::uint32_t round = 0; round < iterations; ++round) {
    std::fill(sums.begin(), sums.end(), 0);
    for (std::uint64_t i = 0; i < points.size(); ++i) {
      const std::int32_t* const x = points.coordinates.data() + i * dimensions;
      std::uint32_t best = 0;
      std::int64_t least = INT64_MAX;
      for (std::uint32_t c = 0; c < clusters; ++c) {
        std::int64_t distance = 0;
        for (std::uint32_t j = 0; j < dimensions; ++j) {
          const std::int64_t d = x[j] - centroids[c * width + j];
          distance += d * d;
        }
        if (distance < least) {
          least = distance;
          best = c;
        }
      }
      for (std::uint32_t j = 0; j < dimensions; ++j) sums[best * width + j] += x[j];
      ++sums[best * width + dimensions];
    }
    for (std::uint32_t c = 0; c < clusters; ++c) {
      const std::int64_t count = sums[c * width + dimensions];
      for (std::uint32_t j = 0; j < dimensions && count != 0; ++j)
        centroids[c * width + j] = static_cast<std::int32_t>(sums[c * width + j] / count);
      centroids[c * width + dimensions] = static_cast<std::int32_t>(count);
    }
  }
  return centroids;
}

}  // namespace grosr::kmeans
