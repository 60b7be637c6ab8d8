// What the reactor's own thread does: it resumes waiters.
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>

#include "grosr/queue/completion.hpp"
#include "sys/reactor_parts.hpp"

namespace grosr::sys {

using namespace std::chrono_literals;

void reactor::run() {
  std::array<epoll_event, 256> events;
  queue::completion_batch together;
  guard lock(lock_);
  while (!stopping_) {
    lock.unlock();
    together.flush();
    int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    lock.lock();
    for (int i = 0; i < n && !stopping_; ++i) {
      const epoll_event& ev = events[static_cast<std::size_t>(i)];
      if (ev.data.u64 == alarm_key) {
        alarm_at_ = awake;
        continue;
      }
      entry* e = find(static_cast<int>(ev.data.u64 & 0x7fffffff));
      if (e->registered && ev.data.u64 == key_of(e->descriptor, e->generation))
        serve(lock, *e, static_cast<short>(ev.events));
    }
    end_closed(lock);
    expire(lock);
    set_alarm();
  }
  end_all(lock);
  lock.unlock();
  together.flush();
  lock.lock();
  ended_ = true;
  returned_.notify_all();
}

// `w` is in no queue. True: it is done, and may be gone.
bool reactor::resume(guard& lock, waiter& w, wake cause) {
  frame f{w.descriptor_, cause, frames_};
  frames_ = &f;
  lock.unlock();
  bool done = w.resume(w, cause);
  lock.lock();
  frames_ = f.outer;
  if (!done && cause == wake::ready) {
    if (!f.closed && !stopping_) return false;
    return resume(lock, w, f.closed ? wake::closed : wake::stopped);
  }
  --waiting_;
  returned_.notify_all();
  return true;
}

void reactor::serve(guard& lock, entry& e, short ready) {
  if (!e.waited_for()) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, e.descriptor, nullptr);
    e.registered = false;
    return;
  }
  served s;
  for (waiter_queue* q : {&e.others, &e.in, &e.out}) serve(lock, e, *q, ready, s);
  if (!e.registered) return;
  if (s.any_done) {
    deadlines_.remove(e);
    e.delay = {};
  }
  if (s.blocked == 0 || e.set) return;
  // A call may block although its descriptor is ready: a write of more than there is room for, a
  // datagram to a full peer. No edge need come then.
  pollfd p{e.descriptor, s.blocked, 0};
  if (poll(&p, 1, 0) <= 0) {
    e.delay = {};
    return;
  }
  e.delay = std::clamp<std::chrono::milliseconds>(2 * e.delay, 1ms, 64ms);
  e.when = clock::now() + e.delay;
  deadlines_.add(e);
}

void reactor::serve(guard& lock, entry& e, waiter_queue& q, short ready, served& s) {
  const std::uint64_t end = next_number_;  // who comes from now on has an event of his own
  const unsigned losses = e.losses;
  waiter* before = nullptr;
  while (!stopping_ && e.losses == losses) {
    waiter* w = before != nullptr ? before->next_ : q.first();
    if (w == nullptr || w->number_ >= end) return;
    if ((ready & (w->events_ | POLLERR | POLLHUP)) == 0) {
      before = w;
      if (&q == &e.others) continue;
      return;
    }
    unlink(*w, q);
    if (resume(lock, *w, wake::ready)) {
      s.any_done = true;
      continue;
    }
    link(*w, q, before);
    s.blocked = static_cast<short>(s.blocked | w->events_);
    if (&q != &e.others) return;
    before = w;
  }
}

void reactor::expire(guard& lock) {
  take_arrivals();
  const auto now = clock::now();
  // Waiters that wait again until a time that has passed do not keep the thread here.
  for (std::size_t n = 2 * waiting_; n > 0 && !stopping_; --n) {
    timer* t = deadlines_.first();
    if (t == nullptr || t->when > now) return;
    if (t->of_descriptor) {
      deadlines_.remove(*t);
      if (auto& e = static_cast<entry&>(*t); e.waited_for()) update(e, 0);
      continue;
    }
    waiter& w = static_cast<waiter&>(*t);
    if (w.descriptor_ < 0) {
      expire_alone(lock, now);
      continue;
    }
    entry* e = find(w.descriptor_);
    waiter_queue& q = queue_of(e, w.events_);
    const bool was_first = q.first() == &w;
    unlink(w, q);
    // The next may have been kept waiting by this one alone.
    if (e != nullptr && was_first && !q.empty()) update(*e, 0);
    resume(lock, w, wake::timed_out);
  }
}

// Those of no descriptor, which nobody looks for: as many as the lock is worth taking for.
void reactor::expire_alone(guard& lock, clock::time_point now) {
  constexpr std::size_t most = 64;
  std::array<waiter*, most> due;
  std::size_t count = 0;
  for (timer* t = deadlines_.first(); count < most && t != nullptr && t->when <= now;
       t = deadlines_.first()) {
    if (t->of_descriptor || static_cast<waiter*>(t)->descriptor_ >= 0) break;
    due[count] = static_cast<waiter*>(t);
    unlink(*due[count++], alone_);
  }
  lock.unlock();
  std::for_each_n(due.begin(), count, [](waiter* w) { w->resume(*w, wake::timed_out); });
  lock.lock();
  waiting_ -= count;
  returned_.notify_all();
}

void reactor::end_closed(guard& lock) {
  while (waiter* w = closed_.first()) {
    closed_.remove(*w);
    --find(w->descriptor_)->closed;
    resume(lock, *w, wake::closed);
  }
}

void reactor::end_all(guard& lock) {
  if (ending_) return;
  ending_ = true;
  end_arrivals();
  end_closed(lock);
  auto end = [&](waiter_queue& q) {
    while (waiter* w = q.first()) {
      unlink(*w, q);
      resume(lock, *w, wake::stopped);
      end_closed(lock);
    }
  };
  end(alone_);
  for (auto& p : pages_)
    if (p)
      for (entry& e : p->entries)
        for (waiter_queue* q : {&e.in, &e.out, &e.others}) end(*q);
}

}  // namespace grosr::sys
