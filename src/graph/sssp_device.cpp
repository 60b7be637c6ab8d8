#include "grosr/graph/sssp.hpp"

#include <algorithm>
#include <limits>

#include "graph/search_tasks.hpp"
#include "grosr/graph/detail/sssp_job.hpp"

namespace grosr::graphs {
namespace {

/// By Davidson, Baxter, Garland, Owens ("Work-Efficient Parallel GPU Methods for Single-Source
/// Shortest Paths", IPDPS 2014): a warp's worth of edges of mean weight over the mean degree. Four
/// times that where degrees are small: ways are long there, and many waves cost more than what is
/// relaxed twice (docs/internals/graphs.md).
float choose_delta(const device_graph& g) {
  const double degree = static_cast<double>(g.entries()) / std::max<double>(g.vertices(), 1);
  const double delta = (degree < 8 ? 128 : 32) * g.mean_weight() / std::max(degree, 1.0);
  return static_cast<float>(std::clamp<double>(delta, std::numeric_limits<float>::min(), 1e30));
}

}  // namespace

struct sssp::state {
  static constexpr std::uint32_t pool_entries = 1u << 16;

  const device_graph& g;
  simt::buffer<std::uint64_t> label;
  simt::buffer<std::uint32_t> pending;
  queue::ring<wave_entry> pool;
  search_tasks<sssp_job> tasks;

  state(const device_graph& graph, const sssp_options& o)
      : g(graph),
        label(g.where(), simt::space::device, g.vertices()),
        pending(g.where(), simt::space::device, (std::size_t{g.vertices()} + 31) / 32),
        pool(g.where(), pool_entries),
        tasks(g.where(), o.search) {
    sssp_job j{};
    j.view.graph = g.ref();
    j.view.cost = {g.ref().weight};
    j.view.label = label.data();
    j.view.pending = pending.data();
    j.view.state = &tasks.job()->wave;
    j.view.pool = pool.ref();
    j.view.tuning = o.search.tuning;
    j.delta = o.delta > 0 ? o.delta : choose_delta(g);
    tasks.set(j);
  }
};

sssp::sssp(const device_graph& g, const sssp_options& options)
    : state_(std::make_unique<state>(g, options)) {}
sssp::~sssp() = default;

void sssp::run(vertex source, const progress_callback& between) {
  state_->tasks.ask(source, between);
}

std::vector<float> sssp::distances() const {
  std::vector<float> all;
  for (const std::uint64_t l : labels_on_host(state_->label))
    all.push_back(weighted_cost::of(distance_of(l)));
  return all;
}

std::vector<vertex> sssp::parents() const {
  std::vector<vertex> all;
  for (const std::uint64_t l : labels_on_host(state_->label)) all.push_back(static_cast<vertex>(l));
  return all;
}

std::uint32_t sssp::waves() const { return state_->tasks.get()[0].log.waves; }
runtime_stats sssp::stats() const { return state_->tasks.stats(); }
std::size_t sssp::bytes() const {
  const auto& s = *state_;
  return s.label.bytes() + s.pending.bytes() + s.tasks.bytes() +
         queue::ring<wave_entry>::bytes(state::pool_entries);
}

}  // namespace grosr::graphs
