// Warps of a rank go over its vertices, time and again, and along the edges of those that have
// something to say, as long as there are any. They take pieces of work in turn: shares of vertices,
// sums for hubs, large vertices, and slices of the edges of these. A warp needs no task for a
// piece: what it sends fills its buffers.
#pragma once

#include "part.hpp"
#include "warp/sums.hpp"

namespace grosr::distributed {

/// Vertices that more edges leave are large; a slice has so many of them.
inline constexpr std::uint32_t slice_edges = 1024;
/// Hubs of a piece, and large vertices.
inline constexpr std::uint32_t piece_hubs = 256;

/// Edges that a lane goes along at the same time: their targets are under way together.
inline constexpr unsigned edges_at_once = 4;
struct some_edges {
  std::uint32_t edge[edges_at_once], whose[edges_at_once];  ///< whose: the lane
  bool is_one[edges_at_once];
};

/// A warp together, of which each lane has `count` edges from `begin` on: each(some_edges) for all
/// of them, by all lanes.
template <class Each>
GROSR_DEVICE void edges_of_lanes(std::uint32_t begin, std::uint32_t count, const Each& each) {
  constexpr std::uint32_t all = simt::full_mask, step = edges_at_once * simt::warp_size;
  const std::uint32_t lane = simt::lane_id();
  const std::uint32_t end = warp::sum_up_to_lane(count), total = warp::of_last_lane(end);
  const std::uint32_t first = begin - (end - count);
  GROSR_NO_UNROLL
  for (std::uint32_t base = lane; base - lane < total; base += step) {
    some_edges some;
    for (unsigned k = 0; k < edges_at_once; ++k) {
      const std::uint32_t i = base + k * simt::warp_size;
      std::uint32_t whose = 0;
      for (std::uint32_t by = simt::warp_size / 2; by != 0; by /= 2)
        if (simt::shuffle(all, end, whose + by - 1) <= i) whose += by;
      some.whose[k] = whose;
      some.edge[k] = simt::shuffle(all, first, whose) + i;
      some.is_one[k] = i < total;
    }
    each(some);
  }
}

/// Rule::on(world, part) has
///   take(v, edges, value)        whether vertex `v` has something to say, and what;
///   push(edge, target, value)    says it along an edge;
///   send_sum(hub)                whether something was collected for a hub: it is sent;
///   keep(word, value)            a large vertex has that to say, besides what it said before;
///   take_slice(kept, done, value)  whether a slice has not said all of that, and what is left.
/// Several warps may do each of these for the same vertex at the same time.
template <class Rule>
struct sweep {
  static constexpr grosr::width width = grosr::width::warp;
  static constexpr bool runs_long = true;
  Rule rule;
  std::uint32_t parts;

  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const part& p = part_of(world, parts);
    const auto bound = rule.on(world, p);
    std::uint32_t* const control = world.local(p.control);
    const std::uint32_t shares = word_of(world, p, control_shares),
                        large = word_of(world, p, control_large),
                        hubs = pieces_of(hubs_of(world, p)), vertices = pieces_of(large),
                        all = shares + hubs + vertices + word_of(world, p, control_slices),
                        patience = word_of(world, p, control_patience),
                        enough = all == 0             ? 0
                                 : patience < 2 * all ? 2 * all
                                                      : patience;
    GROSR_NO_UNROLL
    while (!simt::any(simt::full_mask, context.aborted())) {
      // Who takes a piece has not seen the end: so each piece is looked at after the last change.
      std::uint32_t piece = all;
      if (context.rank() == 0 && shared(control[control_quiet]).load(simt::relaxed) < enough)
        piece = shared(control[control_next]).fetch_add(1, simt::relaxed) % all;
      piece = simt::shuffle(simt::full_mask, piece, 0);
      if (piece == all) break;
      std::uint32_t found = 0;
      if (piece < shares)
        found = go_over_share(world, p, bound, piece);
      else if ((piece -= shares) < hubs)
        found = send_sums(world, p, bound, piece);
      else if ((piece -= hubs) < vertices)
        found = keep_large(world, p, bound, piece, large);
      else
        found = go_along_slice(world, p, bound, piece - vertices);
      found = warp::sum_of_lanes(found);
      if (found == 0) static_cast<void>(world.progress());
      if (context.rank() != 0) continue;
      if (found == 0) {
        shared(control[control_quiet]).fetch_add(1, simt::relaxed);
      } else {
        shared(control[control_quiet]).store(0, simt::relaxed);
        shared(control[control_found]).store(1, simt::relaxed);
      }
    }
  }

 private:
  GROSR_DEVICE static std::uint32_t pieces_of(std::uint32_t n) {
    return (n + piece_hubs - 1) / piece_hubs;
  }

