// Graphs for tests, made from lists of edges without the builder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "grosr/graph/csr_graph.hpp"
#include "support/seeds.hpp"

namespace grosr::graphs {

struct test_edge {
  vertex from, to;
  float weight = 1;
};

enum class weights { none, any };

/// Loops are dropped; of duplicates the least weight stays.
inline csr_graph make_graph(vertex n, const std::vector<test_edge>& edges, bool directed,
                            weights w = weights::none) {
  std::map<std::pair<vertex, vertex>, float> all;
  const auto add = [&](vertex from, vertex to, float weight) {
    const auto [at, is_new] = all.try_emplace({from, to}, weight);
    if (!is_new) at->second = std::min(at->second, weight);
  };
  for (const test_edge& e : edges) {
    if (e.from == e.to) continue;
    add(e.from, e.to, e.weight);
    if (!directed) add(e.to, e.from, e.weight);
  }
  csr_graph g;
  g.directed = directed;
  g.row.resize(std::size_t{n} + 1);
  g.row[0] = 0;
  auto at = all.begin();
  for (vertex v = 0; v < n; ++v) {
    for (; at != all.end() && at->first.first == v; ++at) {
      g.column.push_back(at->first.second);
      if (w == weights::any) g.weight.push_back(at->second);
    }
    g.row[v + 1] = g.entries();
  }
  return g;
}

/// So many edges at random; weights of very different sizes, so that sums are rounded, and zeros.
inline csr_graph random_graph(std::mt19937& random, vertex n, unsigned edges, bool directed,
                              weights w) {
  constexpr std::array<float, 8> some{0, 0, 1, 1e-3f, 0.1f, 1.0f / 3, 1e7f, 3e8f};
  std::vector<test_edge> list;
  for (unsigned i = 0; i < edges && n > 0; ++i)
    list.push_back({static_cast<vertex>(random() % n), static_cast<vertex>(random() % n),
                    some[random() % some.size()]});
  return make_graph(n, list, directed, w);
}

/// Calls property(g) for graphs of up to `most` vertices: of every kind, empty, sparse, dense, with
/// isolated vertices, counted from 0 or 1. For n of them, or as many as GROSR_TEST_SCALE says but
/// never fewer than `least`, a tenth of that but 4 with a sanitizer; which ones, first_of_slice()
/// says.
template <class Property>
void for_small_graphs(std::uint64_t all, std::uint64_t least, vertex most, Property&& property) {
  least = std::min(least, std::max<std::uint64_t>(4, least / testing::slowdown));
  const std::uint64_t count = testing::scaled(all, least);
  const std::uint64_t first = testing::first_of_slice(all, count) - 1;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const vertex n = seed % (most + 1);
    const auto edges = n == 0 ? 0 : static_cast<unsigned>(random() % (n * 3));
    csr_graph g = random_graph(random, n, edges, random() % 2 != 0,
                               random() % 2 != 0 ? weights::any : weights::none);
    g.first = random() % 2;
    SCOPED_TRACE("graph " + std::to_string(seed));
    property(g);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// The entry of an edge.
inline std::optional<std::uint32_t> entry_of(const csr_graph& g, vertex from, vertex to) {
  for (std::uint32_t e = g.row[from]; e < g.row[from + 1]; ++e)
    if (g.column[e] == to) return e;
  return {};
}

inline float weight_of(const csr_graph& g, std::uint32_t entry) {
  return g.weighted() ? g.weight[entry] : 1.0f;
}

}  // namespace grosr::graphs
