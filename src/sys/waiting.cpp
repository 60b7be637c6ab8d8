// Calls that may wait: tried at once; those that would wait do so in the reactor, or on a thread.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "sys/linux_result.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

long errno_or(long result) { return result < 0 ? -errno : result; }

bool is_ready(int fd, short events) {
  pollfd p{fd, events, 0};
  return ::poll(&p, 1, 0) != 0;  // an error is the call's to find
}

/// What the call waits for; 0: for something that is no descriptor.
short events_of(long number) {
  switch (number) {
    case SYS_read:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept4:
#ifdef SYS_accept
    case SYS_accept:
#endif
      return POLLIN;
    case SYS_write:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_connect:
      return POLLOUT;
    default:
      return 0;
  }
}

}  // namespace

/// Makes the call without waiting: its result, or `parked`: it would wait.
long service::attempt(request& q, const linux_call& info, std::uint64_t& progress,
                      bool& connecting) {
  std::uint64_t* a = q.call.argument;
  const int fd = static_cast<int>(a[0]);
  const bool waits = descriptors_.waits(fd);
  long result = 0;
  switch (info.number) {
    case SYS_read:
    case SYS_write:
      if (!waits && !is_ready(fd, events_of(info.number))) {
        // The program's own descriptor: whether to wait is its flag's business.
        return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 ? -EAGAIN : parked;
      }
      result = linux_result(info.number, a);
      break;
    case SYS_recvfrom:
    case SYS_sendto: {
      const bool asked = (a[3] & MSG_DONTWAIT) != 0;
      const unsigned more = info.number == SYS_sendto ? MSG_DONTWAIT | MSG_NOSIGNAL : MSG_DONTWAIT;
      const std::uint64_t made[] = {a[0], a[1], a[2], a[3] | more, a[4], a[5]};
      result = linux_result(info.number, made);
      if (asked) return result;
      if (!waits && (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) return result;
      if (result == -EAGAIN) return parked;
      break;
    }
    case SYS_accept4:
#ifdef SYS_accept
    case SYS_accept:
#endif
    {
      if (!waits && !is_ready(fd, POLLIN))
        return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 ? -EAGAIN : parked;
      const int flags = info.number == SYS_accept4 ? static_cast<int>(a[3]) : 0;
      result = errno_or(::accept4(fd, reinterpret_cast<sockaddr*>(a[1]),
                                  reinterpret_cast<socklen_t*>(a[2]),
                                  flags | SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (result >= 0) return opened(result, (flags & SOCK_NONBLOCK) == 0);
      break;
    }
    case SYS_connect:
      if (connecting) {
        int problem = 0;
        socklen_t bytes = sizeof problem;
        if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &bytes) < 0) return -errno;
        return -problem;
      }
      result = errno_or(
          ::connect(fd, reinterpret_cast<const sockaddr*>(a[1]), static_cast<socklen_t>(a[2])));
      if (result == -EINPROGRESS && waits) {
        connecting = true;
        return parked;
      }
      return result;
    default:
      return parked;
  }
  if (result == -EAGAIN && waits) return parked;
  // Who waits for all of it to be sent has part of it sent.
  const bool sends = info.number == SYS_sendto || info.number == SYS_write;
  if (sends && waits && result >= 0 && static_cast<std::uint64_t>(result) < a[2]) {
    progress += static_cast<std::uint64_t>(result);
    a[1] += static_cast<std::uint64_t>(result);
    a[2] -= static_cast<std::uint64_t>(result);
    return parked;
  }
  if (progress != 0) return static_cast<long>(progress) + (result > 0 ? result : 0);
  return result;
}

long service::call_waiting(service_thread& t, const request& q, const linux_call& info) {
  const std::uint64_t* a = q.call.argument;
  if (info.number == SYS_socket) {
    const auto type = static_cast<int>(a[1]);
    return opened(errno_or(::socket(static_cast<int>(a[0]), type | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                    static_cast<int>(a[2]))),
                  (type & SOCK_NONBLOCK) == 0);
  }
  request tried = q;
  std::uint64_t progress = 0;
  bool connecting = false;
  if (info.waits == waiting::peer) {
    const long result = attempt(tried, info, progress, connecting);
    if (result != parked) return result;
  }
  // It is held otherwise from now on.
  descriptors::use file;
  if (info.arguments[0].kind == argument_kind::descriptor && static_cast<int>(a[0]) != -1) {
    auto use = descriptors_.acquire(static_cast<int>(a[0]));
    if (!use) return -EBADF;
    file = std::move(*use);
  }
  // The reply's slot is the call's own until it is replied to.
  auto* place = waiting_.get() + std::size_t{q.call.slot} * sizeof(waiting_call);
  auto& w = *::new (place) waiting_call(*this, tried, info, std::move(file));
  w.progress = progress;
  w.connecting = connecting;
  count(t.counts.waited);
  under_way(q).fetch_add(1, std::memory_order_acq_rel);
  const long refused = wait_for_peer(w);
  if (refused == 0) return parked;
  w.~waiting_call();
  under_way(q).fetch_sub(1, std::memory_order_acq_rel);
  return refused;
}

/// Hands a call to the reactor, or to a thread if it waits for no descriptor. 0, or why it cannot
/// wait.
long service::wait_for_peer(waiting_call& w) {
  const short events = w.info->waits == waiting::peer ? events_of(w.info->number) : short{0};
  if (events != 0) {
    w.resume = [](waiter& self, wake why) {
      auto& c = static_cast<waiting_call&>(self);
      long result = why == wake::stopped ? -ESHUTDOWN : -EBADF;
      if (why == wake::ready) {
        result = c.owner->attempt(c.made, *c.info, c.progress, c.connecting);
        if (result == parked) return false;
      } else if (c.progress != 0) {
        result = static_cast<long>(c.progress);
      }
      c.owner->end_waiting(c, result);
      return true;
    };
    const long refused = reactor_.wait(w, static_cast<int>(w.made.call.argument[0]), events);
    if (refused != -EPERM) return refused;
  }
  w.act = [](job& self, turn how) {
    auto& c = static_cast<waiting_call&>(self);
    c.owner->end_waiting(
        c, how == turn::stopped ? -ESHUTDOWN : c.owner->call_plain(*c.info, c.made.call));
  };
  return workers_.submit(w);
}

void service::end_waiting(waiting_call& w, long result) {
  const request q = w.made;
  w.~waiting_call();
  {
    std::lock_guard lock(waiting_lock_);
    waiting_counts_.add(q.call.number, 1, result < 0 ? 1 : 0,
                        result > 0 ? static_cast<std::uint64_t>(result) : 0, 0);
  }
  reply(q, result);
  under_way(q).fetch_sub(1, std::memory_order_acq_rel);
}

std::atomic<std::int64_t>& service::under_way(const request& q) {
  return (q.thread < threads_.size() ? *threads_[q.thread] : *rung_).under_way[q.epoch];
}

long service::close(int fd) {
  return descriptors_.close(fd, [&] {
    reactor_.close(fd);
    if (folders_) folders_->forget(fd);
  });
}

}  // namespace grosr::sys
