#include "run/completions.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

#include "grosr/run/detail/words.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::run {
namespace {
constexpr std::size_t packet_completions = 32;
}

void completions::complete(const queue::completion* ended, std::uint32_t count) {
  for (;;) {
    try {
      std::lock_guard lock(lock_);
      for (; count != 0; ++ended, --count)
        come_[waiter_word::level_of(ended->waiter)].push_back(*ended);
      if (busy_) return;  // that thread takes them too
      break;
    } catch (const std::bad_alloc&) {  // they cannot be refused
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  hand_over();
  if (waiting()) owner_.try_later();
}

bool completions::waiting() {
  std::lock_guard lock(lock_);
  return std::any_of(come_.begin(), come_.end(), [](const auto& level) { return !level.empty(); });
}

bool completions::hand_over() {
  std::unique_lock lock(lock_);
  if (busy_) return false;
  busy_ = true;
  bool some = false;
  for (;;) {
    unsigned level = priority_levels;
    while (level-- > 0 && come_[level].empty()) continue;
    if (level >= priority_levels) break;  // there are none
    auto& from = come_[level];
    std::array<queue::completion, packet_completions> packet;
    const std::size_t count = std::min(from.size(), packet.size());
    std::copy_n(from.begin(), count, packet.begin());
    lock.unlock();
    bool brought = false;
    try {
      brought = owner_.bring(level, packet.data(), static_cast<std::uint32_t>(count));
    } catch (const error&) {  // the runtime is lost, and whoever waits for it learns that
    }
    lock.lock();
    if (!brought) break;
    from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
    outstanding_.fetch_sub(static_cast<std::int64_t>(count), std::memory_order_relaxed);
    some = true;
  }
  busy_ = false;
  return some;
}

}  // namespace grosr::run
