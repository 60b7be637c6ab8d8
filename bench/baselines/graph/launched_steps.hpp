// Kernels that carry out steps of a search: the last block to end decides what comes next.
#pragma once

#include "baselines/graph/grid_for.hpp"
#include "baselines/graph/launch_loop.hpp"
#include "grosr/graph/detail/bfs_levels.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::graphs {

/// Device memory.
struct launched_state {
  bfs_levels levels;
  wave_state wave;  ///< for what a full queue marks
  grid_for_state loop;
  alignas(128) std::uint32_t passed;  ///< barriers of the cooperative kernel
  std::uint32_t steps;
};

struct launched_reset {
  bfs_view view;
  launched_state* state;
  launched_news* news;
  bfs_start start;

  /// True for the one thread that decided what comes first.
  GROSR_DEVICE bool begin() const {
    // What comes first does not depend on what is reset.
    if (simt::block_id() == 0 && simt::thread_id() == 0) state->levels.begin_at(view, start);
    if (!grid_for(state->loop, shares(), [&](std::uint32_t c) { reset(view, c, shares(), start); }))
      return false;
    state->steps = 0;
    tell();
    return true;
  }
  GROSR_DEVICE void operator()() const { begin(); }

  GROSR_DEVICE std::uint32_t shares() const { return shares_of(view.graph, state->levels.blocks); }

  GROSR_DEVICE void tell() const {
    const auto& l = state->levels;
    using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
    word(news->ended).store(l.plan.now == level_plan::finished ? 1 : 0, simt::relaxed);
    word(news->chunks).store(l.chunks(view), simt::relaxed);
    word(news->steps).store(state->steps, simt::relaxed);
  }
};

struct launched_step : launched_reset {
  /// True for the one thread that decided what comes next.
  GROSR_DEVICE bool step() const {
    auto& l = state->levels;
    if (l.plan.now == level_plan::finished) return false;
    if (!grid_for(state->loop, l.chunks(view),
                  [&](std::uint32_t c) { l.work(view, l.plan.now, c); }))
      return false;
    l.next(view);
    ++state->steps;
    tell();
    return true;
  }
  GROSR_DEVICE void operator()() const { step(); }
};

/// The whole search; as many blocks as can be there at a time.
struct cooperative_search : launched_step {
  GROSR_DEVICE void operator()() const {
    auto& l = state->levels;
    std::uint32_t barrier = state->passed;
    const auto passed = simt::atomic_ref<std::uint32_t>(state->passed);
    const auto meet = [&](bool last) {
      ++barrier;
      if (simt::thread_id() == 0) {
        if (last) {
          passed.store(barrier, simt::release);
        } else {
          for (unsigned turn = 0; passed.load(simt::acquire) != barrier; ++turn)
            simt::pause_if_host(turn, "the other blocks");
        }
      }
      simt::sync_block();
    };
    meet(begin());
    while (l.plan.now != level_plan::finished) meet(step());
  }
};

#if defined(__CUDACC__)
/// A CUDA graph that launches steps as long as there are any, which may be none (bfs_loop.cu); null
/// where this CUDA has no such graphs.
cudaGraphExec_t make_loop(const device& where, const launched_step& step, unsigned blocks,
                          unsigned threads);
#endif

}  // namespace grosr::graphs
