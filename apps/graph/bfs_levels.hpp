// Levels of a breadth-first search: which step comes next, decided by one thread between steps, for
// whoever drives them.
#pragma once

#include "bfs_steps.hpp"

namespace grosr::graphs {

/// Device memory. Steps read it; one thread changes it when none is under way.
struct bfs_levels {
  enum kind : std::uint32_t {
    finished,      ///< nothing is left
    small,         ///< what is left is little, in the queue
    gather_level,  ///< what is pending of this level into the queue
    edges_down,    ///< the queue's edges, by shares of edges
    rows_down,     ///< the same, a lane a vertex
    clear_bits,
    queue_to_bits,
    pending_to_bits,
    from_below,
    bits_to_queue,
  };

  alignas(128) std::uint64_t total[2];
  alignas(128) std::uint64_t awake;
  alignas(128) std::uint32_t now;  ///< the step, a kind
  std::uint32_t level;
  std::uint32_t queue;         ///< the one that is read, or gathered in
  std::uint32_t count, edges;  ///< what it holds
  std::uint32_t bits;          ///< the bitmap that is read
  std::uint32_t before;        ///< vertices of the last level found from below
  std::uint32_t bits_used;
  std::uint32_t all_of_level;  ///< what is pending is of this level
  std::uint64_t expanded;      ///< edges, top-down
  // Given by the host.
  std::uint32_t undirected, stops_when_small;
  std::uint32_t first_levels;  ///< of a search, that are not left to a wave if they are small
  std::uint32_t words_up;      ///< of a bitmap, that a chunk from below is

  /// Begins with what is pending of a level.
  GROSR_DEVICE void begin(const bfs_view& s, std::uint32_t at) {
    forget(at);
    gather(s);
  }

  /// Begins with one vertex, after a reset.
  GROSR_DEVICE void begin_at(const bfs_view& s, vertex source) {
    forget(0);
    bits_used = 0;
    s.state->marked = 0;
    const std::uint32_t degree = s.graph.row[source + 1] - s.graph.row[source];
    if (degree == 0) return finish();
    put(s, s.queue[0], source, 0, 0);
    total[0] = tally(1, degree);
    measure(s);
    choose(s);
  }

  /// For so many blocks of so many warps: a few chunks each, and something for every warp.
  static std::uint32_t choose_words_up(vertex vertices, unsigned blocks, unsigned warps) {
    constexpr std::uint32_t some = from_below_store::words_at_once;
    const std::uint32_t each = vertices / 32 / (2 * blocks) / warps / some;
    return warps * some * (each < 1 ? 1 : each > 4 ? 4 : each);
  }

  /// The chunks of the step.
  GROSR_DEVICE std::uint32_t chunks(const bfs_view& s) const {
    const std::uint64_t words = (std::uint64_t{s.graph.vertices} + 31) / 32;
    switch (now) {
      case finished:
      case small:
        return 0;
      case edges_down:
        return chunks_of(edges, chunk_edges);
      case rows_down:
        return chunks_of(count, chunk_rows);
      case queue_to_bits:
        return chunks_of(count, chunk_vertices);
      case from_below:
        return chunks_of(words, words_up);
      default:
        return chunks_of(words, chunk_words);
    }
  }

  /// A chunk of the step, by a whole block.
  GROSR_DEVICE void work(const bfs_view& s, std::uint32_t chunk) const {
    const vertex_queue &from = s.queue[queue], &to = s.queue[1 - queue];
    switch (now) {
      case gather_level:
        return gather_bits(s, s.pending, from, chunk, level);
      case bits_to_queue:
        return gather_bits(s, s.bits[bits], from, chunk, unreached);
      case edges_down:
        return expand(s, from, count, edges, to, chunk, level);
      case rows_down:
        return expand_rows(s, from, count, to, chunk, level);
      case queue_to_bits:
        return to_bits(from, count, s.bits[0], chunk);
      case from_below:
        return bottom_up(s, s.bits[bits], s.bits[1 - bits], chunk, words_up, level);
      case clear_bits:
        return each_word(s.graph, chunk, chunk_words, [&](std::uint32_t w) { s.bits[0][w] = 0; });
      case pending_to_bits:
        return each_word(s.graph, chunk, chunk_words, [&](std::uint32_t w) {
          s.bits[0][w] |= s.pending[w];
          s.pending[w] = 0;
        });
      default:
        return;
    }
  }

