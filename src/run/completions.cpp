#include "run/completions.hpp"

#include <algorithm>
#include <utility>

#include "grosr/run/detail/words.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::run {

void completions::complete(const queue::completion& c) {
  {
    std::lock_guard lock(lock_);
    come_[waiter_word::level_of(c.waiter)].push_back(c);
    if (busy_) return;  // that thread takes it too
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
  bool some = false, room = true;
  for (unsigned level = priority_levels; room && level-- > 0;) {
    if (come_[level].empty()) continue;
    std::vector<queue::completion> mine = std::exchange(come_[level], {});
    lock.unlock();
    std::size_t done = 0;
    while (room && done < mine.size()) {
      const auto count =
          static_cast<std::uint32_t>(std::min<std::size_t>(mine.size() - done, packet_completions));
      try {
        room = owner_.bring(level, mine.data() + done, count);
      } catch (const error&) {  // the runtime is lost, and whoever waits for it learns that
        room = false;
      }
      if (room) done += count;
    }
    some = some || done != 0;
    lock.lock();
    come_[level].insert(come_[level].begin(), mine.begin() + static_cast<std::ptrdiff_t>(done),
                        mine.end());
    level = priority_levels;  // more may have come
  }
  busy_ = false;
  return some;
}

}  // namespace grosr::run
