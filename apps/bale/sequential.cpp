#include "sequential.hpp"

namespace grosr::bale {

std::vector<std::uint64_t> count_sequentially(const std::vector<std::uint32_t>& numbers,
                                              std::uint32_t bins) {
  std::vector<std::uint64_t> counts(bins);
  for (const std::uint32_t n : numbers) ++counts[n];
  return counts;
}

std::vector<std::uint64_t> gather_sequentially(const std::vector<std::uint64_t>& table,
                                               const std::vector<std::uint32_t>& indices) {
  std::vector<std::uint64_t> values(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) values[i] = table[indices[i]];
  return values;
}

matrix transpose_sequentially(const matrix& m) {
  matrix t;
  t.offsets.resize(m.offsets.size());
  t.columns.resize(m.columns.size());
  // A row's place is moved on while it is filled; in the end it is where the next row begins.
  std::vector<std::uint32_t>& next = t.offsets;
  for (const std::uint32_t c : m.columns) ++next[c];
  std::uint32_t sum = 0;
  for (std::uint32_t& n : next) {
    const std::uint32_t count = n;
    n = sum;
    sum += count;
  }
  for (std::uint32_t r = 0; r < m.rows(); ++r)
    for (std::uint32_t e = m.offsets[r]; e < m.offsets[r + 1]; ++e)
      t.columns[next[m.columns[e]]++] = r;
  for (std::uint32_t r = m.rows(); r != 0; --r) next[r] = next[r - 1];
  next[0] = 0;
  return t;
}

sorted_matrix sort_sequentially(const matrix& m, const matrix& columns) {
  struct left {
    std::uint32_t count, columns;  ///< of the nonzeros that are left; the exclusive or
  };
  const std::uint32_t n = m.rows();
  sorted_matrix found{std::vector<std::uint32_t>(n), std::vector<std::uint32_t>(n)};
  std::vector<left> rows(n);
  std::vector<std::uint32_t> queue;
  queue.reserve(n);
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::uint32_t e = m.offsets[r]; e < m.offsets[r + 1]; ++e) rows[r].columns ^= m.columns[e];
    rows[r].count = m.offsets[r + 1] - m.offsets[r];
    if (rows[r].count == 1) queue.push_back(r);
  }
  for (std::uint32_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t r = queue[i], c = rows[r].columns, place = n - 1 - i;
    found.rows[r] = found.columns[c] = place;
    for (std::uint32_t e = columns.offsets[c]; e < columns.offsets[c + 1]; ++e) {
      left& other = rows[columns.columns[e]];
      other.columns ^= c;
      if (--other.count == 1) queue.push_back(columns.columns[e]);
    }
  }
  return found;
}

std::uint64_t count_triangles_sequentially(const matrix& m) {
  std::vector<std::uint8_t> is_in_row(m.rows());
  std::uint64_t triangles = 0;
  for (std::uint32_t i = 0; i < m.rows(); ++i) {
    for (std::uint32_t e = m.offsets[i]; e < m.offsets[i + 1]; ++e) is_in_row[m.columns[e]] = 1;
    for (std::uint32_t e = m.offsets[i]; e < m.offsets[i + 1]; ++e) {
      const std::uint32_t j = m.columns[e];
      for (std::uint32_t k = m.offsets[j]; k < m.offsets[j + 1]; ++k)
        triangles += is_in_row[m.columns[k]];
    }
    for (std::uint32_t e = m.offsets[i]; e < m.offsets[i + 1]; ++e) is_in_row[m.columns[e]] = 0;
  }
  return triangles;
}

std::uint64_t wedges_of(const matrix& m) {
  std::uint64_t all = 0;
  for (std::uint32_t r = 0; r < m.rows(); ++r) {
    const std::uint64_t n = m.offsets[r + 1] - m.offsets[r];
    all += n * (n - (n != 0 ? 1 : 0)) / 2;
  }
  return all;
}

bool is_permutation(const std::vector<std::uint32_t>& all) {
  std::vector<bool> seen(all.size());
  for (const std::uint32_t n : all) {
    if (n >= all.size() || seen[n]) return false;
    seen[n] = true;
  }
  return true;
}

std::string wrong_order(const matrix& m, const sorted_matrix& found) {
  if (!is_permutation(found.rows)) return "the order of rows is not a permutation";
  if (!is_permutation(found.columns)) return "the order of columns is not a permutation";
  for (std::uint32_t r = 0; r < m.rows(); ++r)
    for (std::uint32_t e = m.offsets[r]; e < m.offsets[r + 1]; ++e)
      if (found.rows[r] > found.columns[m.columns[e]])
        return "the sorted matrix is not upper-triangular";
  return {};
}

}  // namespace grosr::bale
