// Loops on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

namespace grosr::graphs {

/// So many, or one a processor for 0.
unsigned threads_or_all(unsigned threads);

/// Calls work(0) to work(threads - 1), each on a thread of its own, the first on this one. Throws
/// what the first of them threw, after all have ended.
void run_threads(unsigned threads, const std::function<void(unsigned)>& work);

/// Between two steps of a loop: throws tool::interrupt::interrupted after Ctrl-C. `shows`: also
/// shows the time in the progress line, which one thread at a time may.
void between_steps(bool shows);

/// Calls f(first, last) for slices of [0, count), of `grain` or less, and between_steps(). Throws
/// what f threw. Where there are several threads, only one at a time may call it.
template <class F>
void parallel_for(unsigned threads, std::uint64_t count, F&& f, std::uint64_t grain = 0) {
  if (count == 0) return;
  if (grain == 0) grain = std::max<std::uint64_t>(count / (std::uint64_t{threads} * 16), 4096);
  const std::uint64_t slices = (count - 1) / grain + 1;
  std::atomic<std::uint64_t> next{0};
  run_threads(static_cast<unsigned>(std::min<std::uint64_t>(threads, slices)), [&](unsigned i) {
    try {
      for (std::uint64_t s; (s = next.fetch_add(1, std::memory_order_relaxed)) < slices;) {
        between_steps(i == 0 && threads > 1);
        f(s * grain, std::min(count, (s + 1) * grain));
      }
    } catch (...) {
      next = slices;  // the others stop soon
      throw;
    }
  });
}

}  // namespace grosr::graphs
