#include "grosr/simt/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>

#include "simt/backend.hpp"

namespace grosr::simt {
namespace {

void futex_wait(std::uint32_t* word, std::uint32_t while_it_is, std::chrono::nanoseconds limit) {
  const auto ns = limit.count();
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, &t, nullptr, 0);
}

}  // namespace

void host::wake_sleepers(std::uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// `woken` is what the sleeper waits on: on a GPU the stream's host function writes it, on the host
// it is the bell itself.
struct bell::state {
  explicit state(device d)
      : words(d, space::device, 1), stream(d.is_cuda() ? cuda_backend::make_bell(d) : nullptr) {}

  std::uint32_t& woken() { return stream ? stream->woken : words.data()->bell; }
  bool rung() { return std::atomic_ref<std::uint32_t>(woken()).load(acquire) == round.load(relaxed); }

  buffer<bell_words> words;
  std::unique_ptr<bell_backend> stream;
  std::atomic<std::uint32_t> round{0};  // 0: none yet
};

bell::bell(device d) : state_(std::make_unique<state>(d)) {}

bell::~bell() {
  state& s = *state_;
  if (s.stream && !s.rung()) s.stream->release(s.words.data(), s.round.load(relaxed));
}

bell_ref bell::ref() const { return bell_ref(state_->words.data()); }

void bell::begin_round() {
  state& s = *state_;
  std::uint32_t round = s.round.load(relaxed);
  if (round != 0 && !s.rung()) return;
  if (++round == 0) ++round;
  s.round.store(round, relaxed);
  if (s.stream) return s.stream->arm(s.words.data(), round);
  atomic_ref<std::uint32_t>(s.words.data()->armed).store(round, relaxed);
  fence(seq_cst);  // the other half of the fence in ring()
}

bool bell::is_armed() const {
  return !state_->stream || state_->stream->is_armed(state_->round.load(relaxed));
}

bool bell::sleep(std::chrono::nanoseconds limit) {
  state& s = *state_;
  const std::uint32_t before = std::atomic_ref<std::uint32_t>(s.woken()).load(acquire);
  if (before != s.round.load(relaxed)) futex_wait(&s.woken(), before, limit);
  if (s.rung()) return true;
  // Calls that wait for the device to have nothing to do also wait for a stream that waits.
  if (s.stream) {
    s.stream->release(s.words.data(), s.round.load(relaxed));
    futex_wait(&s.woken(), before, std::chrono::milliseconds(1));
  }
  return false;
}

void bell::wake() {
  state& s = *state_;
  if (s.round.load(relaxed) == 0) return;
  if (s.stream) return s.stream->release(s.words.data(), s.round.load(relaxed));
  bell_ref(s.words.data()).ring();
}

}  // namespace grosr::simt
