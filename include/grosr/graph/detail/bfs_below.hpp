// Bottom-up steps of a breadth-first search: every vertex that was not visited looks for a
// neighbour in the last level, which is a bitmap (Beamer, Asanovic, Patterson: Direction-Optimizing
// Breadth-First Search, SC 2012).
#pragma once

#include "grosr/graph/detail/bfs_view.hpp"

namespace grosr::graphs {

/// What each warp keeps of some words of the bitmap.
struct from_below_store {
  static constexpr unsigned words_at_once = 8;
  struct one {
    std::uint8_t open[words_at_once * 32];  ///< vertices that look for a parent
    std::uint32_t found[words_at_once];
  } warp[32];
};

/// A warp's search for the parents of some vertices.
struct from_below {
  const std::uint32_t* row;
  const vertex* column;
  std::uint64_t* label;
  const std::uint32_t* level_bits;
  from_below_store::one& mine;
  vertex base;                         ///< the first vertex of the words
  std::uint32_t level;                 ///< that parents are of
  std::uint32_t count = 0, edges = 0;  // what this lane found

  static constexpr unsigned sector = 8;      // edges that one access of memory brings
  static constexpr unsigned most_alone = 4;  // sectors that a lane looks at by itself

  GROSR_DEVICE bool is_in(vertex u) const { return (level_bits[u / 32] >> u % 32 & 1) != 0; }

  /// Whole warp: `looking` vertices lie in mine.open.
  GROSR_DEVICE void run(std::uint32_t looking) {
    for (unsigned turn = 0; turn < most_alone && looking != 0; ++turn) {
      std::uint32_t left = 0;
      for (std::uint32_t k = 0; k < looking; k += simt::warp_size)
        left = look(k, looking, turn, left);
      looking = left;
    }
    for (std::uint32_t k = 0; k < looking; ++k) look_far(base + mine.open[k]);
  }

  /// Whole warp: one sector of the edges of each of the next vertices; those that must look on are
  /// kept, from place `left` on. Lanes that have nothing to read read something else, so that no
  /// access waits for another one's outcome.
  GROSR_DEVICE std::uint32_t look(std::uint32_t k, std::uint32_t looking, unsigned turn,
                                  std::uint32_t left) {
    const unsigned lane = simt::lane_id();
    bool reads = k + lane < looking;
    const vertex v = base + (reads ? mine.open[k + lane] : 0);
    const std::uint32_t begin = row[v], end = row[v + 1];
    const std::uint32_t at = begin / sector * sector + turn * sector;
    reads = reads && at < end;
    const entry_quad quad[2] = {quad_of(column, reads ? at : 0),
                                quad_of(column, reads ? at + 4 : 4)};
    // Bit j: entry at + j is this vertex's.
    const std::uint32_t first = at < begin ? begin - at : 0, count = end - at;
    std::uint32_t own = 0;
    if (reads) own = (count < sector ? (1u << count) - 1 : (1u << sector) - 1) >> first << first;
    simt::fetch_together();
    std::uint32_t hits = 0;
    for (unsigned half = 0; half < sector; half += 4) {
      const vertex* const u = quad[half / 4].column;
      std::uint32_t word[4];
      for (unsigned j = 0; j < 4; ++j)
        word[j] = level_bits[(own >> (half + j) & 1) != 0 ? u[j] / 32 : 0];
      simt::fetch_together();
      for (unsigned j = 0; j < 4; ++j)
        hits |= (word[j] >> u[j] % 32 & own >> (half + j) & 1) << (half + j);
      if (hits != 0) own = 0;
    }
    vertex parent = no_vertex;
    for (unsigned j = sector; j-- > 0;)
      if ((hits >> j & 1) != 0) parent = quad[j / 4].column[j % 4];
    if (parent != no_vertex) found(v, parent, end - begin);
    const bool goes_on = reads && parent == no_vertex && at + sector < end;
    const std::uint32_t votes = simt::ballot(simt::full_mask, goes_on);
    if (goes_on) mine.open[left + simt::rank_in(votes, lane)] = static_cast<std::uint8_t>(v - base);
    simt::sync_warp();
    return left + simt::popcount(votes);
  }

