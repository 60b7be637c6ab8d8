#include "sys/workers.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "sys/thread.hpp"

namespace grosr::sys {

struct workers::active {
  std::uint64_t number;
  active *older, *newer = nullptr;
};

struct workers::sleeper {
  std::condition_variable called;
  sleeper* next;
  bool is_called = false;
};

workers::workers(unsigned most, std::chrono::milliseconds idle)
    : most_(std::max(most, 1u)), idle_(idle) {}

workers::~workers() { stop(); }

long workers::submit(job& j) { return submit(j, false); }
long workers::submit_now(job& j) { return submit(j, true); }

long workers::submit(job& j, bool now) {
  guard lock(lock_);
  if (stopping_) return -ESHUTDOWN;
  // A thread that is called or new, but has not come yet, finds the job that it was meant for, or
  // another thread has come before it: nobody sleeps while jobs are there.
  if (sleeper* s = sleepers_) {
    sleepers_ = s->next;
    s->is_called = true;
    s->called.notify_one();
  } else if (threads_.size() >= most_ || !add_thread()) {
    if (now || threads_.empty()) return -EAGAIN;
  }
  j.next_ = nullptr;
  j.number_ = next_number_++;
  (last_ != nullptr ? last_->next_ : first_) = &j;
  last_ = &j;
  ++queued_;
  return 0;
}

void workers::drain() {
  guard lock(lock_);
  const std::uint64_t end = next_number_;
  changed_.wait(lock, [&] {
    return (oldest_ == nullptr || oldest_->number >= end) &&
           (first_ == nullptr || first_->number_ >= end);
  });
}

void workers::stop() {
  guard lock(lock_);
  stopping_ = true;
  for (sleeper* s = sleepers_; s != nullptr; s = s->next) {
    s->is_called = true;
    s->called.notify_one();
  }
  sleepers_ = nullptr;
  while (first_ != nullptr) act(lock, turn::stopped);
  changed_.wait(lock, [&] { return threads_.empty() && oldest_ == nullptr; });
  std::list<std::thread> ended;
  ended.swap(ended_);
  lock.unlock();
  for (std::thread& t : ended) t.join();
}

std::size_t workers::threads() const {
  guard lock(lock_);
  return threads_.size();
}

std::size_t workers::queued() const {
  guard lock(lock_);
  return queued_;
}

bool workers::add_thread() {
  for (std::thread& t : ended_) t.join();  // all they had left to do was to return
  ended_.clear();
  try {
    const auto self = threads_.emplace(threads_.end());
    try {
      *self = quiet_thread("grosr call", [this, self] { work(self); });
      return true;
    } catch (const std::system_error&) {
      threads_.erase(self);
    }
  } catch (const std::bad_alloc&) {
  }
  return false;
}

void workers::work(std::list<std::thread>::iterator self) {
  guard lock(lock_);
  do {
    while (first_ != nullptr && !stopping_) act(lock, turn::run);
  } while (!stopping_ && sleep(lock));
  ended_.splice(ended_.end(), threads_, self);
  changed_.notify_all();
}

// False: nobody called for so long that the thread should end.
bool workers::sleep(guard& lock) {
  sleeper me{.called = {}, .next = sleepers_};
  sleepers_ = &me;
  const auto until = std::chrono::steady_clock::now() + idle_;
  if (me.called.wait_until(lock, until, [&] { return me.is_called; })) return true;
  sleeper** at = &sleepers_;
  while (*at != &me) at = &(*at)->next;
  *at = me.next;
  return false;
}

// The first job's turn.
void workers::act(guard& lock, turn t) {
  job& j = *first_;
  first_ = j.next_;
  if (first_ == nullptr) last_ = nullptr;
  --queued_;
  active a{.number = j.number_, .older = newest_};
  (newest_ != nullptr ? newest_->newer : oldest_) = &a;
  newest_ = &a;
  lock.unlock();
  j.act(j, t);
  lock.lock();
  (a.older != nullptr ? a.older->newer : oldest_) = a.newer;
  (a.newer != nullptr ? a.newer->older : newest_) = a.older;
  changed_.notify_all();
}

}  // namespace grosr::sys
