// The CPU's side of steps that are launched: how it gets from one to the next.
#pragma once

#include <algorithm>
#include <atomic>

#include "grosr/graph/bfs.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::graphs {

/// What the CPU reads of a search: pinned memory.
struct launched_news {
  std::uint32_t ended, chunks, steps;
};

inline constexpr unsigned launch_threads = 256;

class launch_loop {
 public:
  /// `blocks` can be there at a time.
  launch_loop(const device& where, unsigned blocks)
      : news_(where, simt::space::pinned, 1), stream_(where), blocks_(blocks) {}

  launched_news* news() const { return news_.data(); }
  simt::stream& stream() { return stream_; }

  template <class Kernel>
  void launch(unsigned wanted, const Kernel& k) {
    simt::launch<launch_threads, 4>(stream_, {std::clamp(wanted, 1u, blocks_), launch_threads}, k);
  }

  /// Launches a step, waits for it, and launches the next one with a grid of its size. Calls
  /// `between` between them, which may throw; so does go_ahead().
  template <class Reset, class Step>
  void wait_for_each(unsigned reset_chunks, const Reset& reset, const Step& step,
                     const progress_callback& between) {
    launch(reset_chunks, reset);
    for (;;) {
      stream_.wait();
      if (news_[0].ended != 0) return;
      if (between) between();
      launch(news_[0].chunks, step);
    }
  }

  /// Launches steps ahead of what is known; those behind the last one do nothing. The grid is what
  /// the step last heard of would need, four times over: levels grow.
  template <class Reset, class Step>
  void go_ahead(unsigned reset_chunks, const Reset& reset, const Step& step,
                const progress_callback& between) {
    news_[0] = {0, blocks_, 0};
    launch(reset_chunks, reset);
    for (std::uint32_t launched = 0; seen().ended == 0; ++launched) {
      for (unsigned turn = 0; launched - seen().steps > most_ahead && seen().ended == 0; ++turn)
        if (turn == 1u << 20) stream_.wait();  // throws if a launch failed
      const std::uint32_t chunks = seen().chunks;
      if (between && launched % 16 == 0) between();
      launch(chunks < blocks_ / 4 ? std::max(4 * chunks, 32u) : blocks_, step);
    }
    stream_.wait();
  }

 private:
  static constexpr std::uint32_t most_ahead = 64;  // launches that the CPU is ahead

  launched_news seen() const {
    const auto load = [](std::uint32_t& word) {
      return std::atomic_ref<std::uint32_t>(word).load(std::memory_order_relaxed);
    };
    return {load(news_[0].ended), load(news_[0].chunks), load(news_[0].steps)};
  }

  simt::buffer<launched_news> news_;
  simt::stream stream_;
  unsigned blocks_;
};

}  // namespace grosr::graphs
