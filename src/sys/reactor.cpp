// The reactor's calls, which any thread may make.
#include "sys/reactor.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "sys/reactor_parts.hpp"
#include "sys/thread.hpp"

namespace grosr::sys {
namespace {

int descriptor_or_throw(int descriptor, const char* what) {
  if (descriptor < 0)
    throw std::system_error(errno, std::generic_category(),
                            std::string("a reactor of system calls: no descriptor from ") + what +
                                "; raise the limit (ulimit -n) or close some");
  return descriptor;
}

std::int64_t alarm_of(reactor::clock::time_point when) {
  using namespace std::chrono;
  return std::max<std::int64_t>(1, nanoseconds(when.time_since_epoch()).count());
}

}  // namespace

reactor::reactor()
    : epoll_(descriptor_or_throw(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")), alarm_([this] {
        int alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        epoll_event ev{.events = EPOLLIN | EPOLLET, .data = {.u64 = alarm_key}};
        if (alarm >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, alarm, &ev) == 0) return alarm;
        int why = errno;
        if (alarm >= 0) ::close(alarm);
        ::close(epoll_);
        errno = why;
        return descriptor_or_throw(-1, "timerfd_create");
      }()) {}

reactor::~reactor() {
  stop();
  if (thread_.joinable()) thread_.join();
  ::close(alarm_);
  ::close(epoll_);
}

long reactor::wait(waiter& w, int descriptor, short events,
                   std::optional<clock::time_point> until) {
  if (descriptor == -1 && until && come(w, *until)) return 0;
  guard lock(lock_);
  if (stopping_) return -ESHUTDOWN;
  if (descriptor < -1) return -EBADF;
  if (!start()) return -EAGAIN;
  entry* e = nullptr;
  if (descriptor >= 0) {
    e = make(descriptor);
    if (e == nullptr) return -ENOMEM;
    if (e->closing != 0) return -EBADF;
    if (long r = arm(*e, events); r != 0) return r;
  }
  w.descriptor_ = descriptor;
  w.events_ = events;
  w.number_ = next_number_++;
  w.timed_ = until.has_value();
  if (until) w.when = *until;
  waiter_queue& q = queue_of(e, events);
  ++waiting_;
  link(w, q, q.last());
  set_alarm();
  return 0;
}

// Without the lock, unless the alarm is too late for it. From the exchange on, `w` may be gone.
bool reactor::come(waiter& w, clock::time_point until) {
  w.descriptor_ = -1;
  w.events_ = 0;
  w.timed_ = true;
  w.when = until;
  w.next_ = arrivals_.load(std::memory_order_relaxed);
  do {
    if (w.next_ == &no_more_) return false;
  } while (!arrivals_.compare_exchange_weak(w.next_, &w, std::memory_order_seq_cst,
                                            std::memory_order_relaxed));
  // T1: pairs with T2. Either this sees the alarm that was set without it, or that one sees it.
  const std::int64_t at = alarm_at_.load(std::memory_order_seq_cst);
  if (at != 0 && alarm_of(until) >= at) return true;
  guard lock(lock_);
  set_alarm();
  return true;
}

// With the lock.
void reactor::take_arrivals() {
  waiter* w = arrivals_.load(std::memory_order_seq_cst);
  if (w == nullptr || w == &no_more_) return;
  w = arrivals_.exchange(nullptr, std::memory_order_seq_cst);
  while (w != nullptr) {
    waiter* const next = std::exchange(w->next_, nullptr);
    w->number_ = next_number_++;
    ++waiting_;
    link(*w, alone_, alone_.last());
    w = next;
  }
}

// With the lock: from now on they take it, too.
void reactor::end_arrivals() {
  take_arrivals();
  for (waiter* none = nullptr; !arrivals_.compare_exchange_strong(none, &no_more_); none = nullptr)
    take_arrivals();
}

void reactor::close(int descriptor) {
  guard lock(lock_);
  entry* e = find(descriptor);
  if (e == nullptr) return;
  bool inside = false;
  if (on_thread())
    for (frame* f = frames_; f != nullptr; f = f->outer)
      inside |= f->descriptor == descriptor && f->cause == wake::closed;
  ++e->closing;
  if (e->registered) epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  lose(*e);
  if (!on_thread())
    returned_.wait(lock, [&] { return e->closed == 0 && !resuming(descriptor); });
  else if (!inside)
    end_closed(lock);
  --e->closing;
}

void reactor::stop() {
  guard lock(lock_);
  stopping_ = true;
  if (!thread_.joinable()) return;
  if (on_thread()) {
    end_all(lock);
  } else {
    set_alarm();
    returned_.wait(lock, [&] { return ended_; });
  }
}

