#include "baselines/graph/bfs_tasks.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr::graphs {
namespace {

struct known {
  graph_ref graph;
  std::uint32_t* distance;
};

/// Tasks run in no order, so that a vertex may be brought nearer more than once.
struct visit {
  const known* all;
  vertex at;
  std::uint32_t distance;

  GROSR_DEVICE void operator()(auto& context) const {
    const auto of = [&](vertex v) { return simt::atomic_ref<std::uint32_t>(all->distance[v]); };
    if (of(at).load(simt::relaxed) < distance) return;
    const graph_ref& g = all->graph;
    for (std::uint32_t e = g.row[at]; e < g.row[at + 1]; ++e) {
      const vertex to = g.column[e];
      if (of(to).load(simt::relaxed) > distance + 1 &&
          of(to).fetch_min(distance + 1, simt::relaxed) > distance + 1)
        context.spawn(visit{all, to, distance + 1});
    }
  }
};

}  // namespace

struct task_bfs::state {
  simt::buffer<std::uint32_t> distance;
  simt::buffer<known> all;
  std::vector<std::uint32_t> unreached;
  runtime<visit> tasks;

  explicit state(const device_graph& g)
      : distance(g.where(), simt::space::device, g.vertices()),
        all(g.where(), simt::space::device, 1),
        unreached(g.vertices(), ~std::uint32_t{0}),
        tasks(g.where()) {
    const known k{g.ref(), distance.data()};
    all.copy_from({&k, 1});
  }
};

task_bfs::task_bfs(const device_graph& g) : state_(std::make_unique<state>(g)) {}
task_bfs::~task_bfs() = default;

void task_bfs::run(vertex source) {
  state& s = *state_;
  s.distance.copy_from(s.unreached);
  const std::uint32_t zero = 0;
  simt::copy_bytes(s.tasks.where(), s.distance.data() + source, &zero, sizeof zero);
  s.tasks.submit(visit{s.all.data(), source, 0});
  s.tasks.wait_all();
}

std::vector<std::uint32_t> task_bfs::distances() const {
  std::vector<std::uint32_t> d(state_->distance.size());
  state_->distance.copy_to(d);
  return d;
}

}  // namespace grosr::graphs
