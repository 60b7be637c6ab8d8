// Sparse matrices of the host, of which only the places of nonzeros count; and random ones.
#pragma once

#include <cstdint>
#include <vector>

namespace grosr::bale {

/// Row r has its nonzeros in columns[offsets[r]] to columns[offsets[r + 1] - 1].
struct matrix {
  std::vector<std::uint32_t> offsets{0}, columns;

  std::uint32_t rows() const { return static_cast<std::uint32_t>(offsets.size() - 1); }
  std::uint32_t nonzeros() const { return static_cast<std::uint32_t>(columns.size()); }
  void end_row() { offsets.push_back(nonzeros()); }
  bool operator==(const matrix&) const = default;
};

/// Random numbers below `bound`.
std::vector<std::uint32_t> random_numbers(std::size_t count, std::uint32_t bound,
                                          std::uint64_t seed);
/// Each of 0 to count - 1 once.
std::vector<std::uint32_t> random_order(std::uint32_t count, std::uint64_t seed);

/// A square matrix, each of whose elements is a nonzero with the same probability: so many in a row
/// on average. Columns are in ascending order.
matrix random_matrix(std::uint32_t rows, std::uint32_t of_a_row, std::uint64_t seed);
/// The same, upper-triangular, with a full diagonal; then rows and columns in random order.
matrix shuffled_triangular_matrix(std::uint32_t rows, std::uint32_t of_a_row, std::uint64_t seed);
/// The edges of a random Kronecker graph of at least so many vertices, each from the vertex that
/// has fewer of them, so that the matrix is lower-triangular; in ascending order.
matrix random_graph(std::uint32_t vertices, std::uint64_t seed);

}  // namespace grosr::bale
