// Shortest paths: relaxations are messages, and vertices below a bound go on. What is farther waits
// until all ranks are done with what is nearer (U. Meyer, P. Sanders, "Delta-stepping: a
// parallelizable shortest path algorithm", 2003).
#pragma once

#include "sweep.hpp"

namespace grosr::distributed {

struct begin_shortest_paths {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  std::uint32_t infinity;  ///< its bits
  std::uint32_t source;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    const auto set = [&](net::array_ref<std::uint32_t> a, std::uint32_t i) {
      shared(world.local(a)[i]).store(infinity, simt::relaxed);
    };
    some.each(context, vertices_of(world, p), [&](std::uint32_t v) {
      set(p.gone_on, v);
      const bool is_source = p.vertices.index_of({world.rank(), v}) == source;
      shared(world.local(p.distances)[v]).store(is_source ? 0 : infinity, simt::relaxed);
    });
    some.each(context, hubs_of(world, p), [&](std::uint32_t hub) { set(p.hub_distances, hub); });
    some.each(context, word_of(world, p, control_large),
              [&](std::uint32_t i) { set(p.large_values, i); });
    some.each(context, word_of(world, p, control_slices),
              [&](std::uint32_t i) { set(p.slice_values, i); });
  }
};

/// A vertex that is nearer than when it last went on, and than the bound, goes on. Values are
/// distances, of large vertices the least.
struct relax_edges {
  using value_type = std::uint32_t;

  template <class World>
  struct bound {
    const World& world;
    net::array_ref<std::uint32_t> all_distances;
    std::uint32_t *distances, *gone_on, *sent;
    const std::uint32_t* hubs;
    const float* weights;
    std::uint32_t most;

    GROSR_DEVICE bool take(std::uint32_t v, std::uint32_t, std::uint32_t& distance) const {
      distance = shared(distances[v]).load(simt::relaxed);
      return distance < most && lowers(gone_on[v], distance);
    }
    GROSR_DEVICE void push(std::uint32_t edge, std::uint32_t to, std::uint32_t distance) const {
      const float weight = weights != nullptr ? weights[edge] : 1.0f;
      const auto found = bits_as<std::uint32_t>(bits_as<float>(distance) + weight);
      if ((to & is_hub) != 0) {
        // A rank sends nothing that is not less than all it has sent.
        if (!lowers(sent[to & ~is_hub], found)) return;
        to = hubs[to & ~is_hub];
      }
      world.min(all_distances, to, found);
    }
    GROSR_DEVICE bool send_sum(std::uint32_t) const { return false; }
    GROSR_DEVICE void keep(std::uint32_t& word, std::uint32_t distance) const {
      shared(word).fetch_min(distance, simt::relaxed);
    }
    GROSR_DEVICE bool take_slice(std::uint32_t& kept, std::uint32_t& done,
                                 std::uint32_t& distance) const {
      distance = shared(kept).load(simt::relaxed);
      return lowers(done, distance);
    }

   private:
    GROSR_DEVICE static bool lowers(std::uint32_t& word, std::uint32_t to) {
      return shared(word).load(simt::relaxed) > to &&
             shared(word).fetch_min(to, simt::relaxed) > to;
    }
  };
  template <class World>
  GROSR_DEVICE bound<World> on(const World& world, const part& p) const {
    return {world,
            p.distances,
            world.local(p.distances),
            world.local(p.gone_on),
            world.local(p.hub_distances),
            world.local(p.hubs),
            p.weights.size() != 0 ? world.local(p.weights) : nullptr,
            shared(world.local(p.control)[control_bound]).load(simt::relaxed)};
  }
};

/// The least distance of vertices that wait.
struct find_least {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    std::uint32_t least = ~std::uint32_t{0};
    some.each(context, vertices_of(world, p), [&](std::uint32_t v) {
      const std::uint32_t distance = shared(world.local(p.distances)[v]).load(simt::relaxed);
      if (distance < least && distance < shared(world.local(p.gone_on)[v]).load(simt::relaxed))
        least = distance;
    });
    if (least != ~std::uint32_t{0})
      shared(world.local(p.control)[control_least]).fetch_min(least, simt::relaxed);
  }
};

}  // namespace grosr::distributed
