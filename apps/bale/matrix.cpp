#include "matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "grosr/graph/io/input.hpp"

namespace grosr::bale {
namespace {

using generator = std::mt19937_64;

std::uint32_t below(generator& random, std::uint32_t bound) {
  return static_cast<std::uint32_t>((random() >> 32) * bound >> 32);
}

/// Elements `first` on of the row that is being made, each a nonzero with this probability.
void add_random(matrix& m, std::uint64_t first, std::uint64_t end, double probability,
                generator& random) {
  std::geometric_distribution<std::uint64_t> skipped(std::clamp(probability, 1e-12, 0.999999));
  for (std::uint64_t c = first + skipped(random); c < end; c += 1 + skipped(random))
    m.columns.push_back(static_cast<std::uint32_t>(c));
}

}  // namespace

std::vector<std::uint32_t> random_numbers(std::size_t count, std::uint32_t bound,
                                          std::uint64_t seed) {
  generator random(seed);
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t& n : all) n = below(random, bound);
  return all;
}

std::vector<std::uint32_t> random_order(std::uint32_t count, std::uint64_t seed) {
  generator random(seed);
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  for (std::uint32_t i = count; i > 1; --i) std::swap(all[i - 1], all[below(random, i)]);
  return all;
}

matrix random_matrix(std::uint32_t rows, std::uint32_t of_a_row, std::uint64_t seed) {
  generator random(seed);
  matrix m;
  for (std::uint32_t r = 0; r < rows; ++r) {
    add_random(m, 0, rows, static_cast<double>(of_a_row) / rows, random);
    m.end_row();
  }
  return m;
}

matrix shuffled_triangular_matrix(std::uint32_t rows, std::uint32_t of_a_row, std::uint64_t seed) {
  generator random(seed);
  matrix m;
  for (std::uint32_t r = 0; r < rows; ++r) {
    m.columns.push_back(r);
    add_random(m, std::uint64_t{r} + 1, rows, 2.0 * (of_a_row - 1) / rows, random);
    m.end_row();
  }
  const std::vector<std::uint32_t> order = random_order(rows, seed + 1),
                                   column = random_order(rows, seed + 2);
  matrix shuffled;
  shuffled.columns.reserve(m.columns.size());
  for (const std::uint32_t r : order) {
    for (std::uint32_t e = m.offsets[r]; e < m.offsets[r + 1]; ++e)
      shuffled.columns.push_back(column[m.columns[e]]);
    shuffled.end_row();
  }
  return shuffled;
}

matrix random_graph(std::uint32_t vertices, std::uint64_t seed) {
  const auto scale = std::bit_width(vertices - 1);
  const graphs::csr_graph g =
      graphs::load("kronecker:" + std::to_string(scale) + ",seed=" + std::to_string(seed)).g;
  const auto edges_of = [&](std::uint32_t v) { return g.row[v + 1] - g.row[v]; };
  std::vector<std::uint32_t> order(g.vertices()), number(g.vertices());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return edges_of(a) > edges_of(b); });
  for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  matrix m;
  for (const std::uint32_t v : order) {
    for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e)
      if (number[g.column[e]] < number[v]) m.columns.push_back(number[g.column[e]]);
    std::sort(m.columns.begin() + m.offsets.back(), m.columns.end());
    m.end_row();
  }
  return m;
}

}  // namespace grosr::bale
