#include "colours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "grosr/graph/io/build.hpp"

namespace grosr::distributed {

using graphs::csr_graph, graphs::vertex;

csr_graph both_ways(const csr_graph& g) {
  graphs::edge_list edges;
  for (vertex v = 0; v < g.vertices(); ++v)
    for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e)
      if (g.directed || v < g.column[e]) edges.add({v, g.column[e]});
  graphs::left_out dropped;
  csr_graph all = graphs::build(std::move(edges), g.vertices(), false, dropped);
  all.first = g.first;
  return all;
}

std::vector<std::uint32_t> first_fit(const csr_graph& g) {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<vertex> order(g.vertices());
  std::iota(order.begin(), order.end(), vertex{0});
  std::sort(order.begin(), order.end(),
            [](vertex a, vertex b) { return priority_of(a) > priority_of(b); });
  std::vector<std::uint32_t> colour(g.vertices(), none), used_by(g.vertices() + 1, none);
  for (const vertex v : order) {
    for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e)
      if (const std::uint32_t c = colour[g.column[e]]; c != none) used_by[c] = v;
    std::uint32_t least = 0;
    while (used_by[least] == v) ++least;
    colour[v] = least;
  }
  return colour;
}

std::string wrong_colours(const csr_graph& g, std::span<const std::uint32_t> colour,
                          std::span<const std::uint32_t> expected) {
  const auto name = [&](vertex v) { return std::uint64_t{g.first} + v; };
  if (colour.size() != g.vertices())
    return fmt::format("there are {} colours for {} vertices", colour.size(), g.vertices());
  for (vertex v = 0; v < g.vertices(); ++v)
    for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e)
      if (colour[g.column[e]] == colour[v])
        return fmt::format("the neighbours {} and {} both have colour {}", name(v),
                           name(g.column[e]), colour[v]);
  for (vertex v = 0; v < g.vertices(); ++v)
    if (colour[v] != expected[v])
      return fmt::format("vertex {} has colour {} instead of {}", name(v), colour[v], expected[v]);
  return {};
}

std::uint32_t count_colours(std::span<const std::uint32_t> colour) {
  return colour.empty() ? 0 : *std::max_element(colour.begin(), colour.end()) + 1;
}

}  // namespace grosr::distributed
