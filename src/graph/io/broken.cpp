// What makes a graph: checked of files that hold rows and columns as they are.
#include <fmt/format.h>

#include <atomic>
#include <bit>

#include "graph/io/binary.hpp"
#include "graph/random.hpp"

namespace grosr::graphs {
namespace {

/// A sum over the edges u -> v, u < v, less one over their reverses: 0 if all have theirs, and by a
/// chance of 2^-64 otherwise.
class both_ways {
 public:
  explicit both_ways(const csr_graph& g) : g_(g) {}

  void add(std::uint64_t v, std::uint32_t entry) {
    const std::uint64_t w = g_.column[entry];
    const std::uint64_t weight = g_.weighted() ? std::bit_cast<std::uint32_t>(g_.weight[entry]) : 0;
    const std::uint64_t x =
        mix(mix((std::min(v, w) << 32 | std::max(v, w)) + 0x9e3779b97f4a7c15) + weight);
    sum_ += v < w ? x : -x;
  }
  std::uint64_t sum() const { return sum_; }

 private:
  const csr_graph& g_;
  std::uint64_t sum_ = 0;
};

/// Checks the row of vertex v, which is within the columns.
std::string broken_row(const csr_graph& g, std::uint64_t v, both_ways& sum) {
  std::uint64_t above = 0;
  for (std::uint32_t i = g.row[v]; i < g.row[v + 1]; ++i) {
    const std::uint64_t w = g.column[i];
    if (w >= g.vertices()) return fmt::format("vertex {} has an edge to {}, which is none", v, w);
    if (w == v) return fmt::format("vertex {} has an edge to itself", v);
    if (w < above) return fmt::format("the edges of vertex {} are not in ascending order", v);
    above = w + 1;
    constexpr std::uint32_t infinity = 0x7f80'0000;
    if (g.weighted() && std::bit_cast<std::uint32_t>(g.weight[i]) >= infinity)
      return fmt::format("the edge from {} to {} has weight {}, which is negative or not finite", v,
                         w, g.weight[i]);
    if (!g.directed) sum.add(v, i);
  }
  return {};
}

}  // namespace

std::string broken(const csr_graph& g, host_threads& threads) {
  if (g.row.empty()) return g.column.empty() && g.weight.empty() ? "" : "edges without vertices";
  if (g.weighted() && g.weight.size() != g.column.size()) return "not as many weights as edges";
  if (g.row[0] != 0 || g.row.back() != g.column.size())
    return "its rows do not have as many entries as there are";
  std::atomic<std::uint64_t> wrong{g.vertices()};  // the least vertex with a wrong row
  const auto lower = [&](std::uint64_t v) {
    for (std::uint64_t was = wrong; v < was && !wrong.compare_exchange_weak(was, v);) {
    }
  };
  parallel_for(threads, g.vertices(), [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t v = first; v < last; ++v)
      if (g.row[v] > g.row[v + 1]) return lower(v);
  });
  if (wrong < g.vertices())
    return fmt::format("the row of vertex {} ends before it begins", wrong.load());
  std::atomic<std::uint64_t> difference{0};
  parallel_for(threads, g.vertices(), [&](std::uint64_t first, std::uint64_t last) {
    both_ways sum(g);
    for (std::uint64_t v = first; v < last; ++v)
      if (!broken_row(g, v, sum).empty()) return lower(v);
    difference += sum.sum();
  });
  if (wrong < g.vertices()) {
    both_ways sum(g);
    return broken_row(g, wrong, sum);
  }
  if (difference != 0) return "it is undirected, but not every edge has its other direction";
  return {};
}

}  // namespace grosr::graphs
