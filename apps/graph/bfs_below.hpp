// Bottom-up steps of a breadth-first search: every vertex that was not visited looks for a
// neighbour in the last level, which is a bitmap (Beamer, Asanovic, Patterson: Direction-Optimizing
// Breadth-First Search, SC 2012).
#pragma once

#include "bfs_view.hpp"

namespace grosr::graphs {

/// What each warp keeps of some words of the bitmap.
struct from_below_store {
  static constexpr unsigned words_at_once = 8;
  std::uint32_t next;  ///< word of the chunk that no warp has yet
  struct one {
    std::uint8_t open[words_at_once * 32];  ///< vertices that look for a parent
    std::uint32_t found[words_at_once];
  } warp[32];
};

/// A warp's search for the parents of some vertices.
struct from_below {
  const bfs_view& s;
  const std::uint32_t* level_bits;
  from_below_store::one& mine;
  vertex base;                         ///< the first vertex of the words
  std::uint32_t level;                 ///< that parents are of
  std::uint32_t count = 0, edges = 0;  // what this lane found

  static constexpr unsigned sector = 8;      // edges that one access of memory brings
  static constexpr unsigned most_alone = 4;  // sectors that a lane looks at by itself
  static constexpr unsigned each = 2;        // vertices a lane

  GROSR_DEVICE bool is_in(vertex u) const { return (level_bits[u / 32] >> u % 32 & 1) != 0; }

  /// Whole warp: `looking` vertices lie in mine.open.
  GROSR_DEVICE void run(std::uint32_t looking) {
    for (unsigned turn = 0; turn < most_alone && looking != 0; ++turn) {
      std::uint32_t left = 0;
      for (std::uint32_t k = 0; k < looking; k += each * simt::warp_size)
        left = look(k, looking, turn, left);
      looking = left;
    }
    for (std::uint32_t k = 0; k < looking; ++k) look_far(base + mine.open[k]);
  }

  /// Whole warp: one sector of the edges of each of the next vertices; those that must look on are
  /// kept, from place `left` on.
  GROSR_DEVICE std::uint32_t look(std::uint32_t k, std::uint32_t looking, unsigned turn,
                                  std::uint32_t left) {
    const std::uint32_t* const row = s.graph.row;
    const unsigned lane = simt::lane_id();
    vertex v[each], parent[each];
    std::uint32_t begin[each], end[each], at[each];
    for (unsigned i = 0; i < each; ++i) {
      const std::uint32_t place = k + i * simt::warp_size + lane;
      v[i] = place < looking ? base + mine.open[place] : no_vertex;
      parent[i] = no_vertex;
    }
    for (unsigned i = 0; i < each; ++i) {
      begin[i] = v[i] != no_vertex ? row[v[i]] : 0;
      end[i] = v[i] != no_vertex ? row[v[i] + 1] : 0;
    }
    entry_quad quad[each][2];
    for (unsigned i = 0; i < each; ++i) {
      at[i] = begin[i] / sector * sector + turn * sector;
      if (at[i] >= end[i]) continue;
      quad[i][0] = quad_of(s.graph.column, at[i]);
      quad[i][1] = quad_of(s.graph.column, at[i] + 4);
    }
    for (unsigned half = 0; half < 2; ++half) {
      bool in[each][4];
      for (unsigned i = 0; i < each; ++i)
        for (unsigned j = 0; j < 4; ++j) {
          const std::uint32_t e = at[i] + half * 4 + j;
          in[i][j] = parent[i] == no_vertex && e >= begin[i] && e < end[i] &&
                     is_in(quad[i][half].column[j]);
        }
      for (unsigned i = 0; i < each; ++i)
        for (unsigned j = 4; j-- > 0;)
          if (in[i][j]) parent[i] = quad[i][half].column[j];
    }
    for (unsigned i = 0; i < each; ++i) {
      if (parent[i] != no_vertex) found(v[i], parent[i], end[i] - begin[i]);
      const bool goes_on = parent[i] == no_vertex && at[i] + sector < end[i];
      const std::uint32_t votes = simt::ballot(simt::full_mask, goes_on);
      if (goes_on)
        mine.open[left + simt::rank_in(votes, lane)] = static_cast<std::uint8_t>(v[i] - base);
      left += simt::popcount(votes);
    }
    simt::sync_warp();
    return left;
  }

