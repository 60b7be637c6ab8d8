// PageRank: residuals are pushed along edges, as graphs::pagerank does, by messages.
#pragma once

#include "part.hpp"

namespace grosr::distributed {

struct begin_pagerank {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  float residual;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    some.each(context, vertices_of(world, p), [&](std::uint32_t v) {
      simt::atomic_ref<float>(world.local(p.ranks)[v]).store(0, simt::relaxed);
      simt::atomic_ref<float>(world.local(p.residuals)[v]).store(residual, simt::relaxed);
    });
  }
};

struct push_share {
  float share;
  GROSR_DEVICE void along(const auto& world, const part& p, std::uint32_t edge) const {
    world.add(p.residuals, world.local(p.targets)[edge], share);
  }
};

/// A vertex whose residual is above the threshold adds it to its rank, and pushes a share of it
/// along each edge.
struct push_residuals {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  float damping, threshold;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    std::uint32_t pushed = 0;
    some.each(context, vertices_of(world, p), [&](std::uint32_t v) {
      const simt::atomic_ref<float> residual(world.local(p.residuals)[v]);
      if (!(residual.load(simt::relaxed) > threshold)) return;
      const float r = residual.exchange(0, simt::relaxed);
      // In a round one lane has the vertex.
      const simt::atomic_ref<float> rank(world.local(p.ranks)[v]);
      rank.store(rank.load(simt::relaxed) + r, simt::relaxed);
      ++pushed;
      const std::uint32_t* const offsets = world.local(p.offsets);
      const std::uint32_t edges = offsets[v + 1] - offsets[v];
      if (edges != 0)
        go_along(context, world, parts, p, v, push_share{damping * r / static_cast<float>(edges)});
    });
    if (pushed != 0)
      shared(world.local(p.control)[control_pushed]).fetch_add(pushed, simt::relaxed);
  }
};

}  // namespace grosr::distributed
