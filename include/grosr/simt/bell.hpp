// A bell: a device wakes a host thread that sleeps.
//
//   armed    0, or the number of the round for which a thread sleeps     device memory
//   bell     the newest round that was rung                              device memory
//
// On a GPU the thread is woken by a stream that waits for `bell` (a wait-value, then a host
// function): nobody polls. On the host backend by a futex.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::simt {

struct alignas(128) bell_words {
  std::uint32_t armed;
  std::uint32_t bell;
};

namespace host {
void wake_sleepers(std::uint32_t* word);
}

/// The device's side of a bell; passed by value.
class bell_ref {
 public:
  bell_ref() = default;
  GROSR_DEVICE explicit bell_ref(bell_words* words) : words_(words) {}

  /// One lane: wakes the thread if it sleeps. Who rings once after giving it something may be missed
  /// when it falls asleep just then, and it wakes on its own, later; who waits rings again.
  GROSR_DEVICE void ring() const {
#if !GROSR_ON_GPU
    fence(seq_cst);  // what the thread is to find, before the look whether it sleeps
#endif
    std::uint32_t round = atomic_ref<std::uint32_t>(words_->armed).load(relaxed);
    if (round != 0) [[unlikely]]
      ring(round);
  }

 private:
  GROSR_DEVICE GROSR_NOINLINE void ring(std::uint32_t round) const {
    atomic_ref<std::uint32_t, scope::system> bell(words_->bell);
    if (bell.load(relaxed) == round) return;
    bell.store(round, release);
#if !GROSR_ON_GPU
    atomic_ref<std::uint32_t>(words_->armed).store(0, relaxed);
    host::wake_sleepers(&words_->bell);
#endif
  }

  bell_words* words_ = nullptr;
};

/// Owner of a bell, and the sleeper's side: one thread at a time.
class bell {
 public:
  /// Throws error(device_lost) when the GPU faulted.
  explicit bell(device d);
  ~bell();
  bell(const bell&) = delete;

  bell_ref ref() const;

  /// Begins a round, unless one is under way. When it returns true, every ring()
  /// that begins from now on wakes; look once more for work then, and sleep(). Takes some 20 us on
  /// a GPU, during which it calls `busy()` again and again; false when that said true.
  template <class Busy>
  bool arm(Busy&& busy) {
    begin_round();
    while (!is_armed())
      if (busy()) return false;
    return true;
  }

  /// Sleeps until a ring() of this round, wake(), or the limit. Whether it was rung or woken. Calls
  /// that wait until a GPU has nothing to do (cudaFree, cudaDeviceSynchronize) wait for the limit
  /// at most.
  bool sleep(std::chrono::nanoseconds limit);

  /// Wakes the sleeper from another host thread; does nothing before the first round. Thread-safe.
  void wake();

 private:
  struct state;
  void begin_round();
  bool is_armed() const;

  std::unique_ptr<state> state_;
};

}  // namespace grosr::simt
