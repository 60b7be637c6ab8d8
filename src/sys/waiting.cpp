// Calls that may wait: tried at once; those that would wait do so in the reactor, or on a thread.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <new>

#include "sys/linux_result.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

long errno_or(long result) { return result < 0 ? -errno : result; }

/// How long a call on a socket may wait; none: as long as it takes.
std::optional<reactor::clock::time_point> time_limit(int fd, short events) {
  timeval limit{};
  socklen_t bytes = sizeof limit;
  if (::getsockopt(fd, SOL_SOCKET, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &bytes) <
          0 ||
      (limit.tv_sec == 0 && limit.tv_usec == 0))
    return {};
  return reactor::clock::now() +
         std::chrono::seconds(std::min<std::int64_t>(limit.tv_sec, 1 << 30)) +
         std::chrono::microseconds(limit.tv_usec);
}

bool is_ready(int fd, short events) {
  pollfd p{fd, events, 0};
  return ::poll(&p, 1, 0) != 0;  // an error is the call's to find
}

/// Whether calls on it block, whoever opened it.
bool blocks(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

/// Whether it is a FIFO that nobody has opened for writing yet: its end is not there, but to come.
bool lacks_writer(int fd) {
  struct stat s {};
  if (::fstat(fd, &s) != 0 || !S_ISFIFO(s.st_mode)) return false;
  return !is_ready(fd, POLLIN);  // one whose writers have gone is
}

/// Why nobody will ever be accepted there; 0: somebody may come.
long cannot_accept(int fd) {
  int listens = 0, type = 0;
  socklen_t bytes = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) < 0) return -errno;
  if (listens != 0) return 0;
  bytes = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) < 0) return -errno;
  return type == SOCK_STREAM || type == SOCK_SEQPACKET ? -EINVAL : -EOPNOTSUPP;
}

