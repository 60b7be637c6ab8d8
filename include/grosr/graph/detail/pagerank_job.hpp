// PageRank in the resident grid, by steps of a team that push residuals.
//
// A vertex has a rank, and a residual that has not been counted yet. A vertex that has more than a
// threshold adds it to the rank and pushes a share of it along each edge, into the residuals of
// others (Andersen, Chung, Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006).
// Vertices of few edges push at once, so that others see that in the same step; those of many are
// queued and push by shares of edges. Ranks are those of the graph without what vertices that have
// no edges would give to all; made to add up to 1, they are the same.
#pragma once

#include <cerrno>

#include "grosr/graph/detail/job.hpp"
#include "grosr/graph/detail/queue.hpp"

namespace grosr::graphs {

struct pagerank_view {
  graph_ref graph;
  float* rank;
  float* residual;
  float* share;        ///< that each edge of a vertex in the queue is to carry
  vertex_queue queue;  ///< of vertices with more than `few` edges: room for all of them
  float damping, threshold;
};

/// Device memory.
struct pagerank_job : job_base<pagerank_job> {
  using cost = void;
  using view_type = pagerank_view;
  enum kind : std::uint32_t { begin_all = first_step, select, push };

  struct coordinator {
    static constexpr grosr::width width = grosr::width::block;
    static constexpr bool runs_long = true;
    pagerank_job* job;
    GROSR_DEVICE int operator()(auto& context) const;
  };

  static constexpr std::uint32_t few = 32;

  team_state team;
  alignas(128) std::uint64_t total;     ///< of the queue
  alignas(128) std::uint64_t selected;  ///< vertices, of the step
  std::uint32_t count, edges;           ///< what the queue holds
  // Given by the host.
  pagerank_view view;
  std::uint32_t rounds;  ///< for the host to read
  job_log log;

  /// A chunk of a step, by a whole block.
  GROSR_DEVICE GROSR_NOINLINE void work(const view_type& s, std::uint32_t kind,
                                        std::uint32_t chunk) {
    if (kind == push) return push_shares(s, chunk);
    const std::uint64_t first = std::uint64_t{chunk} * chunk_edges;
    if (kind == select) {
      if (simt::thread_id() == 0) queueing().count = 0;
      simt::sync_block();
    }
    std::uint32_t taken = 0;
    for (std::uint32_t i = simt::thread_id(); i < chunk_edges; i += simt::block_size()) {
      if (first + i >= s.graph.vertices) break;
      const auto v = static_cast<vertex>(first + i);
      if (kind == begin_all) {
        s.rank[v] = 0;
        s.residual[v] = (1 - s.damping) / static_cast<float>(s.graph.vertices);
      } else {
        taken += take(s, v);
      }
    }
    if (kind != select) return;
    simt::sync_warp();
    taken = warp_sum(taken);
    if (simt::lane_id() == 0 && taken != 0)
      simt::atomic_ref<std::uint64_t>(selected).fetch_add(taken, simt::relaxed);
    simt::sync_block();
    append(s.queue, queueing().count, [&](vertex v, std::uint32_t place, std::uint32_t offset) {
      s.queue.v[place] = v;
      s.queue.offset[place] = offset;
    });
  }

 private:
  /// Whether the vertex had something to push.
  GROSR_DEVICE static std::uint32_t take(const view_type& s, vertex v) {
    const simt::atomic_ref<float> residual(s.residual[v]);
    if (!(residual.load(simt::relaxed) > s.threshold)) return 0;
    const float r = residual.exchange(0, simt::relaxed);
    s.rank[v] += r;
    const std::uint32_t begin = s.graph.row[v], end = s.graph.row[v + 1];
    if (begin == end) return 1;
    const float share = s.damping * r / static_cast<float>(end - begin);
    if (end - begin > few) {
      s.share[v] = share;
      find_for_queue(v, end - begin);
      return 1;
    }
    for (std::uint32_t e = begin; e < end; ++e)
      simt::atomic_ref<float>(s.residual[s.graph.column[e]]).fetch_add(share, simt::relaxed);
    return 1;
  }

  GROSR_DEVICE void push_shares(const view_type& s, std::uint32_t chunk) {
    share_edges(s.graph, s.queue, count, edges, chunk, [&](const some_edges& some) {
      vertex to[edges_at_once];
      float share[edges_at_once];
      for (unsigned j = 0; j < edges_at_once; ++j) {
        if (!some.open[j]) continue;
        to[j] = s.graph.column[some.entry[j]];
        share[j] = s.share[some.from[j]];
      }
      for (unsigned j = 0; j < edges_at_once; ++j)
        if (some.open[j])
          simt::atomic_ref<float>(s.residual[to[j]]).fetch_add(share[j], simt::relaxed);
    });
  }
};

template <class Context>
class pagerank_lead : lead<pagerank_job, Context> {
  using base = lead<pagerank_job, Context>;
  using base::aborted, base::begin_log, base::get, base::j_, base::run_step, base::set, base::v_;

 public:
  GROSR_DEVICE pagerank_lead(pagerank_job* j, Context& context) : base(j, context) {}

  GROSR_DEVICE int run() {
    set([&] {
      begin_log();
      j_.rounds = 0;
    });
    const std::uint32_t chunks = chunks_of(v_.graph.vertices, chunk_edges);
    run_step(pagerank_job::begin_all, 0, chunks);
    while (!aborted()) {
      set([&] { j_.total = j_.selected = 0; });
      run_step(pagerank_job::select, j_.rounds, chunks);
      if (aborted()) break;  // helpers may be at the step still
      if (get([&] { return j_.selected; }) == 0) return 0;
      const std::uint64_t held = get([&] {
        ++j_.rounds;
        j_.count = static_cast<std::uint32_t>(j_.total >> 32);
        j_.edges = static_cast<std::uint32_t>(j_.total);
        return j_.total;
      });
      run_step(pagerank_job::push, j_.rounds,
               chunks_of(static_cast<std::uint32_t>(held), chunk_edges));  // maybe none
    }
    return -ECANCELED;
  }
};

GROSR_DEVICE inline int pagerank_job::coordinator::operator()(auto& context) const {
  return pagerank_lead<std::remove_reference_t<decltype(context)>>(job, context).run();
}

}  // namespace grosr::graphs
