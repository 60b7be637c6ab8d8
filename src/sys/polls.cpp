// Calls that wait for several descriptors, or for none: poll and sleeps. They wait in the reactor.
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

using clock = reactor::clock;

// Longer is for ever.
constexpr std::int64_t longest_wait_s = std::int64_t{1} << 32;

bool is_time(const timespec& t) {
  return t.tv_sec >= 0 && t.tv_nsec >= 0 && t.tv_nsec < 1'000'000'000;
}

std::chrono::nanoseconds span_of(const timespec& t) {
  return std::chrono::seconds(std::min<std::int64_t>(t.tv_sec, longest_wait_s)) +
         std::chrono::nanoseconds(t.tv_nsec);
}

/// An epoll of what is polled: a descriptor, or -errno.
int epoll_of(const std::vector<pollfd>& polled) {
  const int all = ::epoll_create1(EPOLL_CLOEXEC);
  if (all < 0) return -errno;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    const pollfd& p = polled[i];
    if (p.fd < 0) continue;
    epoll_event ev{};
    ev.events = static_cast<std::uint16_t>(p.events);
    if (::epoll_ctl(all, EPOLL_CTL_ADD, p.fd, &ev) == 0 || errno == EPERM) continue;  // never waits
    long bad = errno;
    if (bad == EEXIST) {
      for (std::size_t k = 0; k < i; ++k)
        if (polled[k].fd == p.fd) ev.events |= static_cast<std::uint16_t>(polled[k].events);
      bad = ::epoll_ctl(all, EPOLL_CTL_MOD, p.fd, &ev) == 0 ? 0 : errno;
    }
    if (bad == 0) continue;
    ::close(all);
    return static_cast<int>(-bad);
  }
  return all;
}

}  // namespace

service::polled::~polled() {
  if (all < 0) return;
  waits_in.close(all);
  ::close(all);
}

/// Brings what was found to the kernel. `ready`, or -EFAULT.
long service::tell(const polled& p, long ready) {
  const std::size_t bytes = p.asked.size() * sizeof(pollfd);
  return bytes == 0 || copy_out(p.to, p.asked.data(), bytes) ? ready : -EFAULT;
}

/// Looks without waiting: how many are ready, and then the kernel has been told which, or none.
long service::look(polled& p) {
  if (::poll(p.looked.data(), p.looked.size(), 0) < 0) return -errno;
  long ready = 0;
  for (std::size_t i = 0; i < p.asked.size(); ++i) {
    const bool refused = p.asked[i].fd >= 0 && p.looked[i].fd < 0;
    p.asked[i].revents = refused ? short{POLLNVAL} : p.looked[i].revents;
    ready += p.asked[i].revents != 0;
  }
  return ready == 0 ? 0 : tell(p, ready);
}

long service::call_poll(service_thread& t, const request& q, const linux_call& info) {
  const std::uint64_t* a = q.call.argument;
  std::optional<clock::time_point> until;
  bool waits = true;
  if (info.number != SYS_ppoll) {
    const auto ms = static_cast<std::int32_t>(a[2]);
    waits = ms != 0;
    if (ms > 0) until = clock::now() + std::chrono::milliseconds(ms);
  } else if (a[2] != 0) {
    timespec limit{};
    if (!copy_in(&limit, a[2], sizeof limit)) return -EFAULT;
    if (!is_time(limit)) return -EINVAL;
    waits = span_of(limit).count() != 0;
    until = clock::now() + span_of(limit);
  }
  auto p = std::make_unique<polled>(reactor_);
  const auto count = static_cast<std::size_t>(a[1]);
  p->to = a[0];
  p->asked.resize(count);
  if (count != 0 && !copy_in(p->asked.data(), a[0], count * sizeof(pollfd))) return -EFAULT;
  p->looked = p->asked;
  for (pollfd& one : p->looked) {
    if (one.fd < 0) continue;
    if (auto use = descriptors_.acquire(one.fd))
      p->uses.push_back(std::move(*use));
    else
      one.fd = -1;
  }
  const long ready = look(*p);
  if (ready != 0) return ready;
  if (!waits) return tell(*p, 0);
  waiting_call& w = begin_waiting(t, q, info, {});
  w.polls = std::move(p);
  return waits_or(w, wait_for_any(w, until));
}

