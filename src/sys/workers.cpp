#include "sys/workers.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "sys/interruption.hpp"
#include "sys/thread.hpp"

namespace grosr::sys {

struct workers::active {
  std::uint64_t number;
  active *older, *newer = nullptr;
  bool interruptible = false;
  int descriptor = -1;
  pthread_t thread{};
  clock::time_point began{};
  std::atomic<bool> asked{false};  // and not known to have heard it
};

thread_local workers::active* workers::here_ = nullptr;

struct workers::sleeper {
  std::condition_variable called;
  sleeper* next;
  bool is_called = false;
};

workers::workers(unsigned most, std::chrono::milliseconds idle)
    : most_(std::max(most, 1u)), idle_(idle) {
  interruption_signal();  // before there are threads
}

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
    if (now || threads_.empty() || !need_usher()) return -EAGAIN;
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

void workers::ask_users_of(int descriptor) {
  guard lock(lock_);
  bool any = false;
  for (active* a = oldest_; a != nullptr; a = a->newer)
    if (a->interruptible && a->descriptor == descriptor) a->asked = any = true;
  if (!any) return;
  if (!need_usher()) ask(clock::now());
  usher_wakes_.notify_one();
}

bool workers::is_asked() { return here_ != nullptr && here_->asked.exchange(false); }

void workers::stop() {
  guard lock(lock_);
  stopping_ = true;
  for (sleeper* s = sleepers_; s != nullptr; s = s->next) {
    s->is_called = true;
    s->called.notify_one();
  }
  sleepers_ = nullptr;
  while (first_ != nullptr) act(lock, turn::stopped);
  usher_wakes_.notify_one();
  const auto none = [&] { return threads_.empty() && oldest_ == nullptr && !ushers_; };
  for (auto pause = std::chrono::milliseconds(1); !changed_.wait_for(lock, pause, none);
       pause = std::min(2 * pause, 2 * turn_length))
    for (active* a = oldest_; a != nullptr; a = a->newer)
      if (a->interruptible) interrupt(a->thread);
  std::list<std::thread> ended;
  ended.swap(ended_);
  if (usher_.joinable()) ended.push_back(std::move(usher_));
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
  allow_interruption();
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
  a.interruptible = j.interruptible && t == turn::run;
  a.descriptor = j.descriptor;
  a.thread = pthread_self();
  if (a.interruptible) a.began = clock::now();
  (newest_ != nullptr ? newest_->newer : oldest_) = &a;
  newest_ = &a;
  lock.unlock();
  active* const outer = std::exchange(here_, &a);
  j.act(j, t);
  here_ = outer;
  lock.lock();
  (a.older != nullptr ? a.older->newer : oldest_) = a.newer;
  (a.newer != nullptr ? a.newer->older : newest_) = a.older;
  changed_.notify_all();
}

// There is a thread that asks jobs to return. False: none can be made.
bool workers::need_usher() {
  if (ushers_) return true;
  if (usher_.joinable()) usher_.join();  // all it had left to do was to return
  try {
    usher_ = quiet_thread("grosr usher", [this] { usher(); });
  } catch (const std::system_error&) {
    return false;
  }
  return ushers_ = true;
}

void workers::usher() {
  guard lock(lock_);
  while (!stopping_ && (ask(clock::now()) || first_ != nullptr))
    usher_wakes_.wait_for(lock, turn_length / 2);
  ushers_ = false;
  changed_.notify_all();
}

// Interrupts those that were asked and have not returned: they may not have been waiting yet. Asks
// more of them while jobs queue. Whether there was one.
bool workers::ask(clock::time_point now) {
  bool any = false;
  std::size_t queued = queued_;
  for (active* a = oldest_; a != nullptr; a = a->newer) {
    if (!a->interruptible) continue;
    if (queued != 0 && now - a->began >= turn_length) a->asked = true;
    if (!a->asked) continue;
    if (queued != 0) --queued;
    interrupt(a->thread);
    any = true;
  }
  return any;
}

}  // namespace grosr::sys
