// A doorbell: a device wakes a host thread that sleeps.
//
//   armed      0, or the number of the round for which a thread sleeps   device memory
//   doorbell   the newest round that was rung                            host memory (pinned)
//
// On a GPU the thread is woken by a stream that waits for `doorbell` (a wait-value, then a host
// function): nobody polls. On the host backend by a futex.
//
// Calls that wait until a GPU has nothing to do (cudaFree, cudaDeviceSynchronize, the first launch
// of a kernel that is not loaded) also wait for a stream that waits. So no round is longer than
// `longest_round`, and between two there is a gap; GROSR's own calls end rounds themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/owner.hpp"

namespace grosr::simt {

namespace host {
void wake_sleepers(std::uint32_t* word);
}

/// The device's side of a doorbell; passed by value.
class doorbell_ref {
 public:
  doorbell_ref() = default;
  doorbell_ref(std::uint32_t* armed, std::uint32_t* doorbell)
      : armed_(armed), doorbell_(doorbell) {}

  /// One lane: wakes the thread if it sleeps. A lane that rings once after giving it something may
  /// be missed when it falls asleep just then, and the thread wakes on its own, later; a lane that
  /// waits rings again.
  GROSR_DEVICE void ring() const {
#if !GROSR_ON_GPU
    fence(seq_cst);  // what the thread is to find, before the look whether it sleeps
#endif
    std::uint32_t round = atomic_ref<std::uint32_t>(*armed_).load(relaxed);
    if (round != 0) [[unlikely]]
      ring(round);
  }

 private:
  GROSR_DEVICE GROSR_NOINLINE void ring(std::uint32_t round) const {
#if !GROSR_ON_GPU
    // One lane rings a round: another, held up here, would disarm the next one.
    if (!atomic_ref<std::uint32_t>(*armed_).compare_exchange(round, 0, relaxed)) return;
#endif
    atomic_ref<std::uint32_t, scope::system>(*doorbell_).store(round, release);
#if !GROSR_ON_GPU
    host::wake_sleepers(doorbell_);
#endif
  }

  std::uint32_t* armed_ = nullptr;
  std::uint32_t* doorbell_ = nullptr;
};

/// Owner of a doorbell, and the sleeper's side: one thread at a time.
class doorbell {
 public:
  static constexpr std::chrono::milliseconds longest_round{150};

  /// `rung` is called when a device has rung, before the sleeper wakes and on another thread: some
  /// work can be done a wake-up earlier there. It must not use CUDA. Throws error(device_lost).
  explicit doorbell(device d, std::function<void()> rung = {});
  ~doorbell();
  doorbell(const doorbell&) = delete;

  doorbell_ref ref() const;

  /// Begins a round. When it returns true, every ring() that begins from now on wakes; look once
  /// more for work then, and sleep(). Takes some 100 us on a GPU, during which it calls `busy()`
  /// now and then; false when that said true.
  template <class Busy>
  bool arm(Busy&& busy) {
    begin_round();
    while (!is_armed()) {
      if (busy()) return false;
      nap();
    }
    return true;
  }

  /// Sleeps until a ring() of this round, wake(), or the round's end. Whether it was rung or woken.
  bool sleep();

  /// Wakes the sleeper from another host thread; does nothing before the first round. Thread-safe.
  void wake();

 private:
  struct state;
  void begin_round();
  bool is_armed() const;
  static void nap();  // 20 us

  owner<state> state_;
};

}  // namespace grosr::simt
