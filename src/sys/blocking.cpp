// Calls that wait for something that is no descriptor: another process, a wake-up, a lock. What can
// end another call's wait is made at once, on the service thread, and so is what need not wait now.
// Locks that somebody has are tried again by the reactor, which holds no thread; the rest waits on
// threads of the pool, where it can be interrupted.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "sys/linux_result.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

using kept_bytes = std::unique_ptr<unsigned char[]>;

constexpr std::chrono::microseconds longest_pause{20000};
constexpr std::uint64_t most_semaphores = 500;  // of one call: Linux's own limit, by default

bool is_semop(unsigned number) { return number == SYS_semop || number == SYS_semtimedop; }

/// Whether it takes a lock, and waits for it.
bool takes_lock(const call_record& c) {
  const std::uint64_t how = c.argument[1];
  if (c.number == SYS_flock) return (how & LOCK_NB) == 0 && (how & LOCK_UN) == 0;
  return c.number == SYS_fcntl && (how == F_SETLKW || how == F_OFD_SETLKW);
}

/// Whether a call of this kind may wait at all, whatever happens meanwhile.
bool may_wait(const call_record& c) {
  const std::uint64_t* const a = c.argument;
  switch (c.number) {
    case SYS_flock:
    case SYS_fcntl:
      return takes_lock(c);
    case SYS_futex: {
      const auto what = static_cast<int>(a[1]) & FUTEX_CMD_MASK;
      return what == FUTEX_WAIT || what == FUTEX_WAIT_BITSET;
    }
    case SYS_msgsnd:
      return (a[3] & IPC_NOWAIT) == 0;
    case SYS_msgrcv:
      return (a[4] & IPC_NOWAIT) == 0;
    case SYS_wait4:
      return (a[2] & WNOHANG) == 0;
    case SYS_waitid:
      return (a[3] & WNOHANG) == 0;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
      return a[3] != 0;
#ifdef SYS_io_uring_enter
    case SYS_io_uring_enter:
      return a[2] != 0;
#endif
    default:
      return true;
  }
}

/// The result of a call that may wait, if it need not wait, else `parked`. `kept`: its semaphores.
long without_waiting(const call_record& c, const kept_bytes& kept, long parked) {
  std::uint64_t a[max_arguments];
  std::copy_n(c.argument, max_arguments, a);
  if (c.number == SYS_msgsnd || c.number == SYS_msgrcv) {
    a[c.number == SYS_msgsnd ? 3 : 4] |= IPC_NOWAIT;
    const long result = linux_result(c.number, a);
    return result == (c.number == SYS_msgsnd ? -EAGAIN : -ENOMSG) ? parked : result;
  }
  if (!is_semop(c.number)) return parked;
  const auto count = static_cast<std::size_t>(a[2]);
  std::vector<sembuf> all(count);
  std::memcpy(all.data(), kept.get(), count * sizeof(sembuf));
  const bool waits = std::any_of(all.begin(), all.end(),
                                 [](const sembuf& s) { return (s.sem_flg & IPC_NOWAIT) == 0; });
  for (sembuf& s : all) s.sem_flg = static_cast<short>(s.sem_flg | IPC_NOWAIT);
  a[1] = reinterpret_cast<std::uint64_t>(all.data());
  const long result = linux_result(c.number, a);
  return result == -EAGAIN && waits ? parked : result;
}

/// Whether a call that was interrupted has to say so, and cannot be made again for its caller: the
/// time that it may take would begin anew, or a wake-up that came in between would be lost. Linux
/// says of all of these that they may end with -EINTR.
bool tells_interruption(unsigned number) {
  switch (number) {
    case SYS_futex:
#ifdef SYS_futex_waitv
    case SYS_futex_waitv:
#endif
#ifdef SYS_futex_wait
    case SYS_futex_wait:
#endif
    case SYS_semtimedop:
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_recvmmsg:
      return true;
    default:
      return false;
  }
}

/// What a call of a descriptor that does not block waits for, if its caller thinks that it does.
short thread_events_of(unsigned number) {
  switch (number) {
    case SYS_readv:
    case SYS_preadv2:
    case SYS_recvmmsg:
      return POLLIN;
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_vmsplice:
      return POLLOUT;
    default:
      return 0;
  }
}

}  // namespace

