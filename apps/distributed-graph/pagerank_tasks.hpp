// PageRank: residuals are pushed along edges, as graphs::pagerank does, by messages. What is pushed
// to hubs is added up on each rank, and sent later.
#pragma once

#include "sweep.hpp"

namespace grosr::distributed {

struct begin_pagerank {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  std::uint32_t parts;
  float residual;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    const auto set = [&](net::array_ref<float> a, std::uint32_t i, float value) {
      simt::atomic_ref<float>(world.local(a)[i]).store(value, simt::relaxed);
    };
    const auto set_words = [&](net::array_ref<std::uint32_t> a, std::uint32_t i) {
      shared(world.local(a)[i]).store(0, simt::relaxed);
    };
    some.each(context, vertices_of(world, p), [&](std::uint32_t v) {
      set(p.ranks, v, 0);
      set(p.residuals, v, residual);
    });
    some.each(context, hubs_of(world, p), [&](std::uint32_t hub) { set(p.hub_sums, hub, 0); });
    some.each(context, word_of(world, p, control_large),
              [&](std::uint32_t i) { set_words(p.large_values, i); });
    some.each(context, word_of(world, p, control_slices),
              [&](std::uint32_t i) { set_words(p.slice_values, i); });
  }
};

/// A vertex whose residual is above the threshold adds it to its rank, and pushes a share of it
/// along each edge. Of a large one, values are the sums of all shares so far: those of the vertex,
/// and those that a slice has pushed.
struct push_residuals {
  using value_type = float;
  float damping;
  float threshold;  ///< half of it for what a vertex has, half for what the ranks have for a hub

  template <class World>
  struct bound {
    const World& world;
    net::array_ref<float> all_residuals;
    float *residuals, *ranks, *sums;
    const std::uint32_t* hubs;
    float damping, threshold, least_sum;

    GROSR_DEVICE bool take(std::uint32_t v, std::uint32_t edges, float& share) const {
      const simt::atomic_ref<float> residual(residuals[v]);
      if (!(residual.load(simt::relaxed) > threshold)) return false;
      const float r = residual.exchange(0, simt::relaxed);
      if (r == 0) return false;  // another warp was faster
      simt::global_ref<float>(ranks[v]).store_add(r, simt::relaxed);
      share = edges != 0 ? damping * r / static_cast<float>(edges) : 0;
      return true;
    }
    GROSR_DEVICE void push(std::uint32_t, std::uint32_t to, float share) const {
      if ((to & is_hub) != 0)
        simt::global_ref<float>(sums[to & ~is_hub]).store_add(share, simt::relaxed);
      else
        world.add(all_residuals, to, share);
    }
    GROSR_DEVICE bool send_sum(std::uint32_t hub) const {
      const simt::atomic_ref<float> sum(sums[hub]);
      if (!(sum.load(simt::relaxed) > least_sum)) return false;
      world.add(all_residuals, hubs[hub], sum.exchange(0, simt::relaxed));
      return true;
    }
    GROSR_DEVICE void keep(std::uint32_t& word, float share) const {
      simt::global_ref<float>(*reinterpret_cast<float*>(&word)).store_add(share, simt::relaxed);
    }
    GROSR_DEVICE bool take_slice(std::uint32_t& kept, std::uint32_t& done, float& share) const {
      const float sum = bits_as<float>(shared(kept).load(simt::relaxed));
      if (sum == bits_as<float>(shared(done).load(simt::relaxed))) return false;
      // Where others are faster the share may be less than 0: they have pushed what it lacks.
      share =
          sum - bits_as<float>(shared(done).exchange(bits_as<std::uint32_t>(sum), simt::relaxed));
      return share != 0;
    }
  };
  template <class World>
  GROSR_DEVICE bound<World> on(const World& world, const part& p) const {
    return {world,
            p.residuals,
            world.local(p.residuals),
            world.local(p.ranks),
            world.local(p.hub_sums),
            world.local(p.hubs),
            damping,
            threshold / 2,
            threshold / (2 * static_cast<float>(world.size()))};
  }
};

}  // namespace grosr::distributed