/// read or write of a descriptor that blocks: -EAGAIN where it would wait.
long without_waiting(long number, const std::uint64_t* a, std::mutex& one_at_a_time) {
  iovec part{reinterpret_cast<void*>(a[1]), a[2]};
  constexpr std::uint64_t here = ~std::uint64_t{0};  // where the descriptor stands
  const std::uint64_t made[] = {a[0],      reinterpret_cast<std::uint64_t>(&part), 1, here, here,
                                RWF_NOWAIT};
  const long result = linux_result(number == SYS_read ? SYS_preadv2 : SYS_pwritev2, made);
  if (result != -EOPNOTSUPP && result != -ENOSYS) return result;
  // A terminal, or an old Linux: who is ready takes as much as this, unless somebody else was
  // first.
  const std::lock_guard guard(one_at_a_time);
  if (!is_ready(static_cast<int>(a[0]), number == SYS_read ? POLLIN : POLLOUT)) return -EAGAIN;
  const std::uint64_t some[] = {
      a[0], a[1], number == SYS_read ? a[2] : std::min<std::uint64_t>(a[2], PIPE_BUF), 0, 0, 0};
  return linux_result(number, some);
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

/// Brings the name of a peer to where argument `name` says, and its length. 0, or -EFAULT, -EINVAL.
long service::give_name(const request& q, unsigned name, const void* from, std::uint32_t bytes) {
  const std::uint64_t* a = q.call.argument;
  if (a[name] == 0) return 0;
  std::int32_t room = 0;
  if (!copy_in(&room, a[name + 1], sizeof room)) return -EFAULT;
  if (room < 0) return -EINVAL;
  const auto most = std::min({static_cast<std::uint32_t>(room), bytes, name_bytes});
  if (most != 0 && !copy_out(a[name], from, most)) return -EFAULT;
  return copy_out(a[name + 1], &bytes, sizeof bytes) ? 0 : -EFAULT;
}

/// Makes the call without waiting: its result, or `parked`: it would wait.
long service::attempt(request& q, const linux_call& info, std::uint64_t& progress,
                      bool& connecting) {
  std::uint64_t* a = q.call.argument;
  const int fd = static_cast<int>(a[0]);
  const bool own = descriptors_.waits(fd);  // does not block, and the kernel thinks that it does
  const bool granted = !own && blocks(fd);
  const bool waits = own || granted;
  long result = 0;
  sockaddr_storage peer{};  // Linux names it here: a kernel's memory may be gone meanwhile
  static_assert(sizeof peer == name_bytes);
  socklen_t peer_bytes = sizeof peer;
  auto* const peer_at = reinterpret_cast<sockaddr*>(&peer);
  switch (info.number) {
    case SYS_read:
    case SYS_write:
      result =
          granted ? without_waiting(info.number, a, ready_lock_) : linux_result(info.number, a);
      if (result == 0 && waits && a[2] != 0 && info.number == SYS_read && lacks_writer(fd))
        return parked;
      break;
    case SYS_recvfrom:
    case SYS_sendto: {
      // A chunk goes to another call when this one has ended: Linux must not keep it.
      std::uint64_t flags = (a[3] & ~std::uint64_t{MSG_ZEROCOPY}) | MSG_DONTWAIT;
      if (info.number == SYS_recvfrom) {
        // MSG_TRUNC would have a stream throw bytes away, and say that it brought them.
        if ((flags & MSG_TRUNC) != 0 && descriptors_.is_stream(fd))
          flags &= ~std::uint64_t{MSG_TRUNC};
        const std::uint64_t made[] = {a[0],
                                      a[1],
                                      a[2],
                                      flags,
                                      a[4] != 0 ? reinterpret_cast<std::uint64_t>(peer_at) : 0,
                                      a[4] != 0 ? reinterpret_cast<std::uint64_t>(&peer_bytes) : 0};
        result = linux_result(info.number, made);
        if (result >= 0)
          if (const long bad = give_name(q, 4, peer_at, peer_bytes)) return bad;
      } else {
        std::uint64_t name = a[4];
        if (name != 0 && !options_.policy.raw) {
          if (const long bad = copy_name(peer, name, a[5])) return bad;
          name = reinterpret_cast<std::uint64_t>(&peer);
        }
        const std::uint64_t made[] = {a[0], a[1], a[2], flags | MSG_NOSIGNAL, name, a[5]};
        result = linux_result(info.number, made);
      }
      if ((a[3] & MSG_DONTWAIT) != 0) return result;
      break;
    }
    case SYS_sendmsg:
    case SYS_recvmsg: {
      const bool sends = info.number == SYS_sendmsg;
      const std::uint64_t made[] = {
          a[0], a[1], a[2] | MSG_DONTWAIT | (sends ? std::uint64_t{MSG_NOSIGNAL} : 0), 0, 0, 0};
      result = linux_result(info.number, made);
      if ((a[2] & MSG_DONTWAIT) != 0) return result;
      break;
    }
    case SYS_accept4:
#ifdef SYS_accept
    case SYS_accept:
#endif
    {
      const int flags = info.number == SYS_accept4 ? static_cast<int>(a[3]) : 0;
      auto room = descriptors_.make_room();
      if (!room) return -EMFILE;
      {
        // There is no accept that does not wait where the socket does: one of this server at a
        // time.
        std::unique_lock guard(ready_lock_, std::defer_lock);
        if (granted) {
          if (const long bad = cannot_accept(fd)) return bad;
          guard.lock();
          if (!is_ready(fd, POLLIN)) return parked;
        }
        result =
            errno_or(::accept4(fd, peer_at, &peer_bytes, flags | SOCK_NONBLOCK | SOCK_CLOEXEC));
      }
      if (result >= 0) {
        if (const long bad = give_name(q, 1, peer_at, peer_bytes)) {
          ::close(static_cast<int>(result));
          return bad;
        }
      }
      if (result >= 0) return opened(room, result, (flags & SOCK_NONBLOCK) == 0);
      break;
    }
    case SYS_connect:
      if (connecting) {
        int problem = 0;
        socklen_t bytes = sizeof problem;
        if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &bytes) < 0) return -errno;
        return -problem;
      }
      result = call_plain(info, q.call);
      if (result == -EINPROGRESS && waits) {
        connecting = true;
        return parked;
      }
      return result;
    default:
      return parked;
  }
  if (result == -EAGAIN && waits) return parked;
  // A caller that waits for all of it to be sent has part of it sent.
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
    auto room = descriptors_.make_room();
    if (!room) return -EMFILE;
    return opened(room,
                  errno_or(::socket(static_cast<int>(a[0]), type | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                    static_cast<int>(a[2]))),
                  (type & SOCK_NONBLOCK) == 0);
  }
  if (info.waits == waiting::other) return call_other(t, q, info);
  request tried = q;
  std::uint64_t progress = 0;
  bool connecting = false;
  const bool connects = info.number == SYS_connect && !descriptors_.waits(static_cast<int>(a[0])) &&
                        blocks(static_cast<int>(a[0]));
  if (!connects) {
    const long result = attempt(tried, info, progress, connecting);
    if (result != parked) return result;
  }
  // They are held otherwise from now on: as many as check() held.
  std::array<descriptors::use, descriptors::at_a_time> files;
  unsigned held = 0;
  for (unsigned i = 0; i < info.count; ++i) {
    const int fd = static_cast<int>(a[i]);
    if (info.arguments[i].kind != argument_kind::descriptor || fd == -1) continue;
    auto use = descriptors_.acquire(fd);
    if (!use) return -EBADF;
    files[held++] = std::move(*use);
  }
  waiting_call& w = begin_waiting(t, tried, info, std::move(files[0]));
  w.other_file = std::move(files[1]);
  w.progress = progress;
  w.connecting = connecting;
  return waits_or(w, connects ? wait_on_thread(w) : wait_for_peer(w));
}

