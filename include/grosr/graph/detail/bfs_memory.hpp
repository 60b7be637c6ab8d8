// What a breadth-first search needs on the device besides the graph, whoever drives it.
#pragma once

#include "grosr/graph/detail/bfs_levels.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::graphs {

/// A kernel: the bits of bfs_view::edgeless.
struct find_edgeless {
  graph_ref graph;
  std::uint32_t* bits;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t all = (std::uint64_t{graph.vertices} + 31) / 32;
    const unsigned warps = simt::block_size() / simt::warp_size;
    for (std::uint64_t w = simt::block_id() * warps + simt::warp_id(); w < all;
         w += std::uint64_t{simt::grid_size()} * warps) {
      const std::uint64_t v = w * 32 + simt::lane_id();
      const bool has_edges = v < graph.vertices && graph.row[v + 1] != graph.row[v];
      const std::uint32_t votes = simt::ballot(simt::full_mask, has_edges);
      if (simt::lane_id() == 0) bits[w] = ~votes;
    }
  }
};

/// Owner of the memory behind a bfs_view: 16.6 bytes a vertex, and 1.3 MB for the pool.
struct bfs_memory {
  static constexpr std::uint32_t pool_entries = 1u << 16;

  simt::buffer<std::uint64_t> label;
  simt::buffer<std::uint32_t> bitmaps, queues;
  queue::ring<wave_entry> pool;
  std::uint32_t capacity, words;

  bfs_memory(const device_graph& g, std::uint32_t wanted)
      : label(g.where(), simt::space::device, g.vertices()),
        bitmaps(g.where(), simt::space::device, 5 * ((std::size_t{g.vertices()} + 31) / 32)),
        queues(g.where(), simt::space::device, std::size_t{4} * room(g, wanted)),
        pool(g.where(), pool_entries),
        capacity(room(g, wanted)),
        words(static_cast<std::uint32_t>((std::uint64_t{g.vertices()} + 31) / 32)) {
    if (g.directed()) return;
    simt::stream stream(g.where());
    simt::launch<256, 1>(stream, {g.where().properties().sms * 4, 256},
                         find_edgeless{g.ref(), bitmaps.data() + std::size_t{4} * words});
    stream.wait();
  }

  bfs_view view(const device_graph& g, wave_state* wave, bfs_levels* levels) const {
    bfs_view v{};
    v.graph = g.ref();
    v.label = label.data();
    v.visited = bitmaps.data();
    v.pending = bitmaps.data() + words;
    v.bits[0] = v.pending + words;
    v.bits[1] = v.bits[0] + words;
    v.state = wave;
    v.pool = pool.ref();
    for (unsigned q = 0; q < 2; ++q)
      v.queue[q] = {queues.data() + std::size_t{2} * q * capacity,
                    queues.data() + (std::size_t{2} * q + 1) * capacity, levels->counts.total + q};
    v.capacity = capacity;
    v.found_below = &levels->counts.found_below;
    v.next_word = &levels->counts.next_word;
    v.edgeless = g.directed() ? nullptr : v.bits[1] + words;
    return v;
  }

  std::size_t bytes() const {
    return label.bytes() + bitmaps.bytes() + queues.bytes() +
           queue::ring<wave_entry>::bytes(pool_entries);
  }

 private:
  static std::uint32_t room(const device_graph& g, std::uint32_t wanted) {
    const std::uint32_t all = g.vertices() / 2 + 64;
    return wanted != 0 && wanted < all ? wanted : all;
  }
};

}  // namespace grosr::graphs
