// Rules that hold at each vertex, checked by all threads; what is left is done by one.
#include "grosr/graph/reference/check.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

#include "grosr/graph/detail/openmp.hpp"
#include "grosr/graph/reference/reference.hpp"

namespace grosr::graphs {
namespace {

std::string name(const csr_graph& g, vertex v) {
  return v == no_vertex ? "none" : std::to_string(std::uint64_t{g.first} + v);
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string shown(std::uint32_t distance) {
  return distance == no_distance ? "none" : std::to_string(distance);
}
std::string shown(float distance) { return distance == no_length ? "none" : number(distance); }

std::string wrong_size(const csr_graph& g, const char* what, std::size_t size) {
  if (size == g.vertices()) return {};
  return "there are " + std::to_string(size) + " " + what + " for " + std::to_string(g.vertices()) +
         " vertices";
}

// The first of the sentences wrong(v) that is not empty.
template <class Wrong>
std::string first_wrong(vertex n, const Wrong& wrong) {
  const unsigned threads = threads_for_vertices(n);
  std::atomic<vertex> first{no_vertex};
  on_threads(threads, [&] {
    each_by_threads(threads, n, 1024, [&](std::uint64_t i) {
      const auto v = static_cast<vertex>(i);
      vertex now = first.load(std::memory_order_relaxed);
      if (v > now || wrong(v).empty()) return;
      while (v < now && !first.compare_exchange_weak(now, v)) {
      }
    });
  });
  return first == no_vertex ? std::string{} : wrong(first);
}

// The number of the edge's entry.
std::optional<std::uint32_t> find_edge(const csr_graph& g, vertex from, vertex to) {
  if (from >= g.vertices()) return {};
  const auto begin = g.column.begin() + g.row[from], end = g.column.begin() + g.row[from + 1];
  const auto at = std::lower_bound(begin, end, to);
  if (at == end || *at != to) return {};
  return static_cast<std::uint32_t>(at - g.column.begin());
}

// The rules of breadth-first search and of shortest paths, which differ in what a distance is:
// after(d, e) is the distance that entry e makes out of d.
template <class Distance, class After>
std::string wrong_tree_at(const csr_graph& g, vertex source, std::span<const Distance> distance,
                          std::span<const vertex> parent, Distance none, const After& after,
                          vertex v) {
  const Distance d = distance[v];
  const vertex p = parent[v];
  const auto me = [&] { return name(g, v); };
  if (v == source) {
    if (d != 0)
      return "the source, vertex " + me() + ", has distance " + shown(d) + " instead of 0";
    if (p != v) return "the parent of the source, vertex " + me() + ", is " + name(g, p);
  } else if (d == none) {
    if (p != no_vertex) return "vertex " + me() + " was not reached and has parent " + name(g, p);
  } else {
    if (p == no_vertex) return "vertex " + me() + " has distance " + shown(d) + " and no parent";
    const auto e = find_edge(g, p, v);
    if (!e) return "no edge leads to vertex " + me() + " from its parent " + name(g, p);
    if (distance[p] == none || after(distance[p], *e) != d)
      return "vertex " + me() + " has distance " + shown(d) + " and its parent " + name(g, p) +
             " has " + shown(distance[p]);
  }
  if (d == none) return {};
  for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e)
    if (const vertex to = g.column[e]; !(distance[to] <= after(d, e)))
      return "an edge leads from vertex " + me() + " with distance " + shown(d) + " to " +
             name(g, to) + " with " + shown(distance[to]);
  return {};
}

// Parents that are right one by one can only lead in a circle along edges that do not change the
// distance.
std::string circle_of_parents(const csr_graph& g, vertex source, std::span<const float> distance,
                              std::span<const vertex> parent) {
  const auto same = [&](vertex v) {
    return v != source && parent[v] != no_vertex && distance[parent[v]] == distance[v];
  };
  const vertex n = g.vertices();
  const unsigned threads = threads_for_vertices(n);
  std::atomic<bool> any{false};
  on_threads(threads, [&] {
    each_by_threads(threads, n, 1024, [&](std::uint64_t v) {
      if (same(static_cast<vertex>(v))) any.store(true, std::memory_order_relaxed);
    });
  });
  if (!any) return {};
  enum : std::uint8_t { unknown, on_path, leads_on };
  std::vector<std::uint8_t> state(n, unknown);
  for (vertex v = 0; v < n; ++v) {
    vertex u = v;
    for (; same(u) && state[u] == unknown; u = parent[u]) state[u] = on_path;
    if (state[u] == on_path)
      return "the parents of vertex " + name(g, v) + " lead in a circle through " + name(g, u);
    for (u = v; state[u] == on_path; u = parent[u]) state[u] = leads_on;
  }
  return {};
}

}  // namespace

std::string wrong_bfs(const csr_graph& g, vertex source, std::span<const std::uint32_t> distance,
                      std::span<const vertex> parent) {
  std::string wrong = wrong_size(g, "distances", distance.size());
  if (wrong.empty()) wrong = wrong_size(g, "parents", parent.size());
  if (!wrong.empty()) return wrong;
  const auto after = [](std::uint32_t d, std::uint32_t) { return d + 1; };
  return first_wrong(g.vertices(), [&](vertex v) {
    return wrong_tree_at(g, source, distance, parent, no_distance, after, v);
  });
}

std::string wrong_shortest(const csr_graph& g, vertex source, std::span<const float> distance,
                           std::span<const vertex> parent) {
  std::string wrong = wrong_size(g, "distances", distance.size());
  if (wrong.empty()) wrong = wrong_size(g, "parents", parent.size());
  if (!wrong.empty()) return wrong;
  const auto after = [&](float d, std::uint32_t e) {
    return d + (g.weighted() ? g.weight[e] : 1.0f);
  };
  wrong = first_wrong(g.vertices(), [&](vertex v) {
    return wrong_tree_at(g, source, distance, parent, no_length, after, v);
  });
  return wrong.empty() ? circle_of_parents(g, source, distance, parent) : wrong;
}

std::string wrong_components(const csr_graph& g, std::span<const vertex> label) {
  if (std::string wrong = wrong_size(g, "labels", label.size()); !wrong.empty()) return wrong;
  const std::vector<vertex> right = component_labels(g);
  for (vertex v = 0; v < g.vertices(); ++v)
    if (label[v] != right[v])
      return "vertex " + name(g, v) + " has label " + name(g, label[v]) + " instead of " +
             name(g, right[v]) + ", the smallest vertex of its component";
  return {};
}

std::string wrong_ranks(const csr_graph& g, double damping, std::span<const float> rank,
                        double tolerance) {
  if (std::string wrong = wrong_size(g, "ranks", rank.size()); !wrong.empty()) return wrong;
  const std::vector<double> right = pageranks(g, damping, tolerance * (1 - damping) / 100);
  double sum = 0, most = -1;
  vertex at = 0;
  for (vertex v = 0; v < g.vertices(); ++v) {
    const double off = std::abs(rank[v] - right[v]);
    if (!std::isfinite(rank[v]))
      return "the rank of vertex " + name(g, v) + " is " + number(rank[v]);
    sum += off;
    if (off > most) most = off, at = v;
  }
  if (sum <= tolerance) return {};
  return "ranks differ by " + number(sum) + " in all from exact ones, more than " +
         number(tolerance) + "; most at vertex " + name(g, at) + ": " + number(rank[at]) +
         " instead of " + number(right[at]);
}

}  // namespace grosr::graphs
