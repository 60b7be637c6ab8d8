// Connected components in the resident grid, by steps of a team.
//
// Afforest (Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via
// Subgraph Sampling", IPDPS 2018): vertices are trees whose roots are their least vertices; an edge
// hooks the greater root below the lesser one. After two edges of every vertex most vertices are in
// one tree; in undirected graphs only the others need look at the rest of their edges.
#pragma once

#include <cerrno>

#include "grosr/graph/detail/job.hpp"

namespace grosr::graphs {

struct components_view {
  graph_ref graph;
  vertex* parent;  ///< at last, the label: the least vertex of the component
};

/// Device memory.
struct components_job : job_base<components_job> {
  using cost = void;
  using view_type = components_view;
  enum kind : std::uint32_t { begin_all = first_step, hook_one, flatten, hook_rest };

  struct coordinator {
    static constexpr grosr::width width = grosr::width::block;
    static constexpr bool runs_long = true;
    components_job* job;
    GROSR_DEVICE int operator()(auto& context) const;
  };

  static constexpr std::uint32_t chunk = 1024;     // vertices
  static constexpr std::uint32_t first_edges = 2;  // of each vertex, that are hooked first
  static constexpr std::uint32_t alone = 32;       // edges that a lane looks at by itself

  team_state team;
  vertex largest;  ///< root of the tree that most vertices seem to be in; or no_vertex
  // Given by the host.
  components_view view;
  std::uint32_t undirected;
  job_log log;

  /// A chunk of a step, by a whole block.
  GROSR_DEVICE GROSR_NOINLINE void work(const view_type& s, std::uint32_t kind,
                                        std::uint32_t number) {
    const std::uint64_t first = std::uint64_t{number} * chunk;
    const unsigned lane = simt::lane_id();
    for (std::uint32_t base = simt::warp_id() * simt::warp_size; base < chunk;
         base += simt::block_size()) {
      if (first + base >= s.graph.vertices) break;
      const bool mine = first + base + lane < s.graph.vertices;
      const auto v = static_cast<vertex>(mine ? first + base + lane : 0);
      if (kind == begin_all && mine) s.parent[v] = v;
      if (kind == flatten && mine) word(s.parent[v]).store(root(s, v), simt::relaxed);
      if (kind == hook_one && mine && team.level < s.graph.row[v + 1] - s.graph.row[v])
        hook(s, v, s.graph.column[s.graph.row[v] + team.level]);
      if (kind == hook_rest) rest_of(s, v, mine);
    }
  }

 private:
  using word = simt::atomic_ref<vertex>;

  GROSR_DEVICE static vertex root(const view_type& s, vertex v) {
    vertex up = word(s.parent[v]).load(simt::relaxed);
    for (vertex next = word(s.parent[up]).load(simt::relaxed); next != up;
         next = word(s.parent[up]).load(simt::relaxed))
      up = next;
    return up;
  }

  GROSR_DEVICE static void hook(const view_type& s, vertex a, vertex b) {
    vertex x = word(s.parent[a]).load(simt::relaxed), y = word(s.parent[b]).load(simt::relaxed);
    while (x != y) {
      const vertex high = x > y ? x : y, low = x > y ? y : x;
      vertex above = word(s.parent[high]).load(simt::relaxed);
      if (above == low) return;
      if (above == high && word(s.parent[high]).compare_exchange(above, low, simt::relaxed)) return;
      x = word(s.parent[word(s.parent[high]).load(simt::relaxed)]).load(simt::relaxed);
      y = word(s.parent[low]).load(simt::relaxed);
    }
  }

  /// Whole warp: all edges but the first ones, of vertices that are not in the largest tree.
  GROSR_DEVICE void rest_of(const view_type& s, vertex v, bool mine) const {
    std::uint32_t at = 0, end = 0;
    if (mine && (largest == no_vertex || word(s.parent[v]).load(simt::relaxed) != largest)) {
      at = s.graph.row[v] + first_edges;
      end = s.graph.row[v + 1];
      if (at > end) at = end;
    }
    const bool many = end - at > alone;
    if (!many)
      for (; at < end; ++at) hook(s, v, s.graph.column[at]);
    simt::sync_warp();
    for (std::uint32_t all = simt::ballot(simt::full_mask, many); all != 0; all &= all - 1) {
      const unsigned owner = simt::lowest_bit(all);
      const vertex from = simt::shuffle(simt::full_mask, v, owner);
      const std::uint32_t last = simt::shuffle(simt::full_mask, end, owner);
      const std::uint32_t begin = simt::shuffle(simt::full_mask, at, owner);
      for (std::uint32_t k = simt::lane_id(); k < last - begin; k += simt::warp_size)
        hook(s, from, s.graph.column[begin + k]);
      simt::sync_warp();
    }
  }
};

/// What the coordinator's block counts trees with.
struct sample_store {
  static constexpr std::uint32_t size = 1024;
  vertex root[size];
  std::uint64_t best;  ///< how often << 32 | which
};

template <class Context>
class components_lead : lead<components_job, Context> {
  using base = lead<components_job, Context>;
  using base::aborted, base::begin_log, base::get, base::j_, base::run_step, base::set, base::v_;
  using job = components_job;

 public:
  GROSR_DEVICE components_lead(components_job* j, Context& context) : base(j, context) {}

  GROSR_DEVICE int run() {
    set([&] { begin_log(); });
    all(job::begin_all);
    for (std::uint32_t i = 0; i < job::first_edges; ++i) {
      all(job::hook_one, i);
      all(job::flatten);
    }
    const vertex most = j_.undirected != 0 ? sample() : no_vertex;
    set([&] { j_.largest = most; });
    all(job::hook_rest);
    all(job::flatten);
    return aborted() ? -ECANCELED : 0;
  }

 private:
  GROSR_DEVICE void all(std::uint32_t kind, std::uint32_t level = 0) {
    if (!aborted()) run_step(kind, level, chunks_of(v_.graph.vertices, job::chunk));
  }

  /// The root that most of some vertices have.
  GROSR_DEVICE vertex sample() {
    auto& store = block_scratch<sample_store>();
    const std::uint64_t n = v_.graph.vertices;
    set([&] { store.best = 0; });
    for (std::uint32_t i = simt::thread_id(); i < sample_store::size; i += simt::block_size())
      store.root[i] = v_.parent[(i * 0x9e37'79b9'7f4a'7c15ull >> 20) % n];
    simt::sync_block();
    for (std::uint32_t i = simt::thread_id(); i < sample_store::size; i += simt::block_size()) {
      std::uint64_t same = 0;
      for (const vertex other : store.root) same += other == store.root[i] ? 1 : 0;
      simt::atomic_ref<std::uint64_t, simt::scope::block>(store.best)
          .fetch_max(same << 32 | store.root[i], simt::relaxed);
    }
    simt::sync_block();
    const auto most = static_cast<vertex>(store.best);
    simt::sync_block();
    return most;
  }
};

GROSR_DEVICE inline int components_job::coordinator::operator()(auto& context) const {
  return components_lead<std::remove_reference_t<decltype(context)>>(job, context).run();
}

}  // namespace grosr::graphs
