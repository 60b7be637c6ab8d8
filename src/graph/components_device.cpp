#include "grosr/graph/components.hpp"

#include "graph/search_tasks.hpp"
#include "grosr/graph/detail/components_job.hpp"

namespace grosr::graphs {

struct components::state {
  simt::buffer<vertex> parent;
  search_tasks<components_job> tasks;

  state(const device_graph& g, const search_options& o)
      : parent(g.where(), simt::space::device, g.vertices()), tasks(g.where(), o) {
    components_job j{};
    j.view = {g.ref(), parent.data()};
    j.undirected = g.directed() ? 0 : 1;
    tasks.set(j);
  }
};

components::components(const device_graph& g, const search_options& options)
    : state_(std::make_unique<state>(g, options)) {}
components::~components() = default;

void components::run(const progress_callback& between) {
  if (state_->parent.size() != 0)
    state_->tasks.run(components_job::coordinator{state_->tasks.job()}, between);
}

std::vector<vertex> components::labels() const {
  std::vector<vertex> all(state_->parent.size());
  state_->parent.copy_to(all);
  return all;
}

runtime_stats components::stats() const { return state_->tasks.stats(); }
std::size_t components::bytes() const { return state_->parent.bytes() + state_->tasks.bytes(); }

}  // namespace grosr::graphs