/// A call that waits for something else than a peer or the disk.
long service::call_other(service_thread& t, const request& q, const linux_call& info) {
  if (!may_wait(q.call)) return call_plain(info, q.call);
  request tried = q;
  std::uint64_t* const a = tried.call.argument;
  kept_bytes kept;
  // A later try uses the bytes that were there at first.
  const auto keep = [&](unsigned argument, std::size_t bytes) {
    kept = std::make_unique<unsigned char[]>(std::max<std::size_t>(bytes, 1));
    if (!copy_in(kept.get(), a[argument], bytes)) return false;
    a[argument] = reinterpret_cast<std::uint64_t>(kept.get());
    return true;
  };
  if (q.call.number == SYS_fcntl && !keep(2, sizeof(struct ::flock))) return -EFAULT;
  if (is_semop(q.call.number)) {
    if (a[2] == 0) return -EINVAL;
    if (a[2] > most_semaphores) return -E2BIG;
    if (!keep(1, static_cast<std::size_t>(a[2]) * sizeof(sembuf))) return -EFAULT;
  }
  const bool locks = takes_lock(tried.call);
  const long result = locks ? try_lock(tried.call) : without_waiting(tried.call, kept, parked);
  if (result != parked) return result;
  descriptors::use file;
  if (info.arguments[0].kind == argument_kind::descriptor && static_cast<int>(a[0]) != -1) {
    auto use = descriptors_.acquire(static_cast<int>(a[0]));
    if (!use) return -EBADF;
    file = std::move(*use);
  }
  waiting_call& w = begin_waiting(t, tried, info, std::move(file));
  w.kept = std::move(kept);
  return waits_or(w, locks ? wait_for_lock(w) : wait_on_thread(w));
}

/// Takes the lock, or `parked`: somebody has it.
long service::try_lock(const call_record& c) {
  std::uint64_t a[max_arguments];
  std::copy_n(c.argument, max_arguments, a);
  if (c.number == SYS_flock)
    a[1] |= LOCK_NB;
  else
    a[1] = a[1] == F_SETLKW ? F_SETLK : F_OFD_SETLK;
  const long result = linux_result(c.number, a);
  const bool is_taken =
      result == -EWOULDBLOCK || (c.number != SYS_flock && (result == -EAGAIN || result == -EACCES));
  return is_taken ? parked : result;
}

/// Tries again and again: who has the lock may never give it back, and may be no kernel.
long service::wait_for_lock(waiting_call& w) {
  w.resume = [](waiter& self, wake why) {
    auto& c = static_cast<waiting_call&>(self);
    service& s = *c.owner;
    long result = -ESHUTDOWN;
    if (why != wake::stopped) {
      const bool closing = s.descriptors_.is_closing(static_cast<int>(c.made.call.argument[0]));
      result = closing ? -EBADF : s.try_lock(c.made.call);
      if (result == parked && (result = s.wait_for_lock(c)) == 0) return true;
    }
    s.end_waiting(c, result);
    return true;
  };
  const auto until = reactor::clock::now() + w.pause;
  w.pause = std::min(2 * w.pause, longest_pause);
  return reactor_.wait(w, -1, 0, until);
}

/// Hands a call to a thread of the pool. 0, or why it cannot wait.
long service::wait_on_thread(waiting_call& w) {
  w.interruptible = true;
  const bool has_file = w.info->arguments[0].kind == argument_kind::descriptor;
  w.descriptor = has_file ? static_cast<int>(w.made.call.argument[0]) : -1;
  w.act = [](job& self, turn how) {
    auto& c = static_cast<waiting_call&>(self);
    const long result = how == turn::stopped ? -ESHUTDOWN : c.owner->make_interruptibly(c);
    if (result != parked) c.owner->end_waiting(c, result);
  };
  return workers_.submit(w);
}

/// On a thread of the pool: makes the call until it has a result, or somebody wants it to end.
/// `parked`: it has made way for another one and will have another turn.
long service::make_interruptibly(waiting_call& w) {
  const call_record& c = w.made.call;
  const bool thinks_it_blocks = w.descriptor >= 0 && descriptors_.waits(w.descriptor);
  const short events = thinks_it_blocks ? thread_events_of(c.number) : short{0};
  for (;;) {
    if (stopping_.load()) return -ESHUTDOWN;
    if (w.descriptor >= 0 && descriptors_.is_closing(w.descriptor)) return -EBADF;
    long result = call_plain(*w.info, c, false);
    if (result == -EAGAIN && events != 0) {
      pollfd p{w.descriptor, events, 0};
      if (::poll(&p, 1, -1) >= 0) continue;
      result = -errno;
    }
    if (result != -EINTR) return result;
    const bool makes_way = workers::is_asked();
    if (stopping_.load() || (w.descriptor >= 0 && descriptors_.is_closing(w.descriptor))) continue;
    if (tells_interruption(c.number)) return -EINTR;
    if (makes_way && workers_.submit(w) == 0) return parked;
  }
}

}  // namespace grosr::sys
