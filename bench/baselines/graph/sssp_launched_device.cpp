#include <memory>

#include "baselines/graph/sssp_launched.hpp"

#include "baselines/graph/grid_for.hpp"
#include "baselines/graph/launch_loop.hpp"
#include "grosr/graph/detail/queue.hpp"
#include "grosr/graph/detail/weighted_cost.hpp"

namespace grosr::graphs {
namespace {

/// Device memory.
struct ford_state {
  alignas(128) std::uint64_t total[2];
  alignas(128) std::uint32_t now;  ///< the queue that is read
  std::uint32_t count, edges, rounds;
  grid_for_state loop;
};

struct ford_view {
  graph_ref graph;
  weighted_cost cost;
  std::uint64_t* label;
  vertex_queue queue[2];
  std::uint32_t* queued[2];  ///< a bit for each vertex in that queue
  ford_state* state;
  launched_news* news;

  /// One thread, when all of a round is done: the next one.
  GROSR_DEVICE void turn(std::uint32_t to) const {
    const std::uint64_t t = simt::atomic_ref<std::uint64_t>(state->total[to]).load(simt::relaxed);
    state->total[1 - to] = 0;
    state->now = to;
    state->count = static_cast<std::uint32_t>(t >> 32);
    state->edges = static_cast<std::uint32_t>(t);
    using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
    word(news->ended).store(state->count == 0 ? 1 : 0, simt::relaxed);
    word(news->chunks).store(chunks_of(state->edges, chunk_edges), simt::relaxed);
    word(news->steps).store(state->rounds, simt::relaxed);
  }
};

struct ford_reset {
  ford_view view;
  vertex source;

  GROSR_DEVICE void operator()() const {
    const graph_ref& g = view.graph;
    const std::uint32_t shares = shares_of(g, simt::grid_size());
    const auto work = [&](std::uint32_t share) {
      reset_labels(g, view.label, share, shares, source);
      share_words(g, share, shares,
                  [&](std::uint32_t w) { view.queued[0][w] = view.queued[1][w] = 0; });
    };
    if (!grid_for(view.state->loop, shares, work)) return;
    const std::uint32_t degree = g.row[source + 1] - g.row[source];
    view.queue[0].v[0] = source;
    view.queue[0].offset[0] = 0;
    view.state->total[0] = degree != 0 ? tally(1, degree) : 0;
    view.state->rounds = 0;
    view.turn(0);
  }
};

struct ford_round {
  ford_view view;

  GROSR_DEVICE void operator()() const {
    ford_state& s = *view.state;
    if (s.count == 0) return;
    const std::uint32_t now = s.now;
    const auto work = [&](std::uint32_t chunk) {
      share_edges(view.graph, view.queue[now], s.count, s.edges, chunk,
                  [&](const some_edges& some) { relax(some, now); });
      simt::sync_block();
      append(view.queue[1 - now], queueing().count,
             [&](vertex v, std::uint32_t place, std::uint32_t offset) {
               view.queue[1 - now].v[place] = v;
               view.queue[1 - now].offset[place] = offset;
             });
    };
    if (!grid_for(s.loop, chunks_of(s.edges, chunk_edges), work)) return;
    ++s.rounds;
    view.turn(1 - now);
  }

 private:
  GROSR_DEVICE void relax(const some_edges& some, std::uint32_t now) const {
    const std::uint32_t* const row = view.graph.row;
    for (unsigned j = 0; j < edges_at_once; ++j) {
      if (!some.open[j]) continue;
      const vertex from = some.from[j], to = view.graph.column[some.entry[j]];
      const std::uint64_t mine = label(from).load(simt::relaxed);
      const std::uint32_t distance = view.cost.next(distance_of(mine), some.entry[j]);
      if (!weighted_cost::is_finite(distance)) continue;
      // A look first: most edges improve nothing.
      if (distance_of(label(to).load(simt::relaxed)) <= distance ||
          distance_of(label(to).fetch_min(label_of(distance, from), simt::relaxed)) <= distance)
        continue;
      const std::uint32_t bit = 1u << to % 32;
      if ((queued(1 - now, to).fetch_or(bit, simt::relaxed) & bit) == 0)
        find_for_queue(to, row[to + 1] - row[to]);
    }
    // This round's bits are for the round after the next: each edge's lane clears its vertex's.
    for (unsigned j = 0; j < edges_at_once; ++j)
      if (some.open[j] && some.entry[j] == row[some.from[j]])
        queued(now, some.from[j]).fetch_and(~(1u << some.from[j] % 32), simt::relaxed);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> label(vertex v) const {
    return simt::atomic_ref<std::uint64_t>(view.label[v]);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> queued(std::uint32_t q, vertex v) const {
    return simt::atomic_ref<std::uint32_t>(view.queued[q][v / 32]);
  }
};

}  // namespace

struct launched_sssp::state {
  const device_graph& g;
  bool ahead;
  simt::buffer<std::uint64_t> label;
  simt::buffer<std::uint32_t> queues, queued;
  simt::buffer<ford_state> device_state;
  launch_loop loop;
  ford_view view{};

  state(const device_graph& graph, bool goes_ahead)
      : g(graph),
        ahead(goes_ahead),
        label(g.where(), simt::space::device, g.vertices()),
        queues(g.where(), simt::space::device, std::size_t{4} * g.vertices()),
        queued(g.where(), simt::space::device, 2 * words()),
        device_state(g.where(), simt::space::device, 1),
        loop(
            g.where(),
            g.where().properties().sms *
                simt::fit<launch_threads, 4, ford_round>(g.where(), launch_threads).blocks_per_sm) {
    const ford_state zeroed{};
    device_state.copy_from({&zeroed, 1});
    view.graph = g.ref();
    view.cost = {g.ref().weight};
    view.label = label.data();
    view.state = device_state.data();
    view.news = loop.news();
    for (unsigned q = 0; q < 2; ++q) {
      vertex* const from = queues.data() + std::size_t{2} * q * g.vertices();
      view.queue[q] = {from, from + g.vertices(), device_state.data()->total + q};
      view.queued[q] = queued.data() + q * words();
    }
  }
  std::size_t words() const { return (std::size_t{g.vertices()} + 31) / 32; }
};

launched_sssp::launched_sssp(const device_graph& g, bool ahead)
    : state_(std::make_unique<state>(g, ahead)) {}
launched_sssp::~launched_sssp() = default;

void launched_sssp::run(vertex source, const progress_callback& between) {
  auto& s = *state_;
  const ford_reset reset{s.view, source};
  const ford_round round{s.view};
  const unsigned chunks = shares_of(s.g.ref(), ~0u);
  if (s.ahead)
    s.loop.go_ahead(chunks, reset, round, between);
  else
    s.loop.wait_for_each(chunks, reset, round, between);
}

std::vector<float> launched_sssp::distances() const {
  std::vector<float> all;
  for (const std::uint64_t l : labels_on_host(state_->label))
    all.push_back(weighted_cost::of(distance_of(l)));
  return all;
}

}  // namespace grosr::graphs
