// The steps of a level-synchronous breadth-first search, by chunks, for blocks of any size. Whoever
// can see to it that all chunks of a step are done before the next one begins may drive them: a
// team in the resident grid, launches, a cooperative kernel.
//
// Top-down, a level is a queue (queue.hpp); bottom-up, it is a bitmap (bfs_below.hpp).
#pragma once

#include "grosr/graph/detail/bfs_below.hpp"

namespace grosr::graphs {

inline constexpr std::uint32_t chunk_vertices = 256, chunk_rows = 128;

// ---- preparing ----

/// A share of `shares`.
GROSR_DEVICE inline void reset(const bfs_view& s, std::uint32_t share, std::uint32_t shares,
                               const bfs_start& start) {
  if (start.fresh != 0)
    reset_labels(s.graph, s.label, share, shares, start.source, start.base);
  else if (share == 0 && simt::thread_id() == 0)
    s.label[start.source] = label_of(start.base, start.source);
  share_words(s.graph, share, shares, [&](std::uint32_t w) {
    const std::uint32_t seen = s.edgeless != nullptr ? s.edgeless[w] : 0;
    s.visited[w] = seen | (start.source / 32 == w ? 1u << start.source % 32 : 0);
    s.pending[w] = s.bits[0][w] = 0;
  });
}

// ---- queues ----

/// Any lane: a vertex into its place of a queue; if there is none, it is pending.
GROSR_DEVICE inline void put(const bfs_view& s, const vertex_queue& to, vertex v,
                             std::uint32_t place, std::uint32_t offset) {
  if (place < s.capacity) {
    to.v[place] = v;
    to.offset[place] = offset;
    return;
  }
  simt::atomic_ref<std::uint32_t>(s.pending[v / 32]).fetch_or(1u << v % 32, simt::relaxed);
  simt::atomic_ref<std::uint32_t>(s.state->marked).store(1, simt::relaxed);
}

/// Whole block: puts those found into the queue; those for which there is no room are pending.
GROSR_DEVICE inline void append(const bfs_view& s, const vertex_queue& to, std::uint32_t count) {
  append(to, count, [&](vertex v, std::uint32_t place, std::uint32_t offset) {
    put(s, to, v, place, offset);
  });
}

/// Chunk of chunk_words: vertices whose bits are set go into the queue. With `level`: those of
/// that distance, and their bits are cleared; without (unreached): all.
GROSR_DEVICE inline void gather_bits(const bfs_view& s, std::uint32_t* bits, const vertex_queue& to,
                                     std::uint32_t chunk, std::uint32_t level) {
  auto& store = queueing();
  const std::uint64_t words = (std::uint64_t{s.graph.vertices} + 31) / 32;
  const std::uint32_t size = simt::block_size();
  for (std::uint32_t base = 0; base < chunk_words; base += size) {
    const std::uint32_t w = chunk * chunk_words + base + simt::thread_id();
    std::uint32_t word = base + simt::thread_id() < chunk_words && w < words ? bits[w] : 0;
    if (level != unreached && word != 0) {
      std::uint32_t taken = 0;
      for (std::uint32_t rest = word; rest != 0; rest &= rest - 1) {
        const unsigned bit = simt::lowest_bit(rest);
        if (distance_of(s.label[w * 32 + bit]) == level) taken |= 1u << bit;
      }
      if (taken != word) simt::atomic_ref<std::uint32_t>(s.state->marked).store(1, simt::relaxed);
      bits[w] = word & ~taken;
      word = taken;
    }
    const scanned rank = block_scan(simt::popcount(word));
    for (std::uint32_t window = 0; window < rank.total; window += chunk_edges) {
      std::uint32_t i = rank.before;
      for (std::uint32_t rest = word; rest != 0; rest &= rest - 1, ++i)
        if (i >= window && i < window + chunk_edges)
          store.found[i - window] = w * 32 + simt::lowest_bit(rest);
      simt::sync_block();
      std::uint32_t count = rank.total - window;
      if (count > chunk_edges) count = chunk_edges;
      for (std::uint32_t k = simt::thread_id(); k < count; k += size)
        store.degree[k] = s.graph.row[store.found[k] + 1] - s.graph.row[store.found[k]];
      simt::sync_block();
      append(s, to, count);
    }
  }
}

/// Chunk of chunk_vertices of the queue: sets their bits.
GROSR_DEVICE inline void to_bits(const vertex_queue& from, std::uint32_t count, std::uint32_t* bits,
                                 std::uint32_t chunk) {
  const std::uint32_t first = chunk * chunk_vertices, size = simt::block_size();
  for (std::uint32_t i = first + simt::thread_id(); i < first + chunk_vertices && i < count;
       i += size) {
    const vertex v = from.v[i];
    simt::atomic_ref<std::uint32_t>(bits[v / 32]).fetch_or(1u << v % 32, simt::relaxed);
  }
}

// ---- top-down ----

/// Chunk of chunk_edges of the queue `from`, which holds `count` vertices with `edges` edges at
/// `level`: what they reach first goes to `to`. Threads that have nothing to read read something
/// else, so that no access waits for another one's outcome.
GROSR_DEVICE inline void expand(const bfs_view& s, const vertex_queue& from, std::uint32_t count,
                                std::uint32_t edges, const vertex_queue& to, std::uint32_t chunk,
                                std::uint32_t level) {
  constexpr unsigned n = edges_at_once;
  const std::uint32_t* const row = simt::in_global_memory(s.graph.row);
  const vertex* const column = simt::in_global_memory(s.graph.column);
  std::uint32_t* const visited = simt::in_global_memory(s.visited);
  std::uint64_t* const label = simt::in_global_memory(s.label);
  const auto word_of = [&](vertex u) { return simt::atomic_ref<std::uint32_t>(visited[u / 32]); };
  share_edges(s.graph, from, count, edges, chunk, [&](some_edges some) {
    vertex u[n];
    std::uint32_t seen[n], begin[n], end[n];
    auto& open = some.open;
    for (unsigned j = 0; j < n; ++j) u[j] = column[open[j] ? some.entry[j] : 0];
    simt::fetch_together();
    for (unsigned j = 0; j < n; ++j) seen[j] = word_of(u[j]).load(simt::relaxed);
    simt::fetch_together();
    for (unsigned j = 0; j < n; ++j) open[j] = open[j] && (seen[j] >> u[j] % 32 & 1) == 0;
    for (unsigned j = 0; j < n; ++j)
      if (open[j]) seen[j] = word_of(u[j]).fetch_or(1u << u[j] % 32, simt::relaxed);
    simt::fetch_together();
    for (unsigned j = 0; j < n; ++j) open[j] = open[j] && (seen[j] >> u[j] % 32 & 1) == 0;
    for (unsigned j = 0; j < n; ++j) {
      const vertex v = open[j] ? u[j] : 0;
      begin[j] = row[v];
      end[j] = row[v + 1];
    }
    simt::fetch_together();
    for (unsigned j = 0; j < n; ++j) {
      if (!open[j]) continue;
      label[u[j]] = label_of(level + 1, some.from[j]);
      find_for_queue(u[j], end[j] - begin[j]);
    }
  });
  simt::sync_block();
  append(s, to, queueing().count);
}

/// Chunk of chunk_edges of the queue `from`, the same while labels are not final: whose label
/// becomes less is pending.
GROSR_DEVICE inline void correct(const bfs_view& s, const vertex_queue& from, std::uint32_t count,
                                 std::uint32_t edges, std::uint32_t chunk, std::uint32_t level) {
  share_edges(s.graph, from, count, edges, chunk, [&](const some_edges& some) {
    for (unsigned j = 0; j < edges_at_once; ++j) {
      if (!some.open[j]) continue;
      const vertex u = s.graph.column[some.entry[j]];
      const simt::atomic_ref<std::uint64_t> label(s.label[u]);
      if (distance_of(label.load(simt::relaxed)) <= level + 1) continue;
      if (distance_of(label.fetch_min(label_of(level + 1, some.from[j]), simt::relaxed)) <=
          level + 1)
        continue;
      const std::uint32_t bit = 1u << u % 32;
      simt::atomic_ref<std::uint32_t>(s.visited[u / 32]).fetch_or(bit, simt::relaxed);
      simt::atomic_ref<std::uint32_t>(s.pending[u / 32]).fetch_or(bit, simt::relaxed);
    }
  });
}

/// Whole warp: each lane's vertices `u`, those that are any; whoever comes first to one puts it
/// into the queue.
GROSR_DEVICE inline void reach(const bfs_view& s, vertex parent, const vertex (&u)[4],
                               const vertex_queue& to, std::uint32_t level) {
  bool is_new[4];
  std::uint32_t degree[4], mine = 0, edges = 0;
  for (unsigned j = 0; j < 4; ++j) {
    is_new[j] = false;
    degree[j] = 0;
    if (u[j] == no_vertex) continue;
    const std::uint32_t bit = 1u << u[j] % 32;
    is_new[j] =
        (simt::atomic_ref<std::uint32_t>(s.visited[u[j] / 32]).fetch_or(bit, simt::relaxed) &
         bit) == 0;
    degree[j] = s.graph.row[u[j] + 1] - s.graph.row[u[j]];
  }
  for (unsigned j = 0; j < 4; ++j) {
    if (!is_new[j]) continue;
    s.label[u[j]] = label_of(level + 1, parent);
    if (degree[j] == 0) is_new[j] = false;
    mine += is_new[j] ? 1 : 0;
    edges += degree[j];
  }
  const unsigned lane = simt::lane_id();
  std::uint64_t sum = tally(mine, edges);
  for (unsigned step = 1; step < simt::warp_size; step *= 2) {
    const std::uint64_t other =
        simt::shuffle(simt::full_mask, sum, lane >= step ? lane - step : lane);
    if (lane >= step) sum += other;
  }
  const std::uint64_t all = simt::shuffle(simt::full_mask, sum, simt::warp_size - 1);
  if (all == 0) return;
  std::uint64_t place = 0;
  if (lane == 0) place = simt::atomic_ref<std::uint64_t>(*to.total).fetch_add(all, simt::relaxed);
  place = simt::shuffle(simt::full_mask, place, 0) + sum - tally(mine, edges);
  for (unsigned j = 0; j < 4; ++j) {
    if (!is_new[j]) continue;
    put(s, to, u[j], static_cast<std::uint32_t>(place >> 32), static_cast<std::uint32_t>(place));
    place += tally(1, degree[j]);
  }
}

/// Chunk of chunk_rows vertices of the queue `from`: the same by a lane for each vertex, for
/// vertices of few edges: fewer accesses one after the other. Those of many are their warp's.
GROSR_DEVICE inline void expand_rows(const bfs_view& s, const vertex_queue& from,
                                     std::uint32_t count, const vertex_queue& to,
                                     std::uint32_t chunk, std::uint32_t level) {
  constexpr unsigned at_once = 4;
  constexpr std::uint32_t many = 64;
  const unsigned lane = simt::lane_id(), size = simt::block_size();
  for (std::uint32_t base = simt::warp_id() * simt::warp_size; base < chunk_rows; base += size) {
    const std::uint32_t i = chunk * chunk_rows + base + lane;
    if (chunk * chunk_rows + base >= count) break;
    const vertex v = i < count ? from.v[i] : no_vertex;
    const std::uint32_t begin = v != no_vertex ? s.graph.row[v] : 0;
    const std::uint32_t end = v != no_vertex ? s.graph.row[v + 1] : 0;
    const bool wide = end - begin > many;
    std::uint32_t at = begin, last = wide ? begin : end;
    while (simt::any(simt::full_mask, at < last)) {
      vertex u[at_once];
      for (unsigned j = 0; j < at_once; ++j)
        u[j] = at + j < last ? s.graph.column[at + j] : no_vertex;
      reach(s, v, u, to, level);
      at += at_once;
    }
    for (std::uint32_t rest = simt::ballot(simt::full_mask, wide); rest != 0; rest &= rest - 1) {
      const unsigned owner = simt::lowest_bit(rest);
      const vertex parent = simt::shuffle(simt::full_mask, v, owner);
      const std::uint32_t stop = simt::shuffle(simt::full_mask, end, owner);
      for (std::uint32_t e = simt::shuffle(simt::full_mask, begin, owner); e < stop;
           e += at_once * simt::warp_size) {
        vertex u[at_once];
        for (unsigned j = 0; j < at_once; ++j) {
          const std::uint32_t k = e + j * simt::warp_size + lane;
          u[j] = k < stop ? s.graph.column[k] : no_vertex;
        }
        reach(s, parent, u, to, level);
      }
    }
  }
}

}  // namespace grosr::graphs
