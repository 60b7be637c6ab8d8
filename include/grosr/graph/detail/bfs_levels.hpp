// Levels of a breadth-first search: which step comes next, decided by one thread between steps, for
// whoever drives them.
#pragma once

#include "grosr/graph/detail/bfs_steps.hpp"

namespace grosr::graphs {

/// What the step is.
struct level_plan {
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

  std::uint32_t now;           ///< a kind
  std::uint32_t base;          ///< the source's distance
  std::uint32_t level;         ///< a distance, as labels have it
  std::uint32_t queue;         ///< the one that is read, or gathered in
  std::uint32_t count, edges;  ///< what it holds
  std::uint32_t bits;          ///< the bitmap that is read
  std::uint32_t before;        ///< vertices of the last level found from below
  std::uint32_t bits_used;
  std::uint32_t all_of_level;  ///< what is pending is of this level: one was done since begin()
  std::uint64_t expanded;      ///< edges, top-down
};

/// What drivers need to know of it.
struct level_step {
  std::uint32_t kind, level, chunks;
};

/// What steps add up.
struct level_counts {
  std::uint64_t total[2];     ///< tallies of the queues
  std::uint64_t found_below;  ///< and of what was found from below
  std::uint32_t next_word;
};

/// Device memory. Steps read the plan and add to the counts; one thread changes both when none is
/// under way.
struct bfs_levels {
  alignas(128) level_counts counts;
  alignas(128) level_plan plan;
  // Given by the host.
  std::uint32_t undirected, stops_when_small;
  std::uint32_t first_levels;  ///< of a search, that are not left to a wave if they are small
  std::uint32_t blocks;        ///< that work at a time, at most

  /// Begins with what is pending of a level: the first step.
  GROSR_DEVICE level_step begin(const bfs_view& s, std::uint32_t at);
  /// Begins with one vertex, while or before all else is reset.
  GROSR_DEVICE void begin_at(const bfs_view& s, const bfs_start& start);
  /// One thread, when all chunks are done: the next step. Before, what it would be (`done` false).
  GROSR_DEVICE level_step next(const bfs_view& s, bool done = true);
  /// What was gathered into queue 0; what it had no room for is pending.
  GROSR_DEVICE void measure_gathered(const bfs_view& s);

  /// The chunks of the step.
  GROSR_DEVICE std::uint32_t chunks(const bfs_view& s) const { return chunks(s, plan); }
  GROSR_DEVICE std::uint32_t chunks(const bfs_view& s, const level_plan& p) const {
    switch (p.now) {
      case level_plan::finished:
      case level_plan::small:
        return 0;
      case level_plan::edges_down:
        return chunks_of(p.edges, chunk_edges);
      case level_plan::rows_down:
        return chunks_of(p.count, chunk_rows);
      case level_plan::queue_to_bits:
        return chunks_of(p.count, chunk_vertices);
      case level_plan::from_below:
        return blocks;
      default:
        return word_chunks(s.graph);
    }
  }

  /// The step.
  GROSR_DEVICE level_step now(const bfs_view& s) const { return step(s, plan); }
  GROSR_DEVICE level_step step(const bfs_view& s, const level_plan& p) const {
    return {p.now, p.level, chunks(s, p)};
  }

  /// A chunk of the step, which is plan.now, by a whole block.
  GROSR_DEVICE void work(const bfs_view& s, std::uint32_t kind, std::uint32_t chunk) const {
    const level_plan& p = plan;
    const vertex_queue &from = s.queue[p.queue], &to = s.queue[1 - p.queue];
    switch (kind) {
      case level_plan::gather_level:
        return gather_bits(s, s.pending, from, chunk, p.level);
      case level_plan::bits_to_queue:
        return gather_bits(s, s.bits[p.bits], from, chunk, unreached);
      case level_plan::edges_down:
        return expand(s, from, p.count, p.edges, to, chunk, p.level);
      case level_plan::rows_down:
        return expand_rows(s, from, p.count, to, chunk, p.level);
      case level_plan::queue_to_bits:
        return to_bits(from, p.count, s.bits[0], chunk);
      case level_plan::from_below:
        return bottom_up(s, s.bits[p.bits], s.bits[1 - p.bits], chunk, blocks, p.level);
      case level_plan::clear_bits:
        return each_word(s.graph, chunk, chunk_words, [&](std::uint32_t w) { s.bits[0][w] = 0; });
      case level_plan::pending_to_bits:
        return each_word(s.graph, chunk, chunk_words, [&](std::uint32_t w) {
          s.bits[0][w] |= s.pending[w];
          s.pending[w] = 0;
        });
      default:
        return;
    }
  }
};

/// One thread's copy of what changes between steps: all loads are under way together, and nothing
/// is looked at twice.
class level_choice : level_plan, level_counts {
 public:
  GROSR_DEVICE level_choice(bfs_levels& l, const bfs_view& s)
      : level_plan(l.plan), levels_(l), s_(s) {
    const auto load = [](std::uint64_t& word) {
      return simt::atomic_ref<std::uint64_t>(word).load(simt::relaxed);
    };
    total[0] = load(l.counts.total[0]);
    total[1] = load(l.counts.total[1]);
    found_below = load(l.counts.found_below);
    next_word = 0;
    marked_ = simt::atomic_ref<std::uint32_t>(s.state->marked).load(simt::relaxed);
  }