  /// Whole warp: the edges of one vertex that are left.
  GROSR_DEVICE void look_far(vertex v) {
    const unsigned lane = simt::lane_id();
    const std::uint32_t begin = row[v], end = row[v + 1];
    for (std::uint32_t e = begin / sector * sector + most_alone * sector; e < end;
         e += simt::warp_size) {
      const vertex u = e + lane < end ? column[e + lane] : no_vertex;
      const std::uint32_t votes = simt::ballot(simt::full_mask, u != no_vertex && is_in(u));
      if (votes == 0) continue;
      if (lane == simt::lowest_bit(votes)) found(v, u, end - begin);
      break;
    }
  }

  GROSR_DEVICE void found(vertex v, vertex parent, std::uint32_t degree) {
    label[v] = label_of(level + 1, parent);
    simt::atomic_ref<std::uint32_t, simt::scope::block>(mine.found[(v - base) / 32])
        .fetch_or(1u << v % 32, simt::relaxed);
    ++count;
    edges += degree;
  }
};

/// A slot of `slots` of the step: those not visited that have a neighbour in `from`, the level's
/// bitmap, are in `to`. A warp takes some words at a time: of large bitmaps most are its
/// own, in whatever order slots are taken; the rest whoever comes first has. For undirected graphs.
GROSR_DEVICE inline void bottom_up(const bfs_view& s, const std::uint32_t* from, std::uint32_t* to,
                                   std::uint32_t slot, std::uint32_t slots, std::uint32_t level) {
  using simt::in_global_memory;
  constexpr unsigned at_once = from_below_store::words_at_once;
  auto& mine = block_scratch<from_below_store>().warp[simt::warp_id()];
  const unsigned lane = simt::lane_id(), warps = simt::block_size() / simt::warp_size;
  const std::uint32_t all = (s.graph.vertices + 31ull) / 32, stride = slots * warps * at_once;
  const std::uint32_t shared_out = all / stride * 5 / 8 * stride;
  std::uint32_t* const visited = in_global_memory(s.visited);
  from_below search{in_global_memory(s.graph.row),
                    in_global_memory(s.graph.column),
                    in_global_memory(s.label),
                    in_global_memory(from),
                    mine,
                    0,
                    level};
  to = in_global_memory(to);
  std::uint32_t own = (slot * warps + simt::warp_id()) * at_once;
  const auto take = [&] {
    std::uint32_t next = own;
    if (own < shared_out)
      own += stride;
    else if (lane == 0)
      next = shared_out +
             simt::atomic_ref<std::uint32_t>(*s.next_word).fetch_add(at_once, simt::relaxed);
    return next;
  };
  for (std::uint32_t next = take();;) {
    const std::uint32_t taken = simt::shuffle(simt::full_mask, next, 0);
    if (taken >= all) break;
    next = take();  // its answer is on the way while these are worked on
    const std::uint32_t w = taken + lane;
    const bool has_word = lane < at_once && w < all;
    const std::uint32_t seen = has_word ? visited[w] : ~0u;
    std::uint32_t looking = 0;
    for (unsigned i = 0; i < at_once; ++i) {
      const std::uint32_t open = ~simt::shuffle(simt::full_mask, seen, i);
      if ((open >> lane & 1) != 0)
        mine.open[looking + simt::rank_in(open, lane)] = static_cast<std::uint8_t>(i * 32 + lane);
      looking += simt::popcount(open);
    }
    if (lane < at_once) mine.found[lane] = 0;
    simt::sync_warp();
    search.base = taken * 32;
    search.run(looking);
    simt::sync_warp();
    if (has_word) {
      const std::uint32_t bits = mine.found[lane];
      to[w] = bits;
      if (bits != 0) visited[w] = seen | bits;
    }
    simt::sync_warp();
  }
  const std::uint32_t found = warp_sum(search.count), edges = warp_sum(search.edges);
  if (lane == 0 && found != 0)
    simt::atomic_ref<std::uint64_t>(*s.found_below).fetch_add(tally(found, edges), simt::relaxed);
}

}  // namespace grosr::graphs
