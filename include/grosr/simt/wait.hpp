// Clocks, and the only way to spin.
#pragma once

#include <chrono>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/config.hpp"

namespace grosr::simt {

/// Nanoseconds since some moment; one moment for all lanes of a device. Ticks are 32 ns to 1 us
/// apart on GPUs.
GROSR_DEVICE inline std::uint64_t clock_ns() {
#if GROSR_ON_GPU
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
#else
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
#endif
}

/// A cheap counter for short spans on one multiprocessor: cycles on a GPU, nanoseconds on the host.
GROSR_DEVICE inline std::uint64_t cycle_count() {
#if GROSR_ON_GPU
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t));
  return t;
#else
  return clock_ns();
#endif
}

/// No deadline.
inline constexpr std::uint64_t forever = ~std::uint64_t{0};

/// One pause of a wait that its caller loops over itself: nanosleep on a GPU, a switch to another
/// lane on the host. `turn` counts the pauses since there last was something to do, from 0: pauses
/// grow from 32 ns to 2 us, and a host worker sleeps only while all its lanes pause with turn > 0.
GROSR_DEVICE inline void pause(unsigned turn, const char* why, site where = site::here()) {
#if GROSR_ON_GPU
  (void)why;
  (void)where;
  __nanosleep(32u << (turn < 6 ? turn : 6));
#else
  host::poll_pause(turn, why, where);
#endif
}

/// A pause only where lanes share a processor: for loops whose own accesses are slow on a GPU.
GROSR_DEVICE inline void pause_if_host(unsigned turn, const char* why, site where = site::here()) {
#if GROSR_ON_GPU
  (void)turn;
  (void)why;
  (void)where;
#else
  host::poll_pause(turn, why, where);
#endif
}

/// Lets about `ns` pass on a GPU, so that two looks across the bus that are under way together see
/// different moments. Nothing on the host.
GROSR_DEVICE inline void space_looks([[maybe_unused]] unsigned ns) {
#if GROSR_ON_GPU
  __nanosleep(ns);
#endif
}

enum class wait_result { ready, timed_out, aborted };

/// Calls `predicate()` until it is true, `deadline` (on clock_ns) has passed, or the word behind
/// `abort` (may be null) is non-zero. `why` names what is waited for in reports. Memory order is
/// the predicate's own. Any subset of a warp may call it; lanes wait on their own.
template <class Predicate>
GROSR_DEVICE inline wait_result wait_until(Predicate&& predicate, std::uint64_t deadline,
                                           std::uint32_t* abort, const char* why,
                                           site where = site::here()) {
  for (unsigned turn = 0;; ++turn) {
    if (predicate()) return wait_result::ready;
    if (abort != nullptr && atomic_ref<std::uint32_t>(*abort).load(relaxed) != 0)
      return wait_result::aborted;
    if (deadline != forever && clock_ns() >= deadline) return wait_result::timed_out;
    pause(turn, why, where);
  }
}

}  // namespace grosr::simt
