// Colouring: a vertex whose neighbours of higher priority all have colours takes the least one that
// none of them has, and tells the others (M. T. Jones, P. E. Plassmann, "A parallel graph coloring
// heuristic", 1993). Messages alone say when that is: there are no rounds.
#pragma once

#include "colours.hpp"
#include "part.hpp"

namespace grosr::distributed {

/// Bits of colours that neighbours of vertex `v` got: one more than it has edges, since it needs
/// none beyond. Those of one vertex end before the next one's begin.
GROSR_DEVICE std::uint32_t* used_of(const auto& world, const part& p, std::uint32_t v) {
  return world.local(p.used) + (world.local(p.offsets)[v] / 32 + v);
}

GROSR_DEVICE graphs::vertex vertex_at(const auto& world, const part& p, std::uint32_t v) {
  return static_cast<graphs::vertex>(p.vertices.index_of({world.rank(), v}));
}

/// Counts a neighbour that vertex `v` of this rank waits for.
struct count_neighbour {
  std::uint32_t v, priority;
  GROSR_DEVICE auto on(const auto& world, const part& p) const {
    return [targets = world.local(p.targets), missing = world.local(p.missing) + v,
            priority = priority](std::uint32_t edge) {
      if (priority_of(targets[edge]) > priority) shared(*missing).fetch_add(1, simt::relaxed);
    };
  }
};

/// Counts all of them; and one, for start_colouring.
struct begin_colouring {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    some.each(context, vertices_of(world, p), [&](std::uint32_t v) {
      std::uint32_t* const used = used_of(world, p, v);
      const std::uint32_t* const offsets = world.local(p.offsets);
      GROSR_NO_UNROLL
      for (std::uint32_t w = 0; w <= (offsets[v + 1] - offsets[v]) / 32; ++w)
        shared(used[w]).store(0, simt::relaxed);
      shared(world.local(p.missing)[v]).store(1, simt::relaxed);
      go_along(context, world, parts, p, v,
               count_neighbour{v, priority_of(vertex_at(world, p, v))});
    });
  }
};

/// A neighbour of vertex `v` of this rank got that colour. 12 bytes: a word of a link.
struct coloured {
  std::uint32_t v, colour, parts;
  GROSR_DEVICE void operator()(auto& context) const;
};

struct tell_colour {
  std::uint32_t priority, colour, parts;
  GROSR_DEVICE auto on(const auto& world, const part& p) const {
    return [&world, vertices = p.vertices, targets = world.local(p.targets),
            step = *this](std::uint32_t edge) {
      const graphs::vertex to = targets[edge];
      if (priority_of(to) > step.priority) return;
      const net::place at = vertices.find(to);
      world.send(at.rank, coloured{static_cast<std::uint32_t>(at.offset), step.colour, step.parts});
    };
  }
};

/// One less is missing; the last one has the vertex coloured.
GROSR_DEVICE void count_down(auto& context, const auto& world, std::uint32_t parts, const part& p,
                             std::uint32_t v) {
  // C1: the last one sees the bits that all before it have set.
  if (shared(world.local(p.missing)[v]).fetch_sub(1, simt::acq_rel) != 1) return;
  std::uint32_t* const used = used_of(world, p, v);
  std::uint32_t word = 0, bits = shared(used[0]).load(simt::relaxed);
  GROSR_NO_UNROLL
  while (bits == ~std::uint32_t{0}) bits = shared(used[++word]).load(simt::relaxed);
  const std::uint32_t colour = word * 32 + simt::lowest_bit(~bits);
  shared(world.local(p.colours)[v]).store(colour, simt::relaxed);
  go_along(context, world, parts, p, v,
           tell_colour{priority_of(vertex_at(world, p, v)), colour, parts});
}

GROSR_DEVICE void coloured::operator()(auto& context) const {
  const auto world = net::world_of(context);
  const part& p = part_of(world, parts);
  const std::uint32_t* const offsets = world.local(p.offsets);
  if (colour <= offsets[v + 1] - offsets[v])
    shared(used_of(world, p, v)[colour / 32])
        .fetch_or(std::uint32_t{1} << colour % 32, simt::relaxed);
  count_down(context, world, parts, p, v);
}

struct start_colouring {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    some.each(context, vertices_of(world, p),
              [&](std::uint32_t v) { count_down(context, world, parts, p, v); });
  }
};

}  // namespace grosr::distributed