  GROSR_DEVICE static std::uint32_t go_over_share(const auto& world, const part& p,
                                                  const auto& bound, std::uint32_t piece) {
    using value_type = typename Rule::value_type;
    const std::uint32_t *const shares = world.local(p.shares) + piece,
                               *const offsets = world.local(p.offsets),
                               *const to_others = world.local(p.to_others),
                               *const targets = world.local(p.targets);
    const std::uint32_t end = shares[1];
    std::uint32_t found = 0;
    GROSR_NO_UNROLL
    for (std::uint32_t base = shares[0]; base < end; base += simt::warp_size) {
      const std::uint32_t v = base + simt::lane_id();
      std::uint32_t begin = 0, middle = 0, last = 0;
      value_type value{};
      if (v < end) {
        begin = offsets[v];
        last = offsets[v + 1];
        if (last - begin <= slice_edges && bound.take(v, last - begin, value)) {
          ++found;
          middle = to_others[v];
        } else {
          begin = middle = last = 0;
        }
      }
      const auto push = [&](const some_edges& some) {
        value_type values[edges_at_once];
        for (unsigned k = 0; k < edges_at_once; ++k)
          values[k] = simt::shuffle(simt::full_mask, value, some.whose[k]);
        push_along(bound, targets, some, values);
      };
      simt::sync_warp();
      edges_of_lanes(begin, middle - begin, push);
      edges_of_lanes(middle, last - middle, push);
    }
    return found;
  }

  GROSR_DEVICE static std::uint32_t send_sums(const auto& world, const part& p, const auto& bound,
                                              std::uint32_t piece) {
    std::uint32_t found = 0;
    const std::uint32_t end = min_of(hubs_of(world, p), (piece + 1) * piece_hubs);
    GROSR_NO_UNROLL
    for (std::uint32_t hub = piece * piece_hubs + simt::lane_id(); hub < end;
         hub += simt::warp_size)
      found += bound.send_sum(hub) ? 1 : 0;
    simt::sync_warp();
    return found;
  }

  GROSR_DEVICE static std::uint32_t keep_large(const auto& world, const part& p, const auto& bound,
                                               std::uint32_t piece, std::uint32_t large) {
    const std::uint32_t* const offsets = world.local(p.offsets);
    std::uint32_t found = 0;
    const std::uint32_t end = min_of(large, (piece + 1) * piece_hubs);
    GROSR_NO_UNROLL
    for (std::uint32_t i = piece * piece_hubs + simt::lane_id(); i < end; i += simt::warp_size) {
      const std::uint32_t v = world.local(p.large)[i];
      typename Rule::value_type value{};
      if (!bound.take(v, offsets[v + 1] - offsets[v], value)) continue;
      bound.keep(world.local(p.large_values)[i], value);
      ++found;
    }
    simt::sync_warp();
    return found;
  }

  GROSR_DEVICE static std::uint32_t go_along_slice(const auto& world, const part& p,
                                                   const auto& bound, std::uint32_t slice) {
    const std::uint32_t* const words = world.local(p.slices) + 2 * slice;
    const std::uint32_t begin = words[0], whose = words[1];
    typename Rule::value_type value{};
    bool takes = false;
    if (simt::lane_id() == 0)
      takes = bound.take_slice(world.local(p.large_values)[whose],
                               world.local(p.slice_values)[slice], value);
    if (!simt::any(simt::full_mask, takes)) return 0;
    value = simt::shuffle(simt::full_mask, value, 0);
    const std::uint32_t end =
        min_of(world.local(p.offsets)[world.local(p.large)[whose] + 1], begin + slice_edges);
    GROSR_NO_UNROLL
    for (std::uint32_t base = begin; base < end; base += edges_at_once * simt::warp_size) {
      some_edges some;
      typename Rule::value_type values[edges_at_once];
      for (unsigned k = 0; k < edges_at_once; ++k) {
        some.edge[k] = base + k * simt::warp_size + simt::lane_id();
        some.is_one[k] = some.edge[k] < end;
        values[k] = value;
      }
      push_along(bound, world.local(p.targets), some, values);
    }
    return takes ? 1 : 0;
  }

  GROSR_DEVICE static void push_along(const auto& bound, const std::uint32_t* targets,
                                      const some_edges& some, const auto& values) {
    std::uint32_t to[edges_at_once];
    for (unsigned k = 0; k < edges_at_once; ++k) to[k] = some.is_one[k] ? targets[some.edge[k]] : 0;
    for (unsigned k = 0; k < edges_at_once; ++k) {
      if (some.is_one[k]) bound.push(some.edge[k], to[k], values[k]);
      simt::sync_warp();
    }
  }

  GROSR_DEVICE static std::uint32_t min_of(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }
};

}  // namespace grosr::distributed
