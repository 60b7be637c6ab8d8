#include "baselines/graph/bfs_launched.hpp"

#include <algorithm>
#include <memory>

#include "baselines/graph/launched_steps.hpp"
#include "grosr/graph/detail/bfs_memory.hpp"

namespace grosr::graphs {
namespace {

constexpr unsigned cooperative_threads = 1024;

/// Blocks that can be there at a time, but no more than `most`, unless that is 0.
unsigned choose_blocks(const device& where, driver how, unsigned most) {
  unsigned each = 1;
  if (how == driver::cooperative)
    simt::fit<cooperative_threads, 1, cooperative_search>(where, cooperative_threads);
  else
    each = simt::fit<launch_threads, 4, launched_step>(where, launch_threads).blocks_per_sm;
  const unsigned all = where.properties().sms * each;
  return most != 0 ? std::min(all, most) : all;
}

}  // namespace

std::string name_of(driver d) {
  switch (d) {
    case driver::waits:
      return "a launch a step, waited for";
    case driver::ahead:
      return "launches ahead of what is known";
    case driver::loop:
      return "a CUDA graph with a conditional loop";
    case driver::cooperative:
      return "one cooperative kernel";
  }
  return "";
}

struct launched_bfs::state {
  const device_graph& g;
  driver how;
  bfs_memory memory;
  distance_offsets bases;
  simt::buffer<launched_state> device_state;
  unsigned blocks;
  launch_loop loop;
  launched_step step{};
#if defined(__CUDACC__)
  cudaGraphExec_t graph = nullptr;
#endif

  state(const device_graph& on, driver d, unsigned most_blocks)
      : g(on),
        how(d),
        memory(on, 0),
        bases(on.vertices()),
        device_state(on.where(), simt::space::device, 1),
        blocks(choose_blocks(on.where(), d, most_blocks)),
        loop(on.where(), blocks) {
    step.view = memory.view(g, &device_state.data()->wave, &device_state.data()->levels);
    step.state = device_state.data();
    step.news = loop.news();
    launched_state s{};
    s.levels.undirected = g.directed() ? 0 : 1;
    s.levels.blocks = blocks;
    device_state.copy_from({&s, 1});
#if defined(__CUDACC__)
    if (how == driver::loop && g.where().is_cuda()) {
      const simt::on_device here(g.where());
      graph = make_loop(g.where(), step, blocks, launch_threads);
      if (graph == nullptr)
        throw error(errc::not_built,
                    "a CUDA graph with a loop was asked for, which this program's CUDA does not "
                    "have; build it with 12.3 or newer, or choose another driver");
    }
#endif
  }

#if defined(__CUDACC__)
  ~state() {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
#endif
};

launched_bfs::launched_bfs(const device_graph& g, driver d, unsigned blocks)
    : state_(std::make_unique<state>(g, d, blocks)) {
  if (d == driver::loop && !g.where().is_cuda())
    throw error(errc::not_built, "a CUDA graph was asked for on " + g.where().name() +
                                     "; choose another driver, or a GPU");
}
launched_bfs::~launched_bfs() = default;

void launched_bfs::run(vertex source, const progress_callback& between) {
  auto& s = *state_;
  const distance_offsets::one b = s.bases.next();
  s.step.start = {source, b.base, b.fresh};
  const auto& reset = static_cast<const launched_reset&>(s.step);
  const unsigned chunks = shares_of(s.g.ref(), s.blocks);
  switch (s.how) {
    case driver::waits:
      s.loop.wait_for_each(chunks, reset, s.step, between);
      break;
    case driver::ahead:
      s.loop.go_ahead(chunks, reset, s.step, between);
      break;
    case driver::loop:
#if defined(__CUDACC__)
    {
      const simt::on_device here(s.g.where());
      s.loop.launch(chunks, reset);
      simt::check_launch(
          cudaGraphLaunch(s.graph, static_cast<cudaStream_t>(s.loop.stream().native())),
          "launch a graph");
      s.loop.stream().wait();
    }
#endif
    break;
    case driver::cooperative: {
      const cooperative_search whole{s.step};
      simt::launch<cooperative_threads, 1>(s.loop.stream(), {s.blocks, cooperative_threads}, whole);
      s.loop.stream().wait();
      break;
    }
  }
  s.bases.ended();
}

std::vector<std::uint32_t> launched_bfs::distances() const {
  return distances_on_host(state_->memory.label, state_->bases.base());
}

std::vector<vertex> launched_bfs::parents() const {
  return parents_on_host(state_->memory.label, state_->bases.base());
}

}  // namespace grosr::graphs