  GROSR_DEVICE const level_plan& plan() const { return *this; }

  GROSR_DEVICE void store() const {
    levels_.plan = *this;
    levels_.counts = *this;
    s_.state->marked = marked_;
  }

  GROSR_DEVICE void begin(std::uint32_t at) {
    forget(at);
    gather();
  }

  GROSR_DEVICE void begin_at(const bfs_start& start) {
    const vertex source = start.source;
    base = start.base;
    forget(base);
    bits_used = marked_ = 0;
    const std::uint32_t degree = s_.graph.row[source + 1] - s_.graph.row[source];
    if (degree == 0) return finish();
    put(s_, s_.queue[0], source, 0, 0);
    total[0] = tally(1, degree);
    measure();
    choose();
  }

  GROSR_DEVICE void next(bool done) {
    done_ = done;
    switch (now) {
      case gather_level:
        measure();
        if (count != 0) return choose();
        return marked_ != 0 || total[1 - queue] != 0 ? advance() : finish();
      case edges_down:
      case rows_down:
        expanded += edges;
        total[queue] = 0;
        if (marked_ != 0) return gather();
        return advance();
      case clear_bits:
        now = queue_to_bits;
        return;
      case queue_to_bits:
        if (marked_ != 0) {
          marked_ = 0;
          now = pending_to_bits;
          return;
        }
        return go_up();
      case pending_to_bits:
        return go_up();
      case from_below:
        return after_below();
      case bits_to_queue:
        measure();
        return choose();
      default:
        return;
    }
  }

  GROSR_DEVICE void measure_gathered() {
    queue = 0;
    measure();
  }

 private:
  GROSR_DEVICE void measure() {
    const std::uint64_t t = total[queue];
    count = static_cast<std::uint32_t>(t >> 32);
    edges = static_cast<std::uint32_t>(t);
    if (count <= s_.capacity) return;
    count = s_.capacity;
    if (!done_) return;  // it may not have been written yet
    const vertex last = s_.queue[queue].v[count - 1];
    edges = s_.queue[queue].offset[count - 1] + s_.graph.row[last + 1] - s_.graph.row[last];
  }

  GROSR_DEVICE void finish() { now = finished; }

  GROSR_DEVICE void forget(std::uint32_t at) {
    total[0] = total[1] = 0;
    level = at;
    queue = 0;
    all_of_level = 0;
    expanded = 0;
  }

  GROSR_DEVICE void gather() {
    marked_ = 0;
    now = gather_level;
  }

  /// The level is done: the next one.
  GROSR_DEVICE void advance() {
    queue = 1 - queue;
    ++level;
    all_of_level = 1;
    measure();
    choose();
  }

  GROSR_DEVICE void choose() {
    const bool rest = marked_ != 0;
    if (count == 0) return rest ? gather() : finish();
    const auto& tuning = s_.tuning;
    const bool whole = total[1 - queue] == 0;  // nothing of the next level is there yet
    if (levels_.undirected != 0 && whole && (!rest || all_of_level != 0) &&
        std::uint64_t{edges} * tuning.alpha > s_.graph.entries - expanded) {
      now = bits_used != 0 ? clear_bits : queue_to_bits;
      bits_used = 1;
      return;
    }
    // Not what a wave has just left: at least one level comes between two waves.
    if (levels_.stops_when_small != 0 && level - base >= levels_.first_levels && whole && !rest &&
        count <= tuning.few_vertices && edges <= tuning.few_edges && all_of_level != 0) {
      now = small;
      return;
    }
    // A lane a vertex has fewer accesses one after the other; shares of edges keep all blocks busy.
    now = edges / few_edges_each <= count && edges <= few_in_all ? rows_down : edges_down;
  }

  GROSR_DEVICE void go_up() {
    before = count;
    bits = 0;
    found_below = 0;
    now = from_below;
  }

  GROSR_DEVICE void after_below() {
    const auto vertices = static_cast<std::uint32_t>(found_below >> 32);
    bits = 1 - bits;
    ++level;
    found_below = 0;
    if (vertices == 0) return finish();
    if (vertices > before || std::uint64_t{vertices} * s_.tuning.beta > s_.graph.vertices) {
      before = vertices;
      return;
    }
    total[0] = total[1] = 0;
    queue = 0;
    all_of_level = 1;
    now = bits_to_queue;
  }

  static constexpr std::uint32_t few_edges_each = 8, few_in_all = 1u << 16;
  bfs_levels& levels_;
  const bfs_view& s_;
  std::uint32_t marked_;  ///< something is pending
  bool done_ = true;      ///< what is counted will not change
};

GROSR_DEVICE inline level_step bfs_levels::begin(const bfs_view& s, std::uint32_t at) {
  level_choice c(*this, s);
  c.begin(at);
  c.store();
  return step(s, c.plan());
}
GROSR_DEVICE inline void bfs_levels::begin_at(const bfs_view& s, const bfs_start& start) {
  level_choice c(*this, s);
  c.begin_at(start);
  c.store();
}
GROSR_DEVICE inline level_step bfs_levels::next(const bfs_view& s, bool done) {
  level_choice c(*this, s);
  c.next(done);
  if (done) c.store();
  return step(s, c.plan());
}
GROSR_DEVICE inline void bfs_levels::measure_gathered(const bfs_view& s) {
  level_choice c(*this, s);
  c.measure_gathered();
  c.store();
}

}  // namespace grosr::graphs