  /// One thread, when all chunks are done: the next step.
  GROSR_DEVICE void next(const bfs_view& s) {
    switch (now) {
      case gather_level:
        measure(s);
        if (count != 0) return choose(s);
        return is_marked(s) || total[1 - queue] != 0 ? advance(s) : finish();
      case edges_down:
      case rows_down:
        expanded += edges;
        total[queue] = 0;
        if (is_marked(s)) return gather(s);
        return advance(s);
      case clear_bits:
        now = queue_to_bits;
        return;
      case queue_to_bits:
        if (is_marked(s)) {
          s.state->marked = 0;
          now = pending_to_bits;
          return;
        }
        return go_up(count);
      case pending_to_bits:
        return go_up(count);
      case from_below:
        return from_there(s);
      case bits_to_queue:
        measure(s);
        return choose(s);
      default:
        return;
    }
  }

  /// What the queue holds; what it had no room for is pending.
  GROSR_DEVICE void measure(const bfs_view& s) {
    const std::uint64_t t = simt::atomic_ref<std::uint64_t>(total[queue]).load(simt::relaxed);
    count = static_cast<std::uint32_t>(t >> 32);
    edges = static_cast<std::uint32_t>(t);
    if (count <= s.capacity) return;
    count = s.capacity;
    const vertex last = s.queue[queue].v[count - 1];
    edges = s.queue[queue].offset[count - 1] + s.graph.row[last + 1] - s.graph.row[last];
  }

 private:
  GROSR_DEVICE static bool is_marked(const bfs_view& s) {
    return simt::atomic_ref<std::uint32_t>(s.state->marked).load(simt::relaxed) != 0;
  }

  GROSR_DEVICE void finish() { now = finished; }

  GROSR_DEVICE void forget(std::uint32_t at) {
    total[0] = total[1] = 0;
    level = at;
    queue = 0;
    all_of_level = 0;
    expanded = 0;
  }

  GROSR_DEVICE void gather(const bfs_view& s) {
    s.state->marked = 0;
    now = gather_level;
  }

  /// The level is done: the next one.
  GROSR_DEVICE void advance(const bfs_view& s) {
    queue = 1 - queue;
    ++level;
    all_of_level = 1;
    measure(s);
    choose(s);
  }

  GROSR_DEVICE void choose(const bfs_view& s) {
    const bool rest = is_marked(s);
    if (count == 0) return rest ? gather(s) : finish();
    const bool whole = total[1 - queue] == 0;  // nothing of the next level is there yet
    if (undirected != 0 && whole && (!rest || all_of_level != 0) &&
        edges > (s.graph.entries - expanded) / s.tuning.alpha) {
      now = bits_used != 0 ? clear_bits : queue_to_bits;
      bits_used = 1;
      return;
    }
    if (stops_when_small != 0 && level >= first_levels && whole && !rest &&
        count <= s.tuning.few_vertices && edges <= s.tuning.few_edges && all_of_level != 0) {
      now = small;
      return;
    }
    // A lane a vertex has fewer accesses one after the other; shares of edges keep all blocks busy.
    now = edges / few_edges_each <= count && edges <= few_in_all ? rows_down : edges_down;
  }

  GROSR_DEVICE void go_up(std::uint32_t vertices) {
    before = vertices;
    bits = 0;
    awake = 0;
    now = from_below;
  }

  GROSR_DEVICE void from_there(const bfs_view& s) {
    const std::uint64_t found = simt::atomic_ref<std::uint64_t>(awake).load(simt::relaxed);
    const auto vertices = static_cast<std::uint32_t>(found >> 32);
    bits = 1 - bits;
    ++level;
    awake = 0;
    if (vertices == 0) return finish();
    if (vertices > before || vertices > s.graph.vertices / s.tuning.beta) {
      before = vertices;
      return;
    }
    total[0] = total[1] = 0;
    queue = 0;
    all_of_level = 1;
    now = bits_to_queue;
  }

  static constexpr std::uint32_t few_edges_each = 8, few_in_all = 1u << 16;
};

}  // namespace grosr::graphs
