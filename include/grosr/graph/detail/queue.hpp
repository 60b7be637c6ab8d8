// A level as a queue of vertices in device memory, with the number of edges before each, so that
// chunks are equal shares of edges wherever those begin: hubs are divided, small vertices share.
#pragma once

#include "grosr/graph/detail/block.hpp"
#include "grosr/graph/detail/labels.hpp"
#include "grosr/simt/atomic.hpp"

namespace grosr::graphs {

/// Vertices and their edges, counted in one word: the order of places is that of edges.
GROSR_DEVICE constexpr std::uint64_t tally(std::uint32_t vertices, std::uint32_t edges) {
  return std::uint64_t{vertices} << 32 | edges;
}

/// Device memory.
struct vertex_queue {
  vertex* v;
  std::uint32_t* offset;  ///< edges of those before
  std::uint64_t* total;   ///< a tally; of more vertices than there is room for, if so many came
};

inline constexpr std::uint32_t chunk_edges = 512;

/// What a block that works on a queue keeps.
struct queue_store {
  std::uint32_t start[chunk_edges];  ///< of each entry's edges, counted over the queue
  std::uint32_t base[chunk_edges];   ///< the graph's entry of edge e is base + e
  vertex from[chunk_edges];
  vertex found[chunk_edges];  ///< to be put into a queue
  std::uint32_t degree[chunk_edges];
  std::uint32_t count;  ///< of those found
  std::uint32_t first, last;
  std::uint64_t place;
};
GROSR_DEVICE inline queue_store& queueing() { return block_scratch<queue_store>(); }

/// Any thread: `v` is to be put into a queue by append(), which the whole block calls then.
GROSR_DEVICE inline void find_for_queue(vertex v, std::uint32_t degree) {
  const std::uint32_t place = simt::shared_add(queueing().count, 1);
  queueing().found[place] = v;
  queueing().degree[place] = degree;
}

/// Whole block: gives those found, without those that have no edges, places in the queue, and calls
/// put(vertex, place, offset) for each.
template <class Put>
GROSR_DEVICE void append(const vertex_queue& to, std::uint32_t count, const Put& put) {
  auto& store = queueing();
  const std::uint32_t size = simt::block_size();
  const std::uint32_t each = (count + size - 1) / size, t = simt::thread_id();
  std::uint32_t kept = 0, edges = 0;
  for (std::uint32_t i = t * each; i < (t + 1) * each && i < count; ++i) {
    kept += store.degree[i] != 0 ? 1 : 0;
    edges += store.degree[i];
  }
  const scanned places = block_scan(kept), before = block_scan(edges);
  if (t == 0)
    store.place = places.total == 0 ? 0
                                    : simt::atomic_ref<std::uint64_t>(*to.total).fetch_add(
                                          tally(places.total, before.total), simt::relaxed);
  simt::sync_block();
  std::uint32_t place = static_cast<std::uint32_t>(store.place >> 32) + places.before;
  std::uint32_t offset = static_cast<std::uint32_t>(store.place) + before.before;
  for (std::uint32_t i = t * each; i < (t + 1) * each && i < count; ++i) {
    if (store.degree[i] == 0) continue;
    put(store.found[i], place, offset);
    ++place;
    offset += store.degree[i];
  }
  simt::sync_block();
}

/// Whole warp: the last of `count` ascending numbers that is not above `target`; the first is not.
GROSR_DEVICE inline std::uint32_t warp_search(const std::uint32_t* sorted, std::uint32_t count,
                                              std::uint32_t target) {
  std::uint32_t low = 0, high = count;
  while (high - low > 1) {
    const std::uint32_t step = (high - low + simt::warp_size - 1) / simt::warp_size;
    const std::uint32_t at = low + simt::lane_id() * step;
    const std::uint32_t votes = simt::ballot(simt::full_mask, at < high && sorted[at] <= target);
    low += simt::highest_bit(votes) * step;
    if (low + step < high) high = low + step;
  }
  return low;
}

inline constexpr unsigned edges_at_once = 4;  // that a thread has under way

/// Some edges, all different: which there are, whose they are, and their entries in the graph.
struct some_edges {
  bool open[edges_at_once];
  vertex from[edges_at_once];
  std::uint32_t entry[edges_at_once];
};

/// Whole block, a chunk of chunk_edges of a queue that holds `count` vertices with `edges` edges:
/// calls take(some_edges) in whole warps until all edges were in one. Nothing is found before.
template <class Take>
GROSR_DEVICE void share_edges(const graph_ref& g, const vertex_queue& from, std::uint32_t count,
                              std::uint32_t edges, std::uint32_t chunk, const Take& take) {
  auto& store = queueing();
  const unsigned t = simt::thread_id(), size = simt::block_size();
  const std::uint32_t begin = chunk * chunk_edges;
  const std::uint32_t mine = edges - begin < chunk_edges ? edges - begin : chunk_edges;
  if (simt::warp_id() == 0) {
    const std::uint32_t first = warp_search(from.offset, count, begin);
    const std::uint32_t last = warp_search(from.offset, count, begin + mine - 1);
    if (simt::lane_id() == 0) {
      store.first = first;
      store.last = last;
      store.count = 0;
    }
  }
  simt::sync_block();
  const std::uint32_t first = store.first, entries = store.last - first + 1;
  for (std::uint32_t i = t; i < entries; i += size) {
    const std::uint32_t start = from.offset[first + i];
    const vertex v = from.v[first + i];
    store.start[i] = start;
    store.base[i] = g.row[v] - start;
    store.from[i] = v;
  }
  simt::sync_block();
  for (std::uint32_t base = t; base - t < mine; base += edges_at_once * size) {
    some_edges some;
    for (unsigned j = 0; j < edges_at_once; ++j) {
      some.open[j] = base + j * size < mine;
      if (!some.open[j]) continue;
      const std::uint32_t e = begin + base + j * size;
      std::uint32_t low = 0, high = entries;
      while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        if (store.start[middle] <= e)
          low = middle;
        else
          high = middle;
      }
      some.from[j] = store.from[low];
      some.entry[j] = store.base[low] + e;
    }
    take(some);
  }
}

}  // namespace grosr::graphs
