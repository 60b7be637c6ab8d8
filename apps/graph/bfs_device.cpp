#include "bfs.hpp"

#include "bfs_job.hpp"
#include "bfs_memory.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr::graphs {
namespace {

runtime_options for_search(const device& d, runtime_options o) {
  if (o.blocks_per_sm == 0 && d.is_cuda()) o.blocks_per_sm = 6;
  o.watchdog = std::chrono::milliseconds(0);  // a search is one long task
  return o;
}

}  // namespace

struct bfs::state {
  const device_graph& g;
  bfs_memory memory;
  simt::buffer<bfs_job> job;
  runtime<bfs_job::leader, bfs_job::member> tasks;

  state(const device_graph& graph, const search_options& o)
      : g(graph),
        memory(graph, o.capacity),
        job(graph.where(), simt::space::device, 1),
        tasks(graph.where(), for_search(graph.where(), o.runtime)) {
    bfs_job j{};
    j.view = memory.view(g, &job.data()->wave, &job.data()->levels);
    j.view.tuning = o.tuning;
    const unsigned blocks = tasks.stats().workers / run::warps_per_block;
    j.most_members = o.members != 0 && o.members < blocks ? o.members : blocks - 1;
    j.levels.words_up = bfs_levels::choose_words_up(g.vertices(), blocks, run::warps_per_block);
    j.levels.stops_when_small = 1;
    j.levels.undirected = g.directed() ? 0 : 1;
    job.copy_from({&j, 1});
  }
};

bfs::bfs(const device_graph& g, const search_options& options)
    : state_(std::make_unique<state>(g, options)) {}
bfs::~bfs() = default;

void bfs::run(vertex source, const pulse& between) {
  auto& s = *state_;
  const ticket t = s.tasks.submit(bfs_job::leader{s.job.data(), source});
  try {
    while (!t.wait_for(std::chrono::milliseconds(50)))
      if (between) between();
  } catch (const grosr::error&) {
    throw;
  } catch (...) {
    try {
      s.tasks.stop(std::chrono::milliseconds(1));  // the search sees that, and ends
    } catch (const grosr::error&) {                // that it was not done is known
    }
    throw;
  }
}

std::vector<std::uint32_t> bfs::distances() const {
  std::vector<std::uint64_t> label(state_->memory.label.size());
  state_->memory.label.copy_to(label);
  std::vector<std::uint32_t> d(label.size());
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = distance_of(label[i]);
  return d;
}

std::vector<vertex> bfs::parents() const {
  std::vector<std::uint64_t> label(state_->memory.label.size());
  state_->memory.label.copy_to(label);
  std::vector<vertex> p(label.size());
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<vertex>(label[i]);
  return p;
}

const std::uint64_t* bfs::labels() const { return state_->memory.label.data(); }

search_stats bfs::last() const {
  bfs_job j;
  simt::copy_bytes(state_->g.where(), &j, state_->job.data(), sizeof j);
  return {j.levels.levels_down, j.levels.levels_up, j.waves};
}

std::vector<search_step> bfs::steps() const {
  static const char* const names[] = {"reset",        "wave",          "inspect",
                                      "near to pool", "finished",      "small",
                                      "gather level", "edges down",    "rows down",
                                      "clear bits",   "queue to bits", "pending to bits",
                                      "from below",   "bits to queue"};
  std::vector<bfs_job> job(1);
  state_->job.copy_to(job);
  const bfs_job& j = job[0];
  std::vector<search_step> all;
  for (std::uint32_t i = 0; i < j.events && i < most_events; ++i) {
    const search_event& e = j.event[i];
    all.push_back({names[e.kind], e.began - j.event[0].began, e.ended - j.event[0].began, e.level,
                   e.chunks, e.members});
  }
  return all;
}

runtime_stats bfs::stats() const { return state_->tasks.stats(); }
std::size_t bfs::bytes() const { return state_->memory.bytes() + state_->job.bytes(); }

}  // namespace grosr::graphs
