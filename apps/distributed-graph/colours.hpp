// Colours of vertices: which vertex goes first, and what must come out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "grosr/graph/csr_graph.hpp"

namespace grosr::distributed {

/// Of two vertices the one of higher priority is coloured first. No two have the same: each step is
/// a bijection (the finalizer of MurmurHash3, A. Appleby, 2011).
GROSR_DEVICE constexpr std::uint32_t priority_of(graphs::vertex v) {
  v = (v ^ v >> 16) * 0x85ebca6bu;
  v = (v ^ v >> 13) * 0xc2b2ae35u;
  return v ^ v >> 16;
}

/// The graph with each edge in both directions; without weights.
graphs::csr_graph both_ways(const graphs::csr_graph& g);

/// Vertices one by one, by priority; each gets the least colour that no neighbour has. On one
/// thread.
std::vector<std::uint32_t> first_fit(const graphs::csr_graph& g);

/// What is wrong with colours: neighbours that have the same, or others than first_fit() has found.
/// Empty: nothing.
std::string wrong_colours(const graphs::csr_graph& g, std::span<const std::uint32_t> colour,
                          std::span<const std::uint32_t> expected);

/// How many there are: the greatest, and one.
std::uint32_t count_colours(std::span<const std::uint32_t> colour);

}  // namespace grosr::distributed
