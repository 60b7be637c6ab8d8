#include "bfs_launched.hpp"

#include <algorithm>
#include <atomic>

#include "bfs_memory.hpp"
#include "grosr/simt/launch.hpp"
#include "launched_steps.hpp"

namespace grosr::graphs {
namespace {

constexpr unsigned launch_threads = 256, cooperative_threads = 1024;
constexpr std::uint32_t most_ahead = 64;  // launches that the CPU is ahead

}  // namespace

std::string name_of(driver d) {
  switch (d) {
    case driver::waits:
      return "a launch a level, waited for";
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
  simt::buffer<launched_state> device_state;
  simt::buffer<launched_news> news;
  simt::stream stream;
  launched_step step{};
  unsigned sms, blocks = 0;  ///< that can be there at a time
#if defined(__CUDACC__)
  cudaGraphExec_t loop = nullptr;
#endif

  state(const device_graph& graph, driver d, unsigned most_blocks)
      : g(graph),
        how(d),
        memory(graph, graph.vertices() + 64),
        device_state(graph.where(), simt::space::device, 1),
        news(graph.where(), simt::space::pinned, 1),
        stream(graph.where()),
        sms(graph.where().properties().sms) {
    step.view = memory.view(g, &device_state.data()->wave, &device_state.data()->levels);
    step.view.tuning = {};
    step.state = device_state.data();
    step.news = news.data();
    launched_state s{};
    s.levels.undirected = g.directed() ? 0 : 1;
    if (how == driver::cooperative) {
      blocks = sms;
      simt::fit<cooperative_threads, 1, cooperative_search>(g.where(), cooperative_threads);
    } else {
      blocks = sms *
               simt::fit<launch_threads, 4, launched_step>(g.where(), launch_threads).blocks_per_sm;
    }
    if (most_blocks != 0) blocks = std::min(blocks, most_blocks);
    s.levels.words_up = bfs_levels::choose_words_up(
        g.vertices(), blocks,
        (how == driver::cooperative ? cooperative_threads : launch_threads) / simt::warp_size);
    device_state.copy_from({&s, 1});
#if defined(__CUDACC__)
    if (how == driver::loop && g.where().is_cuda()) {
      const simt::detail::on_device here(g.where());
      loop = make_loop(g.where(), step, blocks, launch_threads);
      if (loop == nullptr)
        throw error(errc::not_built,
                    "a CUDA graph with a loop was asked for, which this program's CUDA does not "
                    "have; build it with 12.3 or newer, or choose another driver");
    }
#endif
  }

#if defined(__CUDACC__)
  ~state() {
    if (loop != nullptr) cudaGraphExecDestroy(loop);
  }
#endif

  template <class Kernel>
  void launch(unsigned wanted, const Kernel& k) {
    simt::launch<launch_threads, 4>(stream, {std::clamp(wanted, 1u, blocks), launch_threads}, k);
  }
  void reset(vertex source) {
    step.source = source;
    launch(chunks_of(g.vertices(), chunk_labels), static_cast<const launched_reset&>(step));
  }
  launched_news seen() const {
    const auto load = [](std::uint32_t& word) {
      return std::atomic_ref<std::uint32_t>(word).load(std::memory_order_relaxed);
    };
    return {load(news[0].now), load(news[0].chunks), load(news[0].steps)};
  }
};

launched_bfs::launched_bfs(const device_graph& g, driver d, unsigned blocks)
    : state_(std::make_unique<state>(g, d, blocks)) {
  if (d == driver::loop && !g.where().is_cuda())
    throw error(errc::not_built, "a CUDA graph was asked for on " + g.where().name() +
                                     "; choose another driver, or a GPU");
}
launched_bfs::~launched_bfs() = default;

void launched_bfs::run(vertex source) {
  auto& s = *state_;
  switch (s.how) {
    case driver::waits:
      s.reset(source);
      for (;;) {
        s.stream.wait();
        if (s.news[0].now == bfs_levels::finished) break;
        s.launch(s.news[0].chunks, s.step);
      }
      break;
    case driver::ahead: {
      s.news[0] = {bfs_levels::edges_down, s.blocks, 0};
      s.reset(source);
      // The grid is what the step last heard of would need, four times over: levels grow.
      for (std::uint32_t launched = 0; s.seen().now != bfs_levels::finished; ++launched) {
        while (launched - s.seen().steps > most_ahead && s.seen().now != bfs_levels::finished) {
        }
        const std::uint32_t chunks = s.seen().chunks;
        s.launch(chunks < s.blocks / 4 ? std::max(4 * chunks, 32u) : s.blocks, s.step);
      }
      s.stream.wait();
      break;
    }
    case driver::loop:
#if defined(__CUDACC__)
    {
      const simt::detail::on_device here(s.g.where());
      s.reset(source);
      simt::detail::check_launch(
          cudaGraphLaunch(s.loop, static_cast<cudaStream_t>(s.stream.native())), "launch a graph");
      s.stream.wait();
    }
#endif
    break;
    case driver::cooperative: {
      cooperative_search whole{s.step};
      whole.source = source;
      simt::launch<cooperative_threads, 1>(s.stream, {s.blocks, cooperative_threads}, whole);
      s.stream.wait();
      break;
    }
  }
}

std::vector<std::uint32_t> launched_bfs::distances() const {
  std::vector<std::uint64_t> label(state_->memory.label.size());
  state_->memory.label.copy_to(label);
  std::vector<std::uint32_t> d(label.size());
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = distance_of(label[i]);
  return d;
}

std::vector<vertex> launched_bfs::parents() const {
  std::vector<std::uint64_t> label(state_->memory.label.size());
  state_->memory.label.copy_to(label);
  std::vector<vertex> p(label.size());
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<vertex>(label[i]);
  return p;
}

const std::uint64_t* launched_bfs::labels() const { return state_->memory.label.data(); }
std::uint32_t launched_bfs::levels() const {
  launched_state s;
  simt::copy_bytes(state_->g.where(), &s, state_->device_state.data(), sizeof s);
  return s.levels.level;
}

}  // namespace grosr::graphs
