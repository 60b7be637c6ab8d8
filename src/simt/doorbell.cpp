#include "grosr/simt/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>
#include <thread>

#include "simt/backend.hpp"

namespace grosr::simt {

void host::wake_sleepers(std::uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void host::sleep_while(std::uint32_t* word, std::uint32_t is, std::chrono::nanoseconds limit) {
  const auto ns = limit.count();
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, is, &t, nullptr, 0);
}

// On the host backend the sleeper waits on the doorbell itself; on a GPU on a word that the
// stream's host function writes.
struct doorbell::state {
  state(device d, std::function<void()> on_ring)
      : armed(d, space::device, 1),
        word(d, space::pinned, 1),
        gpu(d.is_cuda()
                ? cuda_backend::make_doorbell(d, armed.data(), word.data(), std::move(on_ring))
                : nullptr) {}

  std::uint32_t& woken() { return gpu ? gpu->woken : word[0]; }
  bool over() {
    return std::atomic_ref<std::uint32_t>(woken()).load(std::memory_order_acquire) ==
           round.load(std::memory_order_relaxed);
  }

  buffer<std::uint32_t> armed, word;
  std::unique_ptr<doorbell_backend> gpu;
  std::atomic<std::uint32_t> round{0};  // 0: none yet
};

doorbell::doorbell(device d, std::function<void()> on_ring)
    : state_(new state(d, std::move(on_ring))) {}
doorbell::~doorbell() = default;

void doorbell::nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

doorbell_ref doorbell::ref() const { return {state_->armed.data(), state_->word.data()}; }

void doorbell::begin_round() {
  state& s = *state_;
  std::uint32_t round = s.round.load(std::memory_order_relaxed);
  if (round != 0 && !s.over()) return;
  if (++round == 0) ++round;
  s.round.store(round, std::memory_order_relaxed);
  if (s.gpu) return s.gpu->arm(round);
  atomic_ref<std::uint32_t>(*s.armed.data()).store(round, relaxed);
  fence(seq_cst);  // the other half of the fence in ring()
}

bool doorbell::is_armed() const {
  return !state_->gpu || state_->gpu->is_armed(state_->round.load(std::memory_order_relaxed));
}

bool doorbell::sleep() {
  state& s = *state_;
  const std::uint32_t before =
      std::atomic_ref<std::uint32_t>(s.woken()).load(std::memory_order_acquire);
  const auto slept = [&](std::chrono::nanoseconds limit) {
    if (!s.over()) host::sleep_while(&s.woken(), before, limit);
    return s.over();
  };
  if (slept(longest_round) || !s.gpu) return s.over();
  // A store of an older round may come in between: again until it is over.
  for (int i = 0; i < 100 && !s.over(); ++i) {
    s.gpu->release();
    slept(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::microseconds(300));  // the gap
  return false;
}

void doorbell::wake() {
  state& s = *state_;
  if (s.round.load(std::memory_order_relaxed) == 0) return;
  if (s.gpu)
    s.gpu->release();
  else
    ref().ring();
}

}  // namespace grosr::simt
