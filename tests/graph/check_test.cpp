// Checks accept all that is right and nothing else.
#include "grosr/graph/reference/check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/small_graphs.hpp"
#include "grosr/graph/reference/reference.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// What a parent may be, beside distances that are right: written down a second time, by walking.
template <class Distance>
bool is_tree(const csr_graph& g, vertex source, const std::vector<Distance>& right, Distance none,
             const std::vector<vertex>& parent, bool by_edges) {
  const vertex n = g.vertices();
  for (vertex v = 0; v < n; ++v) {
    if (right[v] == none) {
      if (parent[v] != no_vertex) return false;
      continue;
    }
    vertex u = v;
    for (vertex steps = 0; u != source; ++steps) {
      const vertex p = parent[u];
      if (p >= n || steps == n || right[p] == none) return false;
      const auto e = entry_of(g, p, u);
      if (!e) return false;
      const Distance step = by_edges ? Distance{1} : static_cast<Distance>(weight_of(g, *e));
      if (right[p] + step != right[u]) return false;
      u = p;
    }
    if (parent[u] != source) return false;
  }
  return true;
}

bool is_bfs(const csr_graph& g, vertex source, const std::vector<std::uint32_t>& distance,
            const std::vector<vertex>& parent) {
  const auto right = bfs_distances(g, source);
  return distance == right && is_tree(g, source, right, no_distance, parent, true);
}

bool is_shortest(const csr_graph& g, vertex source, const std::vector<float>& distance,
                 const std::vector<vertex>& parent) {
  const auto right = shortest_distances(g, source);
  return distance == right && is_tree(g, source, right, no_length, parent, false);
}

// Parents that are right: from rounds over all edges, each vertex after its parent.
template <class Distance>
std::vector<vertex> some_parents(const csr_graph& g, vertex source,
                                 const std::vector<Distance>& right, bool by_edges) {
  std::vector<vertex> parent(g.vertices(), no_vertex);
  parent[source] = source;
  for (vertex round = 0; round < g.vertices(); ++round)
    for (vertex u = 0; u < g.vertices(); ++u)
      for (std::uint32_t e = g.row[u]; e < g.row[u + 1] && parent[u] != no_vertex; ++e) {
        const vertex v = g.column[e];
        const Distance step = by_edges ? Distance{1} : static_cast<Distance>(weight_of(g, e));
        if (parent[v] == no_vertex && right[u] + step == right[v]) parent[v] = u;
      }
  return parent;
}

// Calls then() with each of `values` in place of each element of `all`.
template <class T, class Then>
void with_each(std::vector<T>& all, const std::vector<T>& values, const Then& then) {
  for (T& x : all) {
    const T was = x;
    for (const T value : values) {
      x = value;
      then();
    }
    x = was;
  }
}

std::vector<vertex> all_parents(vertex n) {
  std::vector<vertex> all{no_vertex, no_vertex - 1};
  for (vertex v = 0; v <= n; ++v) all.push_back(v);
  return all;
}

TEST(checks, of_bfs_accept_what_is_right_after_any_one_change) {
  std::uint64_t accepted = 0, rejected = 0;
  for_small_graphs(400, 50, 9, [&](const csr_graph& g) {
    for (vertex source = 0; source < g.vertices(); ++source) {
      auto distance = bfs_distances(g, source);
      auto parent = some_parents(g, source, distance, true);
      ASSERT_EQ(wrong_bfs(g, source, distance, parent), "");
      const auto compare = [&] {
        const bool right = is_bfs(g, source, distance, parent);
        ASSERT_EQ(wrong_bfs(g, source, distance, parent).empty(), right);
        ++(right ? accepted : rejected);
      };
      std::vector<std::uint32_t> values{no_distance, no_distance - 1};
      for (std::uint32_t d = 0; d <= g.vertices(); ++d) values.push_back(d);
      with_each(distance, values, compare);
      with_each(parent, all_parents(g.vertices()), compare);
    }
  });
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(rejected, accepted);
}

TEST(checks, of_shortest_paths_accept_what_is_right_after_any_one_change) {
  std::uint64_t accepted = 0, rejected = 0;
  for_small_graphs(400, 50, 9, [&](const csr_graph& g) {
    for (vertex source = 0; source < g.vertices(); ++source) {
      auto distance = shortest_distances(g, source);
      auto parent = some_parents(g, source, distance, false);
      ASSERT_EQ(wrong_shortest(g, source, distance, parent), "");
      const auto compare = [&] {
        const bool right = is_shortest(g, source, distance, parent);
        ASSERT_EQ(wrong_shortest(g, source, distance, parent).empty(), right);
        ++(right ? accepted : rejected);
      };
      std::vector<float> values{no_length, nan, -no_length, -1, 0, 1, 1e-3f, 3e38f};
      for (const float d : shortest_distances(g, source))
        values.insert(values.end(), {d, std::nextafter(d, -1.0f), std::nextafter(d, no_length)});
      with_each(distance, values, compare);
      with_each(parent, all_parents(g.vertices()), compare);
    }
  });
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(rejected, accepted);
}