/// Hands a poll to the reactor. 0, or why it cannot wait.
long service::wait_for_any(waiting_call& w, std::optional<clock::time_point> until) {
  w.resume = [](waiter& self, wake why) {
    auto& c = static_cast<waiting_call&>(self);
    polled& p = *c.polls;
    long result = why == wake::stopped ? -ESHUTDOWN : 0;
    if (why == wake::closed && p.all < 0)  // the only one there is
      for (pollfd& one : p.looked) one.fd = -1;
    if (result == 0) result = c.owner->look(p);
    if (result == 0 && why == wake::ready) return false;
    c.owner->end_waiting(c, result == 0 ? c.owner->tell(p, 0) : result);
    return true;
  };
  polled& p = *w.polls;
  const auto is_one = [](const pollfd& one) { return one.fd >= 0; };
  const auto many = std::count_if(p.looked.begin(), p.looked.end(), is_one);
  if (many == 0) return reactor_.wait(w, -1, 0, until);
  int fd = 0;
  short events = POLLIN;
  if (many == 1) {
    const pollfd& one = *std::find_if(p.looked.begin(), p.looked.end(), is_one);
    fd = one.fd;
    // Not only what reads and writes wait for: those are resumed one by one.
    events = static_cast<short>(one.events | POLLERR | POLLHUP);
  } else {
    p.all = epoll_of(p.looked);
    if (p.all < 0) return p.all;
    fd = p.all;
  }
  std::optional<descriptors::use> held;  // while it is, the number is this file's
  if (many == 1) {
    held = descriptors_.acquire(fd);
    if (!held) {
      for (pollfd& one : p.looked) one.fd = -1;
      return look(p);
    }
  }
  const long refused = reactor_.wait(w, fd, events, until);
  if (refused == -EPERM)
    return reactor_.wait(w, -1, 0, until);  // a file, which never is ready for this
  if (refused == 0 && many == 1 && descriptors_.is_closing(fd)) reactor_.close(fd);
  return refused;
}

/// A sleep: a reply that comes when its time has come, or at the end.
long service::sleep_until(service_thread& t, const request& q, const linux_call& info,
                          std::optional<clock::time_point> until) {
  waiting_call& w = begin_waiting(t, q, info, {});
  w.resume = [](waiter& self, wake why) {
    auto& c = static_cast<waiting_call&>(self);
    c.owner->end_waiting(c, why == wake::timed_out ? 0 : -ESHUTDOWN);
    return true;
  };
  return waits_or(w, reactor_.wait(w, -1, 0, until));
}

/// select() of no descriptors sleeps.
long service::call_select(service_thread& t, const request& q, const linux_call& info) {
  const std::uint64_t at = q.call.argument[4];
  if (at == 0) return sleep_until(t, q, info, {});
  timespec span{};
  if (!copy_in(&span, at, sizeof span)) return -EFAULT;
  if (info.number != SYS_pselect6) {
    if (span.tv_sec < 0 || span.tv_nsec < 0) return -EINVAL;
    span.tv_sec +=
        std::min(span.tv_nsec / 1'000'000, std::numeric_limits<long>::max() - span.tv_sec);
    span.tv_nsec = span.tv_nsec % 1'000'000 * 1000;
  }
  if (!is_time(span)) return -EINVAL;
  if (span_of(span).count() == 0) return 0;
  return sleep_until(t, q, info, clock::now() + span_of(span));
}

long service::call_sleep(service_thread& t, const request& q, const linux_call& info) {
  const std::uint64_t* a = q.call.argument;
  const bool names_clock = info.number == SYS_clock_nanosleep;
  timespec given{};
  if (!copy_in(&given, a[names_clock ? 2 : 0], sizeof given)) return -EFAULT;
  if (!is_time(given)) return -EINVAL;
  auto span = span_of(given);
  if (names_clock) {
    const auto id = static_cast<clockid_t>(a[0]);
    // Those that stand while the program does nothing would hold a thread for ever.
    if (id != CLOCK_REALTIME && id != CLOCK_MONOTONIC && id != CLOCK_BOOTTIME && id != CLOCK_TAI)
      return -EOPNOTSUPP;
    timespec now{};
    if ((a[1] & TIMER_ABSTIME) != 0) {
      if (::clock_gettime(id, &now) != 0) return -errno;
      span -= span_of(now);
    }
  }
  if (span.count() <= 0) return 0;
  return sleep_until(t, q, info, clock::now() + span);
}

}  // namespace grosr::sys
