// Shortest paths: relaxations are messages, and go on by themselves below a bound. What is farther
// waits in a list until all ranks are done with what is nearer (U. Meyer, P. Sanders,
// "Delta-stepping: a parallelizable shortest path algorithm", 2003).
#pragma once

#include "part.hpp"

namespace grosr::distributed {

struct begin_shortest_paths {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  std::uint32_t infinity;  ///< its bits
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    some.each(context, vertices_of(world, p), [&](std::uint32_t v) {
      shared(world.local(p.distances)[v]).store(infinity, simt::relaxed);
      shared(world.local(p.gone_on)[v]).store(infinity, simt::relaxed);
      shared(world.local(p.listed)[v]).store(0, simt::relaxed);
    });
  }
};

/// A path of that length leads to a vertex of this rank. 12 bytes: a word of a link.
struct relax {
  std::uint32_t v, distance, parts;
  GROSR_DEVICE void operator()(auto& context) const;
};

/// A vertex `v` of this rank is at that distance.
struct relax_edge {
  std::uint32_t v, distance, parts;
  GROSR_DEVICE bool is_outdated(const auto& world, const part& p) const {
    return shared(world.local(p.distances)[v]).load(simt::relaxed) < distance;
  }
  GROSR_DEVICE void along(const auto& world, const part& p, std::uint32_t edge) const {
    const float weight = p.weights.size() != 0 ? world.local(p.weights)[edge] : 1.0f;
    const auto found = bits_as<std::uint32_t>(bits_as<float>(distance) + weight);
    const net::place to = p.vertices.find(world.local(p.targets)[edge]);
    const auto offset = static_cast<std::uint32_t>(to.offset);
    if (to.rank == world.rank() &&
        shared(world.local(p.distances)[offset]).load(simt::relaxed) <= found)
      return;
    world.send(to.rank, relax{offset, found, parts});
  }
};

/// The vertex waits, once.
GROSR_DEVICE void wait_in_list(const auto& world, const part& p, std::uint32_t v,
                               std::uint32_t distance) {
  std::uint32_t* const control = world.local(p.control);
  shared(control[control_least]).fetch_min(distance, simt::relaxed);
  // L1: pairs with L2: who takes the vertex off the list sees this distance,
  // or this lane sees that it is off.
  if (shared(world.local(p.listed)[v]).exchange(1, simt::acq_rel) != 0) return;
  const std::uint32_t list = shared(control[control_list]).load(simt::relaxed),
                      at = shared(control[control_count + list]).fetch_add(1, simt::relaxed);
  shared(world.local(p.lists)[list * p.lists.size_of(world.rank()) / 2 + at])
      .store(v, simt::relaxed);
}

GROSR_DEVICE void relax::operator()(auto& context) const {
  const auto world = net::world_of(context);
  const part& p = part_of(world, parts);
  if (shared(world.local(p.distances)[v]).fetch_min(distance, simt::relaxed) <= distance) return;
  if (distance >= shared(world.local(p.control)[control_bound]).load(simt::relaxed))
    return wait_in_list(world, p, v, distance);
  shared(world.local(p.gone_on)[v]).store(distance, simt::relaxed);
  go_along(context, world, parts, p, v, relax_edge{v, distance, parts});
}

/// Vertices of a list, which is not in use any more, go on or wait in the other one.
struct release {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts, count, list;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    const std::uint32_t bound = shared(world.local(p.control)[control_bound]).load(simt::relaxed);
    std::uint32_t* const waiting = world.local(p.lists) + list * p.lists.size_of(world.rank()) / 2;
    some.each(context, count, [&](std::uint32_t i) {
      const std::uint32_t v = shared(waiting[i]).load(simt::relaxed);
      // L2: pairs with L1.
      shared(world.local(p.listed)[v]).exchange(0, simt::acq_rel);
      const std::uint32_t distance = shared(world.local(p.distances)[v]).load(simt::relaxed);
      const simt::atomic_ref<std::uint32_t> gone_on(world.local(p.gone_on)[v]);
      if (gone_on.load(simt::relaxed) == distance) return;
      if (distance >= bound) return wait_in_list(world, p, v, distance);
      gone_on.store(distance, simt::relaxed);
      go_along(context, world, parts, p, v, relax_edge{v, distance, parts});
    });
  }
};

}  // namespace grosr::distributed
