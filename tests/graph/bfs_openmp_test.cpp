// The search of the CPU finds what is right, in both directions, with any number of threads.
#include "baselines/graph/bfs_openmp.hpp"

#include <gtest/gtest.h>

#include "graph/small_graphs.hpp"
#include "grosr/graph/reference/check.hpp"
#include "grosr/graph/reference/reference.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

void expect_right(openmp_bfs& search, const csr_graph& g, vertex source) {
  search.run(source);
  const auto distance = search.distance();
  ASSERT_EQ(std::vector(distance.begin(), distance.end()), bfs_distances(g, source));
  ASSERT_EQ(wrong_bfs(g, source, distance, search.parent()), "");
}

TEST(openmp_bfs, finds_what_is_right_on_small_graphs) {
  for (const unsigned threads : {1u, 3u})
    for_small_graphs(400, 50, 80, [&](const csr_graph& g) {
      openmp_bfs search(g, threads);
      for (vertex source = 0; source < g.vertices(); source += 7) expect_right(search, g, source);
      search.run(g.vertices());
      for (vertex v = 0; v < g.vertices(); ++v) {
        ASSERT_EQ(search.distance()[v], no_distance);
        ASSERT_EQ(search.parent()[v], no_vertex);
      }
    });
}

TEST(openmp_bfs, finds_levels_from_below_in_dense_graphs_and_from_above_otherwise) {
  std::mt19937 random(1);
  for (const auto& [n, edges] :
       {std::pair{20'000u, 200'000u}, {20'000u, 22'000u}, {4'097u, 90'000u}})
    for (const bool directed : {false, true}) {
      const csr_graph g = random_graph(random, n, edges, directed, weights::none);
      for (const unsigned threads : {1u, 2u, 5u}) {
        openmp_bfs search(g, threads);
        for (std::uint64_t i = 0; i < testing::scaled(10, 2); ++i)
          expect_right(search, g, static_cast<vertex>(random() % n));
        if (directed) {
          EXPECT_EQ(search.levels_from_below(), 0u);
        }
        if (!directed && edges > 4 * n) {
          EXPECT_GT(search.levels_from_below(), 0u);
        }
      }
    }
}

TEST(openmp_bfs, changes_direction_and_back) {
  // A dense part, then a chain, then a dense part, then a chain.
  constexpr vertex part = 2'000, chain = 500;
  std::mt19937 random(2);
  std::vector<test_edge> edges;
  vertex n = 0;
  for (int times = 0; times < 2; ++times) {
    for (vertex i = 0; i < part * 10; ++i)
      edges.push_back(
          {n + static_cast<vertex>(random() % part), n + static_cast<vertex>(random() % part)});
    for (vertex i = 1; i < part; ++i) edges.push_back({n, n + i});
    n += part;
    for (vertex i = 0; i < chain; ++i, ++n) edges.push_back({n - 1, n});
    edges.push_back({n - 1, n});
  }
  const csr_graph g = make_graph(n + 1, edges, false);
  for (const unsigned threads : {1u, 4u}) {
    openmp_bfs search(g, threads);
    for (const vertex source : {0u, part, part + chain, n}) {
      expect_right(search, g, source);
      EXPECT_GT(search.levels_from_below(), 0u);
      EXPECT_LT(search.levels_from_below(), chain);
    }
  }
}

TEST(openmp_bfs, follows_a_chain_to_its_end) {
  const vertex n = 100'000;
  std::vector<test_edge> edges;
  for (vertex v = 1; v < n; ++v) edges.push_back({v - 1, v});
  for (const bool directed : {false, true}) {
    const csr_graph g = make_graph(n, edges, directed);
    openmp_bfs search(g);
    expect_right(search, g, 0);
    EXPECT_EQ(search.distance()[n - 1], n - 1);
  }
}

}  // namespace
}  // namespace grosr::graphs
