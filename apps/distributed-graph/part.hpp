// What a rank has of a graph, and how tasks find it and go along its edges.
#pragma once

#include "grosr/graph/graph_ref.hpp"
#include "ranks/tasks.hpp"

namespace grosr::distributed {

using ranks::shared, ranks::warp_share;

/// Words that a rank and the host tell each other, between rounds.
enum control_word : std::uint32_t {
  control_shares,  ///< how many of each the rank has: see sweep.hpp
  control_large,
  control_slices,
  control_patience,  ///< how many pieces have to find nothing, at least, before the sweep ends
  control_next,      ///< the piece of work that is taken next, counted on from sweep to sweep
  control_quiet,     ///< how many pieces found nothing to do since one did
  control_found,     ///< 1: a piece had something to do
  control_bound,     ///< vertices nearer than that go on: a float's bits
  control_least,     ///< the least distance of those that wait
  control_words
};

/// Arrays of a graph on ranks. A vertex is at `vertices.find(v)`. On its rank, edges offsets[v] to
/// offsets[v + 1] - 1 leave it. Vertices to which many edges lead are hubs: each rank has something
/// of each of them, so that what all of its edges say of a hub becomes few messages. Edges to hubs
/// come first, so that lanes which go along edges together do the same. Vertices that
/// many edges leave are large, and several warps go along these. What follows has an element for
/// each vertex where nothing else is said.
struct part {
  net::layout vertices;
  net::array_ref<std::uint32_t> control;
  net::array_ref<std::uint32_t> offsets;
  net::array_ref<std::uint32_t> to_others;  ///< the first edge that leads to no hub
  net::array_ref<std::uint32_t> targets;    ///< of edges: a vertex, or a hub's number and is_hub
  net::array_ref<float> weights;            ///< of edges; none: each is 1 long
  net::array_ref<std::uint32_t> hubs;       ///< which vertices they are: on each rank, all
  // Work of a rank: see sweep.hpp. Values are those of a rule.
  net::array_ref<std::uint32_t> shares;        ///< of vertices: where each begins
  net::array_ref<std::uint32_t> large;         ///< which vertices of the rank they are
  net::array_ref<std::uint32_t> large_values;  ///< what their edges are to carry
  net::array_ref<std::uint32_t>
      slices;  ///< of their edges: the first one, and whose it is in large
  net::array_ref<std::uint32_t> slice_values;  ///< what these carried
  // PageRank.
  net::array_ref<float> ranks, residuals;
  net::array_ref<float> hub_sums;  ///< on each rank, of each hub: what it is to get
  // Shortest paths. Distances are floats' bits, which are in the same order.
  net::array_ref<std::uint32_t> distances;
  net::array_ref<std::uint32_t> gone_on;        ///< the distance with which the vertex went on last
  net::array_ref<std::uint32_t> hub_distances;  ///< on each rank, of each hub: the least it sent
  // Colouring.
  net::array_ref<std::uint32_t> missing;  ///< neighbours that are coloured first, and one
  net::array_ref<std::uint32_t> used;     ///< bits: colours that they got; see used_of()
  net::array_ref<std::uint32_t> colours;
};

inline constexpr std::uint32_t is_hub = 1u << 31;

/// Each rank has the same part in an array of words; tasks know its number.
inline constexpr std::uint64_t words_of_part = (sizeof(part) + 7) / 8;
template <class World>
GROSR_DEVICE const part& part_of(const World& world, std::uint32_t number) {
  return *reinterpret_cast<const part*>(world.local(ranks::numbered_words(number)));
}

template <class To, class From>
GROSR_DEVICE To bits_as(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &v, sizeof to);
  return to;
}

/// Up to so many edges of a vertex are gone along by the lane that found it; the others of a vertex
/// by warps, so many at a time.
inline constexpr std::uint32_t few_edges = 32, warp_edges = 1024;

/// Step: `on(world, part)` gives what is to be done for an edge of this rank, a function of its
/// number, with what it needs in registers.
template <class Step>
struct edges_by_warp {
  static constexpr grosr::width width = grosr::width::warp;
  Step step;
  std::uint32_t parts, begin, end;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    const auto along = step.on(world, p);
    GROSR_NO_UNROLL
    for (std::uint32_t e = begin + context.rank(); e < end; e += context.size())
      simt::stay_together([&] { along(e); });
  }
};

/// The step for each edge that leaves vertex `v` of this rank.
template <class Step>
GROSR_DEVICE void go_along(auto& context, const auto& world, std::uint32_t parts, const part& p,
                           std::uint32_t v, const Step& step) {
  const std::uint32_t* const offsets = world.local(p.offsets);
  const std::uint32_t begin = offsets[v], end = offsets[v + 1];
  if (end - begin <= few_edges) {
    const auto along = step.on(world, p);
    GROSR_NO_UNROLL
    for (std::uint32_t e = begin; e < end; ++e) simt::stay_together([&] { along(e); });
    return;
  }
  GROSR_NO_UNROLL
  for (std::uint32_t at = begin; at < end;) {
    const std::uint32_t next = end - at > warp_edges ? at + warp_edges : end;
    context.spawn(edges_by_warp<Step>{step, parts, at, next});
    at = next;
  }
}

/// What the host said.
GROSR_DEVICE std::uint32_t word_of(const auto& world, const part& p, control_word what) {
  return shared(world.local(p.control)[what]).load(simt::relaxed);
}

/// Vertices of this rank.
GROSR_DEVICE std::uint32_t vertices_of(const auto& world, const part& p) {
  return static_cast<std::uint32_t>(p.vertices.size_of(world.rank()));
}
GROSR_DEVICE std::uint32_t hubs_of(const auto& world, const part& p) {
  return static_cast<std::uint32_t>(p.hubs.size_of(world.rank()));
}

}  // namespace grosr::distributed