std::size_t reactor::waiting() const {
  guard lock(lock_);
  std::size_t n = waiting_;
  for (const waiter* w = arrivals_; w != nullptr && w != &no_more_; w = w->next_) ++n;
  return n;
}

bool reactor::start() {
  if (thread_.joinable()) return true;
  try {
    thread_ = quiet_thread("grosr reactor", [this] { run(); });
    arrivals_ = nullptr;
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

reactor::entry* reactor::find(int descriptor) const {
  auto at = static_cast<std::size_t>(descriptor) / page::size;
  if (descriptor < 0 || at >= pages_.size() || !pages_[at]) return nullptr;
  return &pages_[at]->entries[static_cast<std::size_t>(descriptor) % page::size];
}

reactor::entry* reactor::make(int descriptor) {
  if (entry* e = find(descriptor)) return e;
  auto at = static_cast<std::size_t>(descriptor) / page::size;
  try {
    if (at >= pages_.size()) pages_.resize(at + 1);
    pages_[at] = std::make_unique<page>();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  int number = static_cast<int>(at) * page::size;
  for (entry& e : pages_[at]->entries) e.descriptor = number++;
  return find(descriptor);
}

waiter_queue& reactor::queue_of(entry* e, short events) {
  if (e == nullptr) return alone_;
  return events == POLLIN ? e->in : events == POLLOUT ? e->out : e->others;
}

void reactor::link(waiter& w, waiter_queue& q, waiter* before) {
  q.insert_after(before, w);
  if (w.timed_) deadlines_.add(w);
  if (entry* e = find(w.descriptor_); e != nullptr && &q == &e->others)
    e->others_events = static_cast<short>(e->others_events | w.events_);
}

void reactor::unlink(waiter& w, waiter_queue& q) {
  q.remove(w);
  deadlines_.remove(w);
  if (entry* e = find(w.descriptor_); e != nullptr && e->others.empty()) e->others_events = 0;
}

// Has the epoll tell of what is ready now, and of what becomes ready later. Registrations are
// edge-triggered: a waiter that goes on waiting is not woken by what it has just seen, and what has
// come since then is another edge. False: the number is not the file any more that it was.
bool reactor::update(entry& e, short events) {
  int mask = events | e.others_events | (e.in.empty() ? 0 : POLLIN) | (e.out.empty() ? 0 : POLLOUT);
  epoll_event ev{.events = static_cast<std::uint16_t>(mask) | EPOLLET,
                 .data = {.u64 = key_of(e.descriptor, e.generation)}};
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, e.descriptor, &ev) == 0) return true;
  lose(e);
  return false;
}

long reactor::arm(entry& e, short events) {
  if (e.registered && update(e, events)) return 0;
  ++e.generation;
  epoll_event ev{.events = static_cast<std::uint16_t>(events) | EPOLLET,
                 .data = {.u64 = key_of(e.descriptor, e.generation)}};
  // It may be there: forgotten when its number was closed, and back by way of a duplicate.
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, e.descriptor, &ev) != 0 &&
      (errno != EEXIST || epoll_ctl(epoll_, EPOLL_CTL_MOD, e.descriptor, &ev) != 0))
    return -errno;
  e.registered = true;
  return 0;
}

// Its waiters are to be resumed with `closed`.
void reactor::lose(entry& e) {
  e.registered = false;
  e.delay = {};
  deadlines_.remove(e);
  ++e.losses;
  for (waiter_queue* q : {&e.in, &e.out, &e.others})
    while (waiter* w = q->first()) {
      unlink(*w, *q);
      closed_.push_back(*w);
      ++e.closed;
    }
  for (frame* f = frames_; f != nullptr; f = f->outer) f->closed |= f->descriptor == e.descriptor;
  set_alarm();
}

bool reactor::resuming(int descriptor) const {
  for (frame* f = frames_; f != nullptr; f = f->outer)
    if (f->descriptor == descriptor) return true;
  return false;
}

// Wakes the thread when there is something to do for it without an event.
void reactor::set_alarm() {
  for (;;) {
    take_arrivals();
    std::int64_t at = 0;
    if (stopping_ || !closed_.empty())
      at = 1;
    else if (timer* t = deadlines_.first())
      at = alarm_of(t->when);
    if (at == alarm_at_.load(std::memory_order_relaxed)) return;
    // T2: those that came before this was seen are taken at the next turn.
    alarm_at_.store(at, std::memory_order_seq_cst);
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(at / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(at % 1'000'000'000);
    timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &when, nullptr);
  }
}

}  // namespace grosr::sys