// Graph `index` of all those with 3 vertices: each of 6 entries is missing or has one of `kinds`
// weights, 0, 1, ...
csr_graph graph_of_three(unsigned index, unsigned kinds, weights w) {
  std::vector<test_edge> edges;
  for (vertex u = 0; u < 3; ++u)
    for (vertex v = 0; v < 3; ++v) {
      if (u == v) continue;
      if (const unsigned kind = index % (kinds + 1); kind > 0)
        edges.push_back({u, v, static_cast<float>(kind - 1)});
      index /= kinds + 1;
    }
  return make_graph(3, edges, true, w);
}

// Calls then(distance, parent) for all distances and parents of 3 vertices.
template <class T, class Then>
void for_all_of_three(const std::vector<T>& values, const Then& then) {
  const std::vector<vertex> vertices{0, 1, 2, 3, no_vertex};
  std::vector<T> d(3);
  std::vector<vertex> p(3);
  for (T a : values)
    for (T b : values)
      for (T c : values)
        for (vertex i : vertices)
          for (vertex j : vertices)
            for (vertex k : vertices) {
              d = {a, b, c};
              p = {i, j, k};
              then(d, p);
            }
}

TEST(checks, of_bfs_accept_exactly_what_is_right_on_all_graphs_of_three) {
  const auto step = static_cast<unsigned>(std::max(1.0, 1 / testing::scale()));
  for (unsigned index = 0; index < 64; index += step) {
    const csr_graph g = graph_of_three(index, 1, weights::none);
    std::uint64_t accepted = 0;
    const std::vector<std::uint32_t> values{0, 1, 2, no_distance - 1, no_distance};
    for_all_of_three(values, [&](const auto& distance, const auto& parent) {
      const bool right = is_bfs(g, 0, distance, parent);
      if (wrong_bfs(g, 0, distance, parent).empty() != right) ADD_FAILURE() << index;
      accepted += right;
    });
    EXPECT_GE(accepted, 1u);
    EXPECT_LE(accepted, 2u);
  }
}

TEST(checks, of_shortest_paths_accept_exactly_what_is_right_on_graphs_of_three) {
  const auto step = static_cast<unsigned>(std::max(1.0, 13 / testing::scale()));
  for (unsigned index = 0; index < 729; index += step) {
    const csr_graph g = graph_of_three(index, 2, weights::any);
    std::uint64_t accepted = 0;
    const std::vector<float> values{0, 1, 2, no_length, nan};
    for_all_of_three(values, [&](const auto& distance, const auto& parent) {
      const bool right = is_shortest(g, 0, distance, parent);
      if (wrong_shortest(g, 0, distance, parent).empty() != right) ADD_FAILURE() << index;
      accepted += right;
    });
    EXPECT_GE(accepted, 1u);
  }
}

TEST(checks, of_shortest_paths_find_circles_of_edges_without_length) {
  // 1 - 2 - 3 - 1 have no length between them, and 4 hangs on 3; all are as far as 1.
  const csr_graph g =
      make_graph(5, {{0, 1, 5}, {1, 2, 0}, {2, 3, 0}, {3, 1, 0}, {3, 4, 0}}, false, weights::any);
  const std::vector<float> distance{0, 5, 5, 5, 5};
  EXPECT_EQ(wrong_shortest(g, 0, distance, std::vector<vertex>{0, 0, 1, 2, 3}), "");
  EXPECT_EQ(wrong_shortest(g, 0, distance, std::vector<vertex>{0, 3, 1, 2, 3}),
            "the parents of vertex 1 lead in a circle through 1");
  EXPECT_EQ(wrong_shortest(g, 0, distance, std::vector<vertex>{0, 0, 3, 4, 3}),
            "the parents of vertex 2 lead in a circle through 3");
}

TEST(checks, of_components_accept_the_right_labels_alone) {
  for_small_graphs(1000, 100, 9, [](const csr_graph& g) {
    auto label = component_labels(g);
    ASSERT_EQ(wrong_components(g, label), "");
    const auto right = label;
    with_each(label, all_parents(g.vertices()),
              [&] { ASSERT_EQ(wrong_components(g, label).empty(), label == right); });
  });
}

