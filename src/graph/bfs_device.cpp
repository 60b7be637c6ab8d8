#include "grosr/graph/bfs.hpp"

#include <algorithm>
#include <iterator>

#include "graph/search_tasks.hpp"
#include "grosr/graph/detail/bfs_job.hpp"
#include "grosr/graph/detail/bfs_memory.hpp"

namespace grosr::graphs {

struct bfs::state {
  const device_graph& g;
  bfs_memory memory;
  distance_offsets bases;
  search_tasks<bfs_job> tasks;

  state(const device_graph& graph, const search_options& o)
      : g(graph), memory(g, o.capacity), bases(g.vertices()), tasks(g.where(), o) {
    bfs_job j{};
    j.view = memory.view(g, &tasks.job()->wave, &tasks.job()->levels);
    j.prepare(g, tasks.blocks(), o.tuning);
    tasks.set(j);
  }
};

bfs::bfs(const device_graph& g, const search_options& options)
    : state_(std::make_unique<state>(g, options)) {}
bfs::~bfs() = default;

void bfs::run(vertex source, const progress_callback& between) {
  const distance_offsets::one b = state_->bases.next();
  state_->tasks.ask(bfs_start{source, b.base, b.fresh}, between);
  state_->bases.ended();
}

std::vector<std::uint32_t> bfs::distances() const {
  return distances_on_host(state_->memory.label, state_->bases.base());
}

std::vector<vertex> bfs::parents() const {
  return parents_on_host(state_->memory.label, state_->bases.base());
}

std::vector<search_step> bfs::steps() const {
  static const char* const names[] = {
      "wave",           "reset",           "inspect",    "near to pool",
      "gather pending", "correct level",   "finished",   "small",
      "gather level",   "edges down",      "rows down",  "clear bits",
      "queue to bits",  "pending to bits", "from below", "bits to queue"};
  static_assert(std::size(names) ==
                std::uint32_t{bfs_job::of_levels} + level_plan::bits_to_queue + 1 - open_step);
  const std::vector<bfs_job> job = state_->tasks.get();
  const bfs_job& j = job[0];
  std::vector<search_step> all;
  for (std::uint32_t i = 0; i < j.log.events && i < most_events; ++i) {
    const job_event& e = j.log.event[i];
    const std::uint64_t zero = j.log.event[0].began;
    const auto add = [&](const char* name, phase how, std::uint64_t began, std::uint64_t ended) {
      const std::uint32_t level = e.level < j.start.base ? 0 : e.level - j.start.base;
      all.push_back({name, how, began - zero, ended - zero, level, e.chunks, e.helpers});
    };
    if (e.kind != open_step) {
      add(names[e.kind - open_step], phase::levels, e.began, e.ended);
      continue;
    }
    const std::uint64_t shared = e.shared_at == 0 ? e.ended : std::max(e.shared_at, e.began);
    if (shared > e.began) add("wave of one block", phase::alone, e.began, shared);
    if (shared < e.ended) add("wave of several", phase::together, shared, e.ended);
  }
  return all;
}

runtime_stats bfs::stats() const { return state_->tasks.stats(); }
std::size_t bfs::bytes() const { return state_->memory.bytes() + state_->tasks.bytes(); }

}  // namespace grosr::graphs