/// A call that is to wait. The reply's slot is the call's own until it is replied to.
service::waiting_call& service::begin_waiting(service_thread& t, const request& q,
                                              const linux_call& info, descriptors::use file) {
  auto* place = waiting_.get() + std::size_t{q.call.slot} * sizeof(waiting_call);
  auto& w = *::new (place) waiting_call(*this, q, &info, std::move(file));
  w.memory.swap(t.memory);
  count(t.counts.waited);
  under_way(q).fetch_add(1, std::memory_order_acq_rel);
  return w;
}

/// The result of a call that was to wait: it does, and may have ended by now, or was `refused`.
long service::waits_or(waiting_call& w, long refused) {
  if (refused == 0) return parked;
  const request q = w.made;
  w.~waiting_call();
  under_way(q).fetch_sub(1, std::memory_order_acq_rel);
  return refused;
}

/// Hands a call to the reactor, or to a thread if the reactor cannot watch for it. 0, or why it
/// cannot wait.
long service::wait_for_peer(waiting_call& w) {
  if (const short events = events_of(w.info->number); events != 0) {
    w.resume = [](waiter& self, wake why) {
      auto& c = static_cast<waiting_call&>(self);
      long result = parked;
      if (why == wake::ready || (why == wake::timed_out && !c.connecting))
        result = c.owner->attempt(c.made, *c.info, c.progress, c.connecting);
      if (result == parked) {
        if (why == wake::ready) return false;
        result = why == wake::stopped  ? -ESHUTDOWN
                 : why == wake::closed ? -EBADF
                 : c.connecting        ? -EINPROGRESS
                                       : -EAGAIN;
        if (c.progress != 0) result = static_cast<long>(c.progress);
      }
      c.owner->end_waiting(c, result);
      return true;
    };
    const int fd = static_cast<int>(w.made.call.argument[0]);
    // While this is held the number is this file's.
    auto held = descriptors_.acquire(fd);
    if (!held) return w.progress != 0 ? static_cast<long>(w.progress) : -EBADF;
    const long refused = reactor_.wait(w, fd, events, time_limit(fd, events));
    // A thread that began to close it before this waited has not seen it wait.
    if (refused == 0 && descriptors_.is_closing(fd)) reactor_.close(fd);
    if (refused != -EPERM) return refused;
  }
  return wait_on_thread(w);
}

void service::end_waiting(waiting_call& w, long result, std::uint64_t ns) {
  const request q = w.made;
  w.~waiting_call();
  {
    std::lock_guard lock(waiting_lock_);
    waiting_counts_.add(q.call.number, 1, result < 0 ? 1 : 0, bytes_moved(q.linux, result), ns);
  }
  if (options_.audit_to >= 0) note(nullptr, q.call, result);
  reply(q, result);
  under_way(q).fetch_sub(1, std::memory_order_acq_rel);
}

std::atomic<std::int64_t>& service::under_way(const request& q) {
  return (q.thread < threads_.size() ? *threads_[q.thread] : *doorbell_worker_).under_way[q.epoch];
}

long service::close(int fd) {
  return descriptors_.close(fd, [&] {
    reactor_.close(fd);
    workers_.ask_users_of(fd);
    if (folders_) folders_->forget(fd);
    memory_files_.drop(fd);
  });
}

}  // namespace grosr::sys
