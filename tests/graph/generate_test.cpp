// Generators make what they promise, the same every time.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "input_files.hpp"

namespace grosr::graphs {
namespace {

loaded make(const std::string& name, unsigned threads = 4, std::uint64_t weights = 0) {
  return load(name, {.random_weights = weights}, in_small_chunks(1 << 20, threads));
}

TEST(graph_generators, chains_are_chains) {
  for (const vertex n : {0u, 1u, 2u, 3u, 1000u, 100'000u}) {
    std::vector<test_edge> edges;
    for (vertex v = 1; v < n; ++v) edges.push_back({v - 1, v});
    expect_same(make("chain:" + std::to_string(n)).g, make_graph(n, edges, false));
  }
}

TEST(graph_generators, grids_are_grids) {
  for (const vertex rows : {1u, 2u, 7u, 130u})
    for (const vertex columns : {1u, 3u, 90u}) {
      std::vector<test_edge> edges;
      for (vertex r = 0; r < rows; ++r)
        for (vertex c = 0; c < columns; ++c) {
          if (c + 1 < columns) edges.push_back({r * columns + c, r * columns + c + 1});
          if (r + 1 < rows) edges.push_back({r * columns + c, (r + 1) * columns + c});
        }
      expect_same(make("grid:" + std::to_string(rows) + "x" + std::to_string(columns)).g,
                  make_graph(rows * columns, edges, false));
    }
}

TEST(graph_generators, grids_lose_the_share_of_edges_that_was_asked_for) {
  const double all = 2 * 300.0 * 299.0;
  for (const double share : {0.0, 0.1, 0.5, 0.9}) {
    const csr_graph g = make("grid:300x300,removed=" + std::to_string(share) + ",seed=3").g;
    expect_graph(g);
    const double deviation = std::sqrt(all * share * (1 - share));
    EXPECT_NEAR(static_cast<double>(g.edges()), all * (1 - share), 5 * deviation);
  }
  EXPECT_NE(make("grid:30x30,removed=0.5,seed=1").g.column,
            make("grid:30x30,removed=0.5,seed=2").g.column);
}

TEST(graph_generators, kronecker_graphs_have_the_edges_and_the_skew_of_graph500) {
  for (const unsigned scale : {0u, 1u, 5u, 14u}) {
    const loaded got = make("kronecker:" + std::to_string(scale));
    expect_graph(got.g);
    EXPECT_EQ(got.g.vertices(), 1u << scale);
    EXPECT_EQ(got.g.edges() + got.dropped.loops + got.dropped.duplicates, 16u << scale);
  }
  const csr_graph g = make("kronecker:14,seed=5").g;
  std::uint32_t most = 0, isolated = 0, hub = 0;
  for (vertex v = 0; v < g.vertices(); ++v) {
    const std::uint32_t degree = g.row[v + 1] - g.row[v];
    if (degree > most) hub = v;
    most = std::max(most, degree);
    isolated += degree == 0;
  }
  // The likeliest vertex is drawn with 0.76^14 = 2.1%: 11,000 of 524,288 ends, some of them twice.
  EXPECT_GT(most, 3000u);
  EXPECT_LT(most, 12'000u);
  EXPECT_GT(isolated, 2000u);
  EXPECT_NE(hub, 0u);  // vertices are shuffled
}

TEST(graph_generators, kronecker_quadrants_have_their_shares) {
  // At scale 1 the shuffle may exchange the two vertices, which A and D tell apart.
  const loaded got = make("kronecker:1,factor=100000");
  EXPECT_EQ(got.g.edges(), 1u);
  EXPECT_NEAR(static_cast<double>(got.dropped.loops), 200'000 * 0.62,
              5 * std::sqrt(200'000 * 0.24));
}

TEST(graph_generators, random_graphs_have_their_degree) {
  const loaded got = make("random:10000,degree=7");
  expect_graph(got.g);
  EXPECT_EQ(got.g.edges() + got.dropped.loops + got.dropped.duplicates, 35'000u);
  EXPECT_LT(got.dropped.loops + got.dropped.duplicates, 70u);
  for (const char* const name : {"random:0", "random:1", "random:2", "random:1000,degree=0"})
    expect_graph(make(name).g);
  EXPECT_EQ(make("random:10,degree=0").g.entries(), 0u);
}

TEST(graph_generators, graphs_depend_on_seeds_and_not_on_threads) {
  for (const std::string name : {"kronecker:11", "random:3000", "grid:80x80,removed=0.3"}) {
    const csr_graph g = make(name + ",seed=1", 1, 9).g;
    expect_same(make(name + ",seed=1", 5, 9).g, g);
    expect_same(make(name, 2, 9).g, g);
    const csr_graph other = make(name + ",seed=2", 2, 9).g;
    EXPECT_NE(other.column, g.column);
    EXPECT_NE(make(name, 2, 10).g.weight, g.weight);
  }
}

/// So that results of measurements stay comparable.
TEST(graph_generators, graphs_stay_what_they_were) {
  const auto sum = [](const std::string& name) {
    const csr_graph g = make(name, 4, 1).g;
    std::uint64_t h = 0;
    for (const vertex c : g.column) h = h * 0x9e3779b97f4a7c15 + c;
    for (const float w : g.weight) h = h * 0x9e3779b97f4a7c15 + std::bit_cast<std::uint32_t>(w);
    return h;
  };
  EXPECT_EQ(sum("kronecker:10"), 12448989335456800264u);
  EXPECT_EQ(sum("random:1000"), 4895354703320034837u);
  EXPECT_EQ(sum("grid:20x20,removed=0.2"), 3901246944361015558u);
}

TEST(graph_generators, random_weights_are_uniform_and_the_same_both_ways) {
  const csr_graph g = make("random:20000", 4, 42).g;
  expect_graph(g);
  double total = 0;
  for (const float w : g.weight) {
    ASSERT_GT(w, 0);
    ASSERT_LE(w, 1);
    total += w;
  }
  EXPECT_NEAR(total / g.entries(), 0.5, 0.005);
  const folder f;  // they do not replace weights
  const std::string path = f.write("g", "0 1 7\n");
  EXPECT_EQ(load(path, {.random_weights = 1, .threads = 1}).g.weight[0], 7.0f);
}

TEST(graph_generators, what_they_cannot_make_they_refuse) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"chain:", "chain:: no size; give chain:N"},
      {"chain:x", "chain:x: N is \"x\"; give a whole number from 0"},
      {"chain:-1", "chain:-1: N is \"-1\""},
      {"chain:5,seed=1", "chain:5,seed=1: \"seed=1\" is no option of it; give chain:N"},
      {"chain:5000000000", "chain:5000000000: N is \"5000000000\""},
      {"chain:3G", "chain:3G: 2,999,999,999 undirected edges"},
      {"chain:3000000000", "chain:3000000000: 2,999,999,999 undirected edges; a graph has"},
      {"grid:10", "grid:10: \"10\" is no size; give ROWSxCOLUMNS"},
      {"grid:0x4", "grid:0x4: ROWS is \"0\""},
      {"grid:4x", "grid:4x: COLUMNS is \"\""},
      {"grid:100000x100000", "grid:100000x100000: 10,000,000,000 vertices"},
      {"grid:4294967294x4294967294", "grid:4294967294x4294967294: "},
      {"grid:4x4,removed=0.95", "grid:4x4,removed=0.95: removed is \"0.95\"; give a share"},
      {"grid:4x4,removed=nan", "grid:4x4,removed=nan: removed is \"nan\""},
      {"grid:4x4,removed=", "grid:4x4,removed=: removed is \"\""},
      {"grid:4x4,", "grid:4x4,: ends in a comma"},
      {"grid:4x4,,seed=1", "grid:4x4,,seed=1: \"\" is no option"},
      {"kronecker:32", "kronecker:32: SCALE is \"32\"; give a whole number from 0 to 31"},
      {"kronecker:28", "kronecker:28: 4,294,967,296 undirected edges"},
      {"kronecker:31,factor=4294967294", "kronecker:31,factor=4294967294: "},
      {"kronecker:5,factor=x", "kronecker:5,factor=x: factor is \"x\""},
      {"kronecker:5,seed=99999999999999999999", "kronecker:5,seed=99999999999999999999: seed"},
      {"kronecker:5,degree=4", "kronecker:5,degree=4: \"degree=4\" is no option"},
      {"random:4294967294,degree=4294967294", "random:4294967294,degree=4294967294: "},
      {"random:5,degree", "random:5,degree: \"degree\" is no option"},
      {"kroneker:5", "kroneker:5: No such file or directory; give a file with a graph, or a gener"},
  };
  for (const auto& [name, says] : all)
    EXPECT_EQ(refusal([&, name = name] { make(name); }).substr(0, says.size()), says);
}

}  // namespace
}  // namespace grosr::graphs
