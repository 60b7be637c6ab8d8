// Simple forms: a queue, a heap, union-find, and iteration along the edges that lead in.
#include "grosr/graph/reference/reference.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "grosr/graph/detail/openmp.hpp"

namespace grosr::graphs {
namespace {

// For a directed graph, its edges turned round; only rows and columns.
csr_graph turned(const csr_graph& g) {
  const vertex n = g.vertices();
  csr_graph t;
  t.row.assign(std::size_t{n} + 1, 0);
  t.column.resize(g.entries());
  for (const vertex v : g.column) ++t.row[std::size_t{v} + 1];
  std::partial_sum(t.row.begin(), t.row.end(), t.row.begin());
  std::vector<std::uint32_t> next(t.row.begin(), t.row.end() - 1);
  for (vertex u = 0; u < n; ++u)
    for (std::uint32_t e = g.row[u]; e < g.row[u + 1]; ++e) t.column[next[g.column[e]]++] = u;
  return t;
}

// The sum of each(v) over all vertices.
template <class Each>
double sum_over(vertex n, const Each& each) {
  const unsigned threads = threads_for_vertices(n);
  std::atomic<double> sum{0};
  on_threads(threads, [&] {
    double mine = 0;
    each_by_threads(threads, n, 1024,
                    [&](std::uint64_t v) { mine += each(static_cast<vertex>(v)); });
    sum.fetch_add(mine);
  });
  return sum;
}

}  // namespace

std::vector<std::uint32_t> bfs_distances(const csr_graph& g, vertex source) {
  std::vector<std::uint32_t> distance(g.vertices(), no_distance);
  if (source >= g.vertices()) return distance;
  std::vector<vertex> queue{source};
  distance[source] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const vertex u = queue[i];
    for (std::uint32_t e = g.row[u]; e < g.row[u + 1]; ++e) {
      const vertex v = g.column[e];
      if (distance[v] != no_distance) continue;
      distance[v] = distance[u] + 1;
      queue.push_back(v);
    }
  }
  return distance;
}

std::vector<float> shortest_distances(const csr_graph& g, vertex source) {
  std::vector<float> distance(g.vertices(), no_length);
  if (source >= g.vertices()) return distance;
  using entry = std::pair<float, vertex>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> queue;
  distance[source] = 0;
  queue.push({0.0f, source});
  while (!queue.empty()) {
    const auto [length, u] = queue.top();
    queue.pop();
    if (length > distance[u]) continue;
    for (std::uint32_t e = g.row[u]; e < g.row[u + 1]; ++e) {
      const vertex v = g.column[e];
      const float found = length + (g.weighted() ? g.weight[e] : 1.0f);
      if (!(found < distance[v])) continue;
      distance[v] = found;
      queue.push({found, v});
    }
  }
  return distance;
}

std::vector<vertex> component_labels(const csr_graph& g) {
  std::vector<vertex> above(g.vertices());  // a smaller vertex of the component, or itself
  std::iota(above.begin(), above.end(), vertex{0});
  const auto top = [&](vertex v) {
    while (above[v] != v) v = above[v] = above[above[v]];
    return v;
  };
  for (vertex u = 0; u < g.vertices(); ++u)
    for (std::uint32_t e = g.row[u]; e < g.row[u + 1]; ++e) {
      const vertex a = top(u), b = top(g.column[e]);
      above[std::max(a, b)] = std::min(a, b);
    }
  for (vertex& v : above) v = above[v];  // in ascending order: what is above has its label already
  return above;
}

std::vector<double> pageranks(const csr_graph& g, double damping, double tolerance) {
  const vertex n = g.vertices();
  if (n == 0) return {};
  const csr_graph reversed = g.directed ? turned(g) : csr_graph{};
  const csr_graph& in = g.directed ? reversed : g;
  std::vector<double> rank(n, 1.0 / n), next(n), gives(n);
  double change = 2;
  // Exact changes would be at most `most`, and below 1e-20 it is all rounding.
  for (double most = 2; change >= tolerance && most >= std::max(tolerance, 1e-20);
       most *= damping) {
    const double idle = sum_over(n, [&](vertex u) {
      const std::uint32_t edges = g.row[u + 1] - g.row[u];
      gives[u] = edges != 0 ? rank[u] / edges : 0;
      return edges != 0 ? 0 : rank[u];
    });
    change = sum_over(n, [&](vertex v) {
      double sum = idle / n;
      for (std::uint32_t e = in.row[v]; e < in.row[v + 1]; ++e) sum += gives[in.column[e]];
      next[v] = (1 - damping) / n + damping * sum;
      return std::abs(next[v] - rank[v]);
    });
    std::swap(rank, next);
  }
  return rank;
}

}  // namespace grosr::graphs
