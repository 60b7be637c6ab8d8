#include "sys/writer.hpp"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "sys/thread.hpp"
#include "sys/ticks.hpp"

namespace grosr::sys {

writer::writer(int to) : to_(to) {
  if (to >= 0) thread_ = quiet_thread("grosr writer", [this] { run(); });
}

writer::~writer() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(lock_);
    ending_ = true;
  }
  given_some_.notify_one();
  thread_.join();
}

void writer::put(std::string_view text) {
  if (text.empty()) return;
  if (waiting() > 2 * most) {
    lost_.fetch_add(text.size(), std::memory_order_relaxed);
    return;
  }
  bool first = false;
  {
    std::lock_guard lock(lock_);
    first = waiting_.empty();
    waiting_ += text;
    given_.fetch_add(text.size(), std::memory_order_relaxed);
  }
  if (first) given_some_.notify_one();
}

void writer::await_room() {
  std::unique_lock lock(lock_);
  wrote_some_.wait_for(lock, std::chrono::milliseconds(1), [this] { return has_room(); });
}

void writer::run() {
  std::string text;
  std::unique_lock lock(lock_);
  for (;;) {
    given_some_.wait(lock, [this] { return !waiting_.empty() || ending_; });
    if (waiting_.empty()) return;
    text.clear();
    text.swap(waiting_);
    lock.unlock();
    lost_.fetch_add(text.size() - write_out(text), std::memory_order_relaxed);
    lock.lock();
    written_.fetch_add(text.size(), std::memory_order_release);
    wrote_some_.notify_all();
  }
}

/// How much of it was written: all, unless there is no writing to that descriptor, or its reader
/// does not read while nobody waits for it any more.
std::size_t writer::write_out(std::string_view text) const {
  std::size_t at = 0;
  while (at < text.size()) {
    pollfd p{to_, POLLOUT, 0};
    if (::poll(&p, 1, 100) == 0) {
      if (now_ns() > give_up_ns_.load(std::memory_order_relaxed)) break;
      continue;
    }
    // What a pipe that is ready takes without waiting.
    const ssize_t n =
        ::write(to_, text.data() + at, std::min<std::size_t>(text.size() - at, PIPE_BUF));
    if (n < 0 && errno != EINTR && errno != EAGAIN) break;
    if (n > 0) at += static_cast<std::size_t>(n);
  }
  return at;
}

}  // namespace grosr::sys
