// Shortest paths on the resident runtime are those that Dijkstra's algorithm finds, bit for bit.
#include "grosr/graph/sssp.hpp"

#include "baselines/graph/sssp_launched.hpp"
#include "grosr/graph/reference/check.hpp"
#include "grosr/graph/reference/reference.hpp"
#include "small_graphs.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

GROSR_DEVICE_SUITE(sssp_on);
using testing::scaled;

std::string wrong(const device& d, const csr_graph& g, const sssp_options& o,
                  const std::vector<vertex>& sources) {
  const device_graph on(d, g);
  sssp search(on, o);
  for (const vertex s : sources) {
    search.run(s);
    const std::vector<float> got = search.distances();
    const std::string w = wrong_shortest(g, s, got, search.parents());
    if (!w.empty()) return "from " + std::to_string(s) + ": " + w;
    if (got != shortest_distances(g, s)) return "from " + std::to_string(s) + ": other distances";
  }
  return "";
}

csr_graph weighted_grid(vertex side, std::uint32_t seed, bool zeros) {
  std::mt19937 random(seed);
  const auto weight = [&] {
    return zeros && random() % 3 == 0 ? 0.0f : static_cast<float>(random() % 1000 + 1) / 1000;
  };
  std::vector<test_edge> edges;
  for (vertex y = 0; y < side; ++y)
    for (vertex x = 0; x < side; ++x) {
      if (x + 1 < side) edges.push_back({y * side + x, y * side + x + 1, weight()});
      if (y + 1 < side) edges.push_back({y * side + x, y * side + x + side, weight()});
    }
  return make_graph(side * side, edges, false, weights::any);
}

/// Weights of very different sizes: sums are rounded, some do not change by an edge.
TEST_P(sssp_on, small_graphs) {
  for_small_graphs(40, 10, 40, [&](const csr_graph& g) {
    if (g.vertices() == 0) return;
    EXPECT_EQ(wrong(where(), g, {}, {0, g.vertices() - 1}), "");
  });
}

TEST_P(sssp_on, grids) {
  for (const bool zeros : {false, true}) {
    sssp_options o;
    EXPECT_EQ(wrong(where(), weighted_grid(16, 1, zeros), o, {0, 100}), "");
    o.search.tuning.share_above = 4;
    for (const float delta : {1e-3f, 0.1f, 1e6f}) {
      o.delta = delta;
      EXPECT_EQ(wrong(where(), weighted_grid(10, 2, zeros), o, {0}), "") << delta;
    }
  }
}

TEST_P(sssp_on, any_delta_any_graph) {
  for (std::uint64_t i = 0; i < scaled(40, 8); ++i) {
    std::mt19937 random(static_cast<std::uint32_t>(i));
    const vertex n = 50 + random() % 600;
    const csr_graph g = random_graph(random, n, n * (1 + random() % 4), random() % 2 != 0,
                                     random() % 4 != 0 ? weights::any : weights::none);
    sssp_options o;
    o.delta = std::array{0.0f, 1e-6f, 0.3f, 1e5f, 1e30f}[random() % 5];
    o.search.tuning.share_above = 2 + random() % 30;
    ASSERT_EQ(wrong(where(), g, o, {0, n / 2}), "") << "graph " << i;
  }
}

/// Hubs have more entries to be relaxed than a ring or the pool has room for.
TEST_P(sssp_on, stars) {
  std::vector<test_edge> edges;
  std::mt19937 random(3);
  for (vertex v = 1; v < 3000; ++v) {
    edges.push_back({0, v, static_cast<float>(random() % 100)});
    edges.push_back({v, static_cast<vertex>(random() % 3000), static_cast<float>(random() % 10)});
  }
  const csr_graph g = make_graph(3000, edges, false, weights::any);
  EXPECT_EQ(wrong(where(), g, {}, {0, 17}), "");
}

TEST_P(sssp_on, sums_too_large_for_a_float) {
  const csr_graph g =
      make_graph(4, {{0, 1, 3e38f}, {1, 2, 3e38f}, {0, 3, 1.0f}}, true, weights::any);
  EXPECT_EQ(wrong(where(), g, {}, {0}), "");
}

// What it is compared with is right as well.
TEST_P(sssp_on, bellman_ford_by_launches) {
  std::mt19937 random(7);
  std::uint64_t number = 0;
  for (const csr_graph& g :
       {weighted_grid(12, 1, false), weighted_grid(12, 2, true),
        random_graph(random, 300, 1500, true, weights::any),
        random_graph(random, 300, 1500, false, weights::none),
        make_graph(4, {{0, 1, 3e38f}, {1, 2, 3e38f}, {0, 3, 1.0f}}, true, weights::any)}) {
    const device_graph on(where(), g);
    ++number;
    for (const bool ahead : {false, true}) {
      // Dozens of launches that find nothing to do, of hundreds of fibers: sanitizers follow them
      // for one graph.
      if (ahead && testing::slowdown != 1 && number != testing::first_of_slice(5, 1)) continue;
      launched_sssp search(on, ahead);
      for (const vertex s : {vertex{0}, g.vertices() - 1}) {
        search.run(s);
        EXPECT_EQ(search.distances(), shortest_distances(g, s)) << ahead << " from " << s;
      }
    }
  }
}

}  // namespace
}  // namespace grosr::graphs
