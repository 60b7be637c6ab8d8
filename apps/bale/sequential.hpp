// The programs by one thread of the CPU, and what is checked.
#pragma once

#include <string>

#include "matrix.hpp"

namespace grosr::bale {

std::vector<std::uint64_t> count_sequentially(const std::vector<std::uint32_t>& numbers,
                                              std::uint32_t bins);
std::vector<std::uint64_t> gather_sequentially(const std::vector<std::uint64_t>& table,
                                               const std::vector<std::uint32_t>& indices);
/// Rows are in ascending order if those of the matrix are taken in order.
matrix transpose_sequentially(const matrix& m);

/// Where rows and columns go, so that a matrix becomes upper-triangular.
struct sorted_matrix {
  std::vector<std::uint32_t> rows, columns;
};
/// `columns`: the transpose.
sorted_matrix sort_sequentially(const matrix& m, const matrix& columns);

/// Of a lower-triangular matrix whose rows are in order.
std::uint64_t count_triangles_sequentially(const matrix& m);
/// Pairs of nonzeros of a row.
std::uint64_t wedges_of(const matrix& m);

/// Whether each number below the size is there once.
bool is_permutation(const std::vector<std::uint32_t>& all);
/// What is wrong with how a matrix was sorted; empty: nothing.
std::string wrong_order(const matrix& m, const sorted_matrix& found);

}  // namespace grosr::bale