TEST(checks, of_ranks_measure_the_differences) {
  for_small_graphs(200, 50, 9, [](const csr_graph& g) {
    const std::vector<double> exact = pageranks(g, 0.85, 1e-15);
    std::vector<float> rank(exact.begin(), exact.end());
    ASSERT_EQ(wrong_ranks(g, 0.85, rank, 1e-6), "");
    ASSERT_EQ(wrong_ranks(g, 0.85, std::vector<float>(g.vertices(), 5), 5 * g.vertices()), "");
    for (float& r : rank) {
      const float was = r;
      for (const float off : {-0.1f, -1.1e-3f, 1.1e-3f, 3e38f, no_length, -no_length, nan}) {
        r = was + off;
        ASSERT_NE(wrong_ranks(g, 0.85, rank, 1e-3), "") << off;
      }
      for (const float off : {-0.9e-3f, 0.9e-3f}) {
        r = was + off;
        ASSERT_EQ(wrong_ranks(g, 0.85, rank, 1e-3), "") << off;
      }
      r = was;
    }
  });
}

TEST(checks, find_one_wrong_vertex_among_many_and_name_the_smallest) {
  std::mt19937 random(5);
  const vertex n = 50'000;
  const csr_graph g = random_graph(random, n, 100'000, false, weights::any);
  auto distance = bfs_distances(g, 0);
  std::vector<vertex> parent(n, no_vertex);
  parent[0] = 0;
  for (vertex u = 0; u < n; ++u)
    for (std::uint32_t e = g.row[u]; e < g.row[u + 1] && distance[u] != no_distance; ++e)
      if (distance[g.column[e]] == distance[u] + 1) parent[g.column[e]] = u;
  EXPECT_EQ(wrong_bfs(g, 0, distance, parent), "");
  vertex last = n - 1, reached = 0;
  while (distance[last] == no_distance) --last;
  for (vertex v = 0; v < n; ++v) reached += distance[v] != no_distance;
  ASSERT_GT(reached, n / 2);

  parent[last] = no_vertex;
  const std::string one = wrong_bfs(g, 0, distance, parent);
  EXPECT_NE(one.find("vertex " + std::to_string(last) + " "), one.npos) << one;
  for (vertex v = 1'000; v < n; ++v) parent[v] = no_vertex;
  vertex smallest = 1'000;
  while (distance[smallest] == no_distance) ++smallest;
  for (int i = 0; i < 20; ++i) {
    const std::string all = wrong_bfs(g, 0, distance, parent);
    ASSERT_NE(all.find("vertex " + std::to_string(smallest) + " "), all.npos) << all;
  }
}

TEST(checks, say_what_is_wrong_with_the_numbers_of_the_input) {
  csr_graph g = make_graph(4, {{0, 1}, {1, 2}}, false);
  g.first = 1;
  using d = std::vector<std::uint32_t>;
  using f = std::vector<float>;
  using p = std::vector<vertex>;
  const vertex none = no_vertex;
  const std::uint32_t far = no_distance;
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1}, p{}), "there are 2 distances for 4 vertices");
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1, 2, far}, p{}), "there are 0 parents for 4 vertices");
  EXPECT_EQ(wrong_bfs(g, 0, d{1, 1, 2, far}, p{0, 0, 1, none}),
            "the source, vertex 1, has distance 1 instead of 0");
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1, 2, far}, p{1, 0, 1, none}),
            "the parent of the source, vertex 1, is 2");
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1, 2, far}, p{0, 0, 1, 1}),
            "vertex 4 was not reached and has parent 2");
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1, 2, far}, p{0, 0, none, none}),
            "vertex 3 has distance 2 and no parent");
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1, 2, far}, p{0, 0, 0, none}),
            "no edge leads to vertex 3 from its parent 1");
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1, 1, far}, p{0, 0, 1, none}),
            "vertex 3 has distance 1 and its parent 2 has 1");
  EXPECT_EQ(wrong_bfs(g, 0, d{0, 1, far, far}, p{0, 0, none, none}),
            "an edge leads from vertex 2 with distance 1 to 3 with none");
  EXPECT_EQ(wrong_shortest(g, 0, f{0, 1, 2.5f, no_length}, p{0, 0, 1, none}),
            "an edge leads from vertex 2 with distance 1 to 3 with 2.5");
  EXPECT_EQ(wrong_components(g, p{0, 0, 2, 3}),
            "vertex 3 has label 3 instead of 1, the smallest vertex of its component");
  EXPECT_EQ(wrong_ranks(g, 0, f{0.25f, nan, 0.5f, 0.25f}, 1e-3), "the rank of vertex 2 is nan");
  const std::string ranks = wrong_ranks(g, 0, f{0.25f, 0.25f, 0.5f, 0.25f}, 1e-3);
  EXPECT_EQ(ranks,
            "ranks differ by 0.25 in all from exact ones, more than 0.001; most at vertex 3: 0.5 "
            "instead of 0.25");
}

}  // namespace
}  // namespace grosr::graphs
