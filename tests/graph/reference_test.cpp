// The references find what their definitions say, taken literally, on small graphs.
#include "grosr/graph/reference/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "graph/small_graphs.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

// Calls each(path) for every path without a vertex twice, from the source on.
void for_paths(const csr_graph& g, std::vector<vertex>& path,
               const std::function<void(const std::vector<vertex>&)>& each) {
  each(path);
  const vertex u = path.back();
  for (std::uint32_t e = g.row[u]; e < g.row[u + 1]; ++e) {
    if (std::find(path.begin(), path.end(), g.column[e]) != path.end()) continue;
    path.push_back(g.column[e]);
    for_paths(g, path, each);
    path.pop_back();
  }
}

// The rank equations solved by elimination.
std::vector<double> solved_ranks(const csr_graph& g, double damping) {
  const vertex n = g.vertices();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1, 0));
  for (vertex v = 0; v < n; ++v) a[v][v] = 1, a[v][n] = (1 - damping) / n;
  for (vertex u = 0; u < n; ++u)
    for (vertex v = 0; v < n; ++v) {
      const std::uint32_t out = g.row[u + 1] - g.row[u];
      a[v][u] -= damping * (out == 0 ? 1.0 / n : entry_of(g, u, v) ? 1.0 / out : 0.0);
    }
  for (vertex i = 0; i < n; ++i)  // the diagonal is dominant by columns: no pivots are needed
    for (vertex j = 0; j < n; ++j) {
      if (i == j) continue;
      const double f = a[j][i] / a[i][i];
      for (vertex k = i; k <= n; ++k) a[j][k] -= f * a[i][k];
    }
  std::vector<double> rank(n);
  for (vertex v = 0; v < n; ++v) rank[v] = a[v][n] / a[v][v];
  return rank;
}

TEST(references, bfs_and_shortest_distances_are_least_of_all_paths) {
  for_small_graphs(2000, 200, 7, [](const csr_graph& g) {
    for (vertex source = 0; source < g.vertices(); ++source) {
      std::vector<std::uint32_t> edges(g.vertices(), no_distance);
      std::vector<float> length(g.vertices(), no_length);
      std::vector<vertex> path{source};
      for_paths(g, path, [&](const std::vector<vertex>& p) {
        float sum = 0;
        for (std::size_t i = 1; i < p.size(); ++i)
          sum += weight_of(g, *entry_of(g, p[i - 1], p[i]));
        edges[p.back()] = std::min<std::uint32_t>(edges[p.back()], p.size() - 1);
        length[p.back()] = std::min(length[p.back()], sum);
      });
      ASSERT_EQ(bfs_distances(g, source), edges) << "from " << source;
      ASSERT_EQ(shortest_distances(g, source), length) << "from " << source;
    }
  });
}

TEST(references, labels_are_the_smallest_vertices_that_edges_connect) {
  for_small_graphs(5000, 500, 12, [](const csr_graph& g) {
    const vertex n = g.vertices();
    std::vector<vertex> label(n);
    std::iota(label.begin(), label.end(), vertex{0});
    for (vertex round = 0; round < n; ++round)
      for (vertex u = 0; u < n; ++u)
        for (std::uint32_t e = g.row[u]; e < g.row[u + 1]; ++e)
          label[u] = label[g.column[e]] = std::min(label[u], label[g.column[e]]);
    ASSERT_EQ(component_labels(g), label);
  });
}

TEST(references, ranks_solve_their_equations_and_sum_to_1) {
  for (const double damping : {0.0, 0.5, 0.85, 0.99})
    for_small_graphs(1000, 100, 9, [&](const csr_graph& g) {
      const std::vector<double> rank = pageranks(g, damping, 1e-14),
                                solved = solved_ranks(g, damping);
      ASSERT_EQ(rank.size(), solved.size());
      double sum = 0;
      for (vertex v = 0; v < g.vertices(); ++v) {
        ASSERT_NEAR(rank[v], solved[v], 1e-11) << v;
        sum += rank[v];
      }
      if (g.vertices() > 0) {
        ASSERT_NEAR(sum, 1, 1e-12);
      }
    });
}

TEST(references, ranks_are_as_near_as_the_tolerance_promises) {
  std::mt19937 random(1);
  const csr_graph g = random_graph(random, 300, 900, true, weights::none);
  const std::vector<double> exact = pageranks(g, 0.85, 1e-15);
  for (const double tolerance : {1e-1, 1e-3, 1e-6, 1e-9}) {
    const std::vector<double> rank = pageranks(g, 0.85, tolerance);
    double off = 0;
    for (vertex v = 0; v < g.vertices(); ++v) off += std::abs(rank[v] - exact[v]);
    EXPECT_LE(off, tolerance * 0.85 / 0.15 + 1e-12);
  }
}

TEST(references, ranks_end_with_a_tolerance_that_rounding_does_not_allow) {
  std::mt19937 random(2);
  const csr_graph g = random_graph(random, 100, 300, true, weights::none);
  EXPECT_EQ(pageranks(g, 0.85, 0).size(), 100u);
  EXPECT_EQ(pageranks(g, 0.5, -1).size(), 100u);
}

TEST(references, many_threads_find_the_ranks_that_one_finds) {
  // Copies of a small graph: so large that threads share the work, with ranks known from the copy.
  constexpr vertex n = 10, copies = 2000;
  for (const bool directed : {false, true}) {
    std::mt19937 random(3);
    std::vector<test_edge> one, all;
    for (unsigned i = 0; i < 20; ++i)
      one.push_back({static_cast<vertex>(random() % n), static_cast<vertex>(random() % n)});
    for (vertex c = 0; c < copies; ++c)
      for (const test_edge& e : one) all.push_back({c * n + e.from, c * n + e.to});
    const std::vector<double> few = pageranks(make_graph(n, one, directed), 0.85, 1e-14),
                              many = pageranks(make_graph(n * copies, all, directed), 0.85, 1e-14);
    for (vertex v = 0; v < n * copies; ++v) ASSERT_NEAR(many[v] * copies, few[v % n], 1e-10) << v;
  }
}

TEST(references, a_source_that_is_no_vertex_reaches_none) {
  std::mt19937 random(4);
  for (const vertex n : {0u, 1u, 5u}) {
    const csr_graph g = random_graph(random, n, 3 * n, true, weights::none);
    EXPECT_EQ(bfs_distances(g, n), std::vector<std::uint32_t>(n, no_distance));
    EXPECT_EQ(shortest_distances(g, no_vertex), std::vector<float>(n, no_length));
  }
  EXPECT_TRUE(bfs_distances(csr_graph{}, 0).empty());
  EXPECT_TRUE(component_labels(csr_graph{}).empty());
  EXPECT_TRUE(pageranks(csr_graph{}, 0.85, 1e-9).empty());
}

TEST(references, paths_of_infinite_length_do_not_reach) {
  const csr_graph g = make_graph(3, {{0, 1, 3e38f}, {1, 2, 3e38f}}, true, weights::any);
  EXPECT_EQ(shortest_distances(g, 0), (std::vector<float>{0, 3e38f, no_length}));
}

}  // namespace
}  // namespace grosr::graphs
