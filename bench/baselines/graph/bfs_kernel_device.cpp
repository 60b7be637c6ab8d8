#include "baselines/graph/bfs_kernel.hpp"

#include <algorithm>

#include "grosr/graph/detail/bfs_job.hpp"
#include "grosr/graph/detail/bfs_memory.hpp"

namespace grosr::graphs {
namespace {

/// What a search asks of the runtime that it runs on, where there is none.
struct plain_context {
  const std::uint32_t* over;  ///< the last search that has ended
  std::uint32_t search;

  GROSR_DEVICE bool aborted() const { return false; }
  GROSR_DEVICE void progressed() const {}
  GROSR_DEVICE bool ended() const {
    return simt::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(*over)).load(simt::relaxed) ==
           search;
  }
  GROSR_DEVICE bool yield_to_higher() const { return ended(); }
  /// All helpers there can be are there.
  GROSR_DEVICE bool try_spawn(const auto&) const { return false; }
  GROSR_DEVICE void publish() const {}
};

/// A kernel: its first block coordinates, the others help.
struct whole_search {
  bfs_job* job;
  bfs_start start;
  std::uint32_t *over, search;

  GROSR_DEVICE void operator()() const {
    plain_context c{over, search};
    const auto helpers = simt::atomic_ref<std::uint32_t>(job->team.helpers);
    if (simt::block_id() == 0) {
      if (simt::thread_id() == 0) {
        helpers.store(simt::grid_size() - 1, simt::relaxed);
        simt::atomic_ref<std::uint32_t>(job->team.missing).store(0, simt::relaxed);
      }
      simt::sync_block();
      bfs_lead<plain_context> lead(job, c);
      lead(c, start);
      simt::sync_block();
      if (simt::thread_id() == 0)
        simt::atomic_ref<std::uint32_t>(*over).store(search, simt::release);
      return;
    }
    for (bool again = false; block_agrees(again ? !c.ended() : true); again = true) {
      if (again && simt::thread_id() == 0) helpers.fetch_add(1, simt::relaxed);
      team<bfs_job> t(job);
      job->help(t, c);
    }
  }

  struct answer {
    std::uint32_t yes;
  };
  GROSR_DEVICE static bool block_agrees(bool mine) {
    auto& all = simt::block_shared<answer>();
    simt::sync_block();
    if (simt::thread_id() == 0) all.yes = mine ? 1 : 0;
    simt::sync_block();
    return all.yes != 0;
  }
};

unsigned blocks_for(const device& d, unsigned most) {
  const unsigned each =
      simt::fit<run::block_threads, 4, whole_search>(d, run::block_threads).blocks_per_sm;
  const unsigned all = d.properties().sms * each;
  return most != 0 ? std::min(all, most) : all;
}

}  // namespace

struct kernel_bfs::state {
  const device_graph& g;
  bfs_memory memory;
  distance_offsets bases;
  unsigned blocks;
  simt::buffer<bfs_job> job;
  simt::buffer<std::uint32_t> over;
  simt::stream stream;
  std::uint32_t searches = 0;

  state(const device_graph& on, unsigned most)
      : g(on),
        memory(on, 0),
        bases(on.vertices()),
        blocks(blocks_for(on.where(), most)),
        job(on.where(), simt::space::device, 1),
        over(on.where(), simt::space::device, 1),
        stream(on.where()) {
    bfs_job j{};
    j.view = memory.view(g, &job.data()->wave, &job.data()->levels);
    j.prepare(g, blocks, {});
    j.team.most_helpers = blocks - 1;
    job.copy_from({&j, 1});
  }
};

kernel_bfs::kernel_bfs(const device_graph& g, unsigned blocks)
    : state_(std::make_unique<state>(g, blocks)) {}
kernel_bfs::~kernel_bfs() = default;

void kernel_bfs::run(vertex source) {
  state& s = *state_;
  const distance_offsets::one b = s.bases.next();
  simt::launch<run::block_threads, 4>(
      s.stream, {s.blocks, run::block_threads},
      whole_search{s.job.data(), {source, b.base, b.fresh}, s.over.data(), ++s.searches});
  s.stream.wait();
  s.bases.ended();
}

std::vector<std::uint32_t> kernel_bfs::distances() const {
  return distances_on_host(state_->memory.label, state_->bases.base());
}

std::vector<vertex> kernel_bfs::parents() const {
  return parents_on_host(state_->memory.label, state_->bases.base());
}

}  // namespace grosr::graphs
