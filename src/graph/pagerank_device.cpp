#include "grosr/graph/pagerank.hpp"

#include <algorithm>

#include "graph/search_tasks.hpp"
#include "grosr/graph/detail/pagerank_job.hpp"

namespace grosr::graphs {

struct pagerank::state {
  simt::buffer<float> values;
  simt::buffer<std::uint32_t> queue;
  search_tasks<pagerank_job> tasks;
  std::size_t vertices;

  state(const device_graph& g, const pagerank_options& o)
      : values(g.where(), simt::space::device, std::size_t{3} * g.vertices()),
        queue(g.where(), simt::space::device, 2 * room(g)),
        tasks(g.where(), o.search),
        vertices(g.vertices()) {
    pagerank_job j{};
    j.view.graph = g.ref();
    j.view.rank = values.data();
    j.view.residual = j.view.rank + vertices;
    j.view.share = j.view.residual + vertices;
    j.view.queue = {queue.data(), queue.data() + room(g), &tasks.job()->total};
    j.view.damping = o.damping;
    // Residuals that stay below the threshold would have become so much rank, divided by 1 -
    // damping.
    j.view.threshold = o.tolerance * (1 - o.damping) / static_cast<float>(vertices + 1);
    tasks.set(j);
  }

  /// For all vertices that may be in the queue at a time.
  static std::size_t room(const device_graph& g) {
    return std::min<std::size_t>(g.vertices(), g.entries() / (pagerank_job::few + 1)) + 1;
  }
};

pagerank::pagerank(const device_graph& g, const pagerank_options& options) {
  if (!(options.damping >= 0 && options.damping < 1))
    throw error(errc::invalid_option, "a damping of " + std::to_string(options.damping) +
                                          " was asked for; it is at least 0 and less than 1");
  if (!(options.tolerance >= 1e-7f))
    throw error(errc::invalid_option, "a tolerance of " + std::to_string(options.tolerance) +
                                          " was asked for; ranks are floats, it is at least 1e-7");
  state_ = std::make_unique<state>(g, options);
}
pagerank::~pagerank() = default;

void pagerank::run(const progress_callback& between) {
  if (state_->vertices != 0)
    state_->tasks.run(pagerank_job::coordinator{state_->tasks.job()}, between);
}

std::vector<float> pagerank::ranks() const {
  std::vector<float> all(state_->vertices);
  state_->values.copy_to(all);
  double sum = 0;
  for (const float r : all) sum += r;
  if (sum > 0)
    for (float& r : all) r = static_cast<float>(r / sum);
  return all;
}

std::uint32_t pagerank::rounds() const { return state_->tasks.get()[0].rounds; }
runtime_stats pagerank::stats() const { return state_->tasks.stats(); }
std::size_t pagerank::bytes() const {
  return state_->values.bytes() + state_->queue.bytes() + state_->tasks.bytes();
}

}  // namespace grosr::graphs