  /// Whole warp: the edges of one vertex that are left.
  GROSR_DEVICE void look_far(vertex v) {
    const unsigned lane = simt::lane_id();
    const std::uint32_t begin = s.graph.row[v], end = s.graph.row[v + 1];
    for (std::uint32_t e = begin / sector * sector + most_alone * sector; e < end;
         e += simt::warp_size) {
      const vertex u = e + lane < end ? s.graph.column[e + lane] : no_vertex;
      const std::uint32_t votes = simt::ballot(simt::full_mask, u != no_vertex && is_in(u));
      if (votes == 0) continue;
      if (lane == simt::lowest_bit(votes)) found(v, u, end - begin);
      break;
    }
  }

  GROSR_DEVICE void found(vertex v, vertex parent, std::uint32_t degree) {
    s.label[v] = label_of(level + 1, parent);
    simt::atomic_ref<std::uint32_t, simt::scope::block>(mine.found[(v - base) / 32])
        .fetch_or(1u << v % 32, simt::relaxed);
    ++count;
    edges += degree;
  }
};

/// Chunk of `words` words: those not visited that have a neighbour in `from`, the level's bitmap,
/// are in `to`. For undirected graphs.
GROSR_DEVICE inline void bottom_up(const bfs_view& s, const std::uint32_t* from, std::uint32_t* to,
                                   std::uint32_t chunk, std::uint32_t words, std::uint32_t level) {
  constexpr unsigned at_once = from_below_store::words_at_once;
  auto& store = block_scratch<from_below_store>();
  auto& mine = store.warp[simt::warp_id()];
  const unsigned lane = simt::lane_id();
  const std::uint64_t all = (std::uint64_t{s.graph.vertices} + 31) / 32;
  const std::uint64_t first = std::uint64_t{chunk} * words;
  if (simt::thread_id() == 0) store.next = 0;
  simt::sync_block();
  from_below search{s, from, mine, 0, level};
  for (;;) {
    std::uint32_t taken = 0;
    if (lane == 0) taken = simt::shared_add(store.next, at_once);
    taken = simt::shuffle(simt::full_mask, taken, 0);
    if (taken >= words) break;
    const std::uint64_t w = first + taken;
    const bool has_word = lane < at_once && taken + lane < words && w + lane < all;
    const std::uint32_t seen = has_word ? s.visited[w + lane] : ~0u;
    std::uint32_t looking = 0;
    for (unsigned i = 0; i < at_once; ++i) {
      const std::uint32_t open = ~simt::shuffle(simt::full_mask, seen, i);
      if ((open >> lane & 1) != 0)
        mine.open[looking + simt::rank_in(open, lane)] = static_cast<std::uint8_t>(i * 32 + lane);
      looking += simt::popcount(open);
    }
    if (lane < at_once) mine.found[lane] = 0;
    simt::sync_warp();
    search.base = static_cast<vertex>(w * 32);
    search.run(looking);
    simt::sync_warp();
    if (has_word) {
      const std::uint32_t bits = mine.found[lane];
      to[w + lane] = bits;
      if (bits != 0) s.visited[w + lane] = seen | bits;
    }
    simt::sync_warp();
  }
  const std::uint32_t found = warp_sum(search.count), edges = warp_sum(search.edges);
  if (lane == 0 && found != 0)
    simt::atomic_ref<std::uint64_t>(*s.awake).fetch_add(tally(found, edges), simt::relaxed);
}

}  // namespace grosr::graphs
