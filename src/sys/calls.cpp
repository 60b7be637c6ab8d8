// One call, made at once.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <system_error>
#include <vector>

#include "sys/linux_result.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

bool makes_pair(long number) {
#ifdef SYS_pipe
  if (number == SYS_pipe) return true;
#endif
  return number == SYS_pipe2 || number == SYS_socketpair;
}

bool is_file_of_memory(long number) {
#ifdef SYS_memfd_secret
  if (number == SYS_memfd_secret) return true;
#endif
  return number == SYS_memfd_create;
}

/// Calls whose result is a descriptor that nobody had before. Those that the policy lets through
/// only when it is raw are among them.
bool makes_descriptor(const call_record& c) {
  switch (c.number) {
    case SYS_dup:
    case SYS_openat:
    case SYS_openat2:
    case SYS_open_by_handle_at:
    case SYS_memfd_create:
    case SYS_eventfd2:
    case SYS_timerfd_create:
    case SYS_epoll_create1:
    case SYS_inotify_init1:
    case SYS_fanotify_init:
    case SYS_userfaultfd:
    case SYS_perf_event_open:
    case SYS_io_uring_setup:
    case SYS_pidfd_open:
    case SYS_pidfd_getfd:
    case SYS_fsopen:
    case SYS_fspick:
    case SYS_fsmount:
    case SYS_open_tree:
    case SYS_mq_open:
#ifdef SYS_memfd_secret
    case SYS_memfd_secret:
#endif
#ifdef SYS_open
    case SYS_open:
    case SYS_creat:
    case SYS_inotify_init:
    case SYS_eventfd:
    case SYS_epoll_create:
#endif
      return true;
    case SYS_signalfd4:
      return static_cast<int>(c.argument[0]) == -1;
    case SYS_fcntl:
      return c.argument[1] == F_DUPFD || c.argument[1] == F_DUPFD_CLOEXEC;
    default:
      return false;
  }
}

/// Those of them whose descriptor is one for a file that others have.
bool shares_file(long number) {
  return number == SYS_dup || number == SYS_fcntl || number == SYS_pidfd_getfd;
}

/// Those of them that make something whose reads wait for an event.
bool makes_events(long number) {
#ifdef SYS_eventfd
  if (number == SYS_eventfd || number == SYS_inotify_init) return true;
#endif
  return number == SYS_eventfd2 || number == SYS_timerfd_create || number == SYS_inotify_init1 ||
         number == SYS_signalfd4;
}

/// Calls that open a file by its path.
bool opens(long number) {
#ifdef SYS_open
  if (number == SYS_open || number == SYS_creat) return true;
#endif
#ifdef SYS_openat2
  if (number == SYS_openat2) return true;
#endif
  return number == SYS_openat;
}

/// Calls that put a file in the place of a number of their choice.
bool puts_descriptor(long number) {
#ifdef SYS_dup2
  if (number == SYS_dup2) return true;
#endif
  return number == SYS_dup3;
}

/// Attributes of files by which those who run them get rights, or which only who has rights may
/// set.
bool gives_rights(std::string_view attribute) {
  return attribute.starts_with("security.") || attribute.starts_with("trusted.");
}

bool is_select(long number) {
#ifdef SYS_select
  if (number == SYS_select) return true;
#endif
  return number == SYS_pselect6;
}

}  // namespace

long service::make(service_thread& t, const request& q, bool& later) {
  const call_record& c = q.call;
  if (stopping_.load(std::memory_order_relaxed)) return -ESHUTDOWN;
  if (c.slot >= slots_) return -EFAULT;
  if (c.number < handler_base) {
    const long result = call_linux(t, q);
    later = result == parked;
    return result;
  }
  if (is_handler(c.number)) return call_handler(t, q, later);
  if (c.number == call_nothing) return 0;  // one that is awaited
  return c.number == call_print ? q.printed : -ENOSYS;
}

/// A path or another text as the host has it: no kernel can change it any more. Empty where it
/// cannot be had: all of it, its end included, lies where kernels may name memory.
long service::copy_text(std::uint64_t at, std::array<char, PATH_MAX>& path) {
  const auto arena = reinterpret_cast<std::uint64_t>(arena_.data());
  if (at >= arena && at - arena < arena_.bytes()) {
    const std::size_t most = std::min<std::uint64_t>(PATH_MAX, arena_.bytes() - (at - arena));
    const auto* from = reinterpret_cast<const char*>(at);
    path[0] = 0;
    const std::size_t n = ::strnlen(from, most);  // behind it lie other calls' bytes
    if (n == most) return -ENAMETOOLONG;
    std::memcpy(path.data(), from, n);
    path[n] = 0;
    return 0;
  }
  path[0] = 0;
  const std::size_t most = std::min<std::uint64_t>(PATH_MAX, bytes_from(at));
  const auto held = hold(at, most);
  if (most == 0 || !held) return -EFAULT;
  // Linux copies, page by page, and says where there is none.
  for (std::size_t n = 0; n < most;) {
    const std::size_t now = std::min<std::size_t>(most - n, 4096 - (at + n) % 4096);
    iovec to{path.data() + n, now}, from{reinterpret_cast<void*>(at + n), now};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) < 0) {
      path[0] = 0;
      return -EFAULT;
    }
    if (std::memchr(path.data() + n, 0, now) != nullptr) return 0;
    n += now;
  }
  path[0] = 0;
  return most == PATH_MAX ? -ENAMETOOLONG : -EFAULT;
}

/// What a call made, for which there was room.
long service::opened(std::optional<descriptors::room>& room, long fd, bool waits,
                     std::optional<int> open_flags) {
  if (fd < 0) return fd;
  const int made = static_cast<int>(fd);
  const long added = open_flags
                         ? descriptors_.add_opened(std::move(*room), made, *open_flags, waits)
                         : descriptors_.add(std::move(*room), made, waits);
  if (added < 0) {
    if (folders_) folders_->forget(made);
    memory_files_.drop(made);
    ::close(made);
  }
  return added;
}

/// Opens without waiting: a FIFO's other end may never come. Reads and writes of it wait as those
/// of sockets do.
long service::open_below(int directory, const char* path, int flags, std::uint64_t mode) {
  const int made = (flags & O_PATH) != 0 ? flags : flags | O_NONBLOCK;
  auto room = descriptors_.make_room();
  if (!room) return -EMFILE;
  return opened(room, folders_->openat(directory, path, made, static_cast<unsigned>(mode)),
                (flags & O_NONBLOCK) == 0, made);
}

/// Under a raw policy: opens without waiting as well, and brings the file as the kernel asked for
/// it.
long service::call_open(const call_record& c) {
  std::uint64_t a[max_arguments];
  std::copy_n(c.argument, max_arguments, a);
  long number = c.number;
  std::uint64_t* flags = &a[2];
#ifdef SYS_open
  if (number == SYS_open) flags = &a[1];
  if (number == SYS_creat) {  // which says no flags
    number = SYS_open;
    a[2] = a[1];
    a[1] = O_CREAT | O_WRONLY | O_TRUNC;
    flags = &a[1];
  }
#endif
  std::vector<std::uint64_t> how;
#ifdef SYS_openat2
  if (number == SYS_openat2) {
    constexpr std::uint64_t first = 24, most = 4096;  // Linux's own limits of the struct
    if (a[3] < first) return -EINVAL;
    if (a[3] > most) return -E2BIG;
    how.resize(static_cast<std::size_t>((a[3] + 7) / 8));
    if (!copy_in(how.data(), a[2], static_cast<std::size_t>(a[3]))) return -EFAULT;
    a[2] = reinterpret_cast<std::uint64_t>(how.data());
    flags = &how[0];
  }
#endif
  const std::uint64_t asked = *flags;
  const bool changes = (asked & (O_PATH | O_NONBLOCK)) == 0;
  if (changes) *flags |= O_NONBLOCK;
  std::optional<descriptors::room> room = descriptors_.make_room();
  if (!room) return -EMFILE;
  const long fd = linux_result(number, a);
  if (fd < 0) return fd;
  if (changes) ::fcntl(static_cast<int>(fd), F_SETFL, static_cast<int>(asked));
  return opened(room, fd, false, static_cast<int>(asked));
}

/// Calls that take a path: below the policy's folders, or not at all.
long service::call_path(service_thread& t, const call_record& c, const linux_call& info) {
  t.path[0][0] = t.path[1][0] = 0;
  if (options_.policy.raw) return opens(c.number) ? call_open(c) : call_plain(info, c);
  if (!folders_) return -EPERM;
  const std::uint64_t* a = c.argument;
  const auto number = [&](unsigned i) { return static_cast<int>(a[i]); };
  const auto text = [&](unsigned i) { return copy_text(a[i], t.path[0]); };
  const auto second = [&](unsigned i) { return copy_text(a[i], t.path[1]); };
  const char *const path = t.path[0].data(), *const other = t.path[1].data();
  const folders& f = *folders_;
  long bad = 0;
  switch (c.number) {
    case SYS_openat:
      return (bad = text(1)) ? bad : open_below(number(0), path, number(2), a[3]);
    case SYS_unlinkat:
      return (bad = text(1)) ? bad : f.unlinkat(number(0), path, number(2));
    case SYS_mkdirat:
      return (bad = text(1)) ? bad : f.mkdirat(number(0), path, static_cast<unsigned>(a[2]));
    case SYS_renameat2:
      if ((bad = text(1)) || (bad = second(3))) return bad;
      return f.renameat2(number(0), path, number(2), other, static_cast<unsigned>(a[4]));
    case SYS_newfstatat:
      if ((bad = text(1))) return bad;
      return f.newfstatat(number(0), path, reinterpret_cast<struct ::stat*>(a[2]), number(3));
    case SYS_faccessat:
      return (bad = text(1)) ? bad : f.faccessat(number(0), path, number(2), 0);
#ifdef SYS_faccessat2
    case SYS_faccessat2:
      return (bad = text(1)) ? bad : f.faccessat(number(0), path, number(2), number(3));
#endif
    case SYS_utimensat: {
      timespec times[2];
      if (a[2] != 0 && !copy_in(times, a[2], sizeof times)) return -EFAULT;
      if ((bad = text(1))) return bad;
      return f.utimensat(number(0), path, a[2] != 0 ? times : nullptr, number(3));
    }
    case SYS_readlinkat:
      if ((bad = text(1))) return bad;
      return f.readlinkat(number(0), path, reinterpret_cast<char*>(a[2]), a[3]);
    case SYS_symlinkat:
      if ((bad = second(0)) || (bad = text(2))) return bad;
      return f.symlinkat(other, number(1), path);
    case SYS_linkat:
      if ((bad = text(1)) || (bad = second(3))) return bad;
      return f.linkat(number(0), path, number(2), other, number(4));
    case SYS_fchmodat:
      return (bad = text(1)) ? bad : f.fchmodat(number(0), path, static_cast<unsigned>(a[2]));
    case SYS_truncate:
      return (bad = text(0)) ? bad : f.truncate(path, static_cast<off_t>(a[1]));
#ifdef SYS_open
    case SYS_open:
      return (bad = text(0)) ? bad : open_below(AT_FDCWD, path, number(1), a[2]);
    case SYS_creat:
      return (bad = text(0)) ? bad : open_below(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, a[1]);
    case SYS_unlink:
      return (bad = text(0)) ? bad : f.unlink(path);
    case SYS_rmdir:
      return (bad = text(0)) ? bad : f.rmdir(path);
    case SYS_mkdir:
      return (bad = text(0)) ? bad : f.mkdir(path, static_cast<unsigned>(a[1]));
    case SYS_rename:
      if ((bad = text(0)) || (bad = second(1))) return bad;
      return f.rename(path, other);
    case SYS_renameat:
      if ((bad = text(1)) || (bad = second(3))) return bad;
      return f.renameat2(number(0), path, number(2), other, 0);
    case SYS_symlink:
      if ((bad = second(0)) || (bad = text(1))) return bad;
      return f.symlink(other, path);
    case SYS_link:
      if ((bad = text(0)) || (bad = second(1))) return bad;
      return f.link(path, other);
    case SYS_readlink:
      return (bad = text(0)) ? bad : f.readlink(path, reinterpret_cast<char*>(a[1]), a[2]);
    case SYS_access:
      return (bad = text(0)) ? bad : f.access(path, number(1));
    case SYS_chmod:
      return (bad = text(0)) ? bad : f.chmod(path, static_cast<unsigned>(a[1]));
    case SYS_stat:
      return (bad = text(0)) ? bad : f.stat(path, reinterpret_cast<struct ::stat*>(a[1]));
    case SYS_lstat:
      return (bad = text(0)) ? bad : f.lstat(path, reinterpret_cast<struct ::stat*>(a[1]));
#endif
    default:
      return -EPERM;
  }
}

/// A call that fills as many bytes as there is room for, and says how many there are. It fills
/// memory of the server: what a kernel says meanwhile of its room does no harm.
long service::call_sized(const linux_call& info, const call_record& c, unsigned value) {
  const unsigned from = info.arguments[value].from;
  std::uint64_t a[max_arguments];
  std::copy_n(c.argument, max_arguments, a);
  unsigned char held[option_bytes];
  std::int32_t room = 0;
  if (!copy_in(&room, a[from], sizeof room)) return -EFAULT;
  if (room < 0) return -EINVAL;
  auto bytes = std::min(static_cast<std::uint32_t>(room), most_of_value(c.number));
  if (!copy_in(held, a[value], bytes)) return -EFAULT;  // some options say what is asked
  const std::uint32_t most = bytes;
  a[value] = reinterpret_cast<std::uint64_t>(held);
  a[from] = reinterpret_cast<std::uint64_t>(&bytes);
  const long result = linux_result(info.number, a);
  if (result < 0) return result;
  if (!copy_out(c.argument[value], held, std::min(most, bytes)) ||
      !copy_out(c.argument[from], &bytes, sizeof bytes))
    return -EFAULT;
  return result;
}

/// splice or tee: a pipe that is full or empty would hold the thread, and the end.
long service::call_splice(const call_record& c) {
  std::uint64_t a[max_arguments];
  std::copy_n(c.argument, max_arguments, a);
  a[c.number == SYS_splice ? 5 : 3] |= SPLICE_F_NONBLOCK;
  return linux_result(c.number, a);
}

/// A call that takes texts which are no paths: Linux reads copies of them.
long service::call_texts(const linux_call& info, const call_record& c, bool again) {
  std::array<std::array<char, PATH_MAX>, 3> texts;
  call_record copied = c;
  std::size_t next = 0;
  for (unsigned i = 0; i < info.count; ++i) {
    if (info.arguments[i].kind != argument_kind::text || c.argument[i] == 0) continue;
    if (next == texts.size()) return -EPERM;
    if (const long bad = copy_text(c.argument[i], texts[next])) return bad;
    const bool changes = c.number == SYS_fsetxattr || c.number == SYS_fremovexattr;
    if (changes && gives_rights(texts[next].data())) return -EPERM;
    copied.argument[i] = reinterpret_cast<std::uint64_t>(texts[next++].data());
  }
  return call_as_it_is(info, copied, again);
}

/// bind or connect, with a name that no kernel can change any more.
long service::call_named(const linux_call& info, const call_record& c) {
  sockaddr_storage name;
  if (const long bad = copy_name(name, c.argument[1], c.argument[2])) return bad;
  call_record copied = c;
  copied.argument[1] = reinterpret_cast<std::uint64_t>(&name);
  return call_as_it_is(info, copied, true);
}

/// `again`: makes the call again when Linux was interrupted.
long service::call_plain(const linux_call& info, const call_record& c, bool again) {
  if (c.number == SYS_munmap)
    return mapped_.unmap(c.argument[0], c.argument[1], options_.policy.raw);
  if (c.number == SYS_mmap) return call_mmap(c);
  if (is_for_one_thread(c)) return -ENOTRECOVERABLE;
  if (changes_identity(c.number)) return change_identity(c);
  if (c.number == SYS_splice || c.number == SYS_tee) return call_splice(c);
  if (c.number == SYS_open_by_handle_at) return call_open(c);
  if (!options_.policy.raw && (c.number == SYS_bind || c.number == SYS_connect))
    return call_named(info, c);
  if (!options_.policy.raw)
    for (unsigned i = 0; i < info.count; ++i) {
      const argument_kind kind = info.arguments[i].kind;
      if (c.argument[i] == 0) continue;
      if (kind == argument_kind::sized) return call_sized(info, c, i);
      if (kind == argument_kind::text) return call_texts(info, c, again);
    }
  return call_as_it_is(info, c, again);
}

long service::call_as_it_is(const linux_call& info, const call_record& c, bool again) {
  const std::uint64_t* a = c.argument;
  const bool makes = makes_descriptor(c);
  const bool puts = puts_descriptor(c.number) && !descriptors_.is_known(static_cast<int>(a[1]));
  std::optional<descriptors::room> room;
  if ((makes || puts) && !(room = descriptors_.make_room())) {
    // What Linux refuses anyway it says itself. Of what it makes nothing may be left: no queue, and
    // no lock of a file that ends when any of its descriptors is closed.
    if (!makes || shares_file(c.number) || c.number == SYS_mq_open) return -EMFILE;
    const long made = linux_result(info.number, a, again);
    if (made < 0) return made;
    ::close(static_cast<int>(made));
    return -EMFILE;
  }
  const bool makes_memory = is_file_of_memory(c.number);
  if (makes_memory && memory_bytes_.taken() >= memory_bytes_.most()) return -ENFILE;
  const long result = linux_result(info.number, a, again);
  if (result < 0) return result;
  const int fd = static_cast<int>(result);
  // Before kernels can use the descriptor.
  if (makes_memory) memory_files_.add(fd, std::make_shared<memory_file>(memory_bytes_));
  if ((makes && shares_file(c.number)) || puts_descriptor(c.number))
    memory_files_.share(static_cast<int>(a[0]), fd);
  if (makes) {
    bool waits = shares_file(c.number) && descriptors_.waits(static_cast<int>(a[0]));
    if (makes_events(c.number)) {
      // Never blocks on the host's side: who would wait does so in the reactor.
      const int flags = ::fcntl(fd, F_GETFL);
      waits = (flags & O_NONBLOCK) == 0;
      ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
    return opened(room, result, waits);
  }
  if (puts) return opened(room, result, descriptors_.waits(static_cast<int>(a[0])));
  if (puts_descriptor(c.number)) descriptors_.replaced(fd);
  return result;
}

/// A pipe or two sockets, which never block on the host's side: who would wait does so in the
/// reactor.
long service::call_pair(const call_record& c) {
  const std::uint64_t* const a = c.argument;
  const bool is_sockets = c.number == SYS_socketpair;
  const int flags = c.number == SYS_pipe2 ? static_cast<int>(a[1])
                    : is_sockets          ? static_cast<int>(a[1]) & (SOCK_NONBLOCK | SOCK_CLOEXEC)
                                          : 0;
  if (!is_sockets && (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT)) != 0) return -EINVAL;
  static_assert(SOCK_NONBLOCK == O_NONBLOCK && SOCK_CLOEXEC == O_CLOEXEC);
  auto room_one = descriptors_.make_room(), room_two = descriptors_.make_room();
  if (!room_one || !room_two) return -EMFILE;
  int ends[2];
  const int made = is_sockets ? ::socketpair(static_cast<int>(a[0]),
                                             static_cast<int>(a[1]) | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                             static_cast<int>(a[2]), ends)
                              : ::pipe2(ends, flags | O_CLOEXEC | O_NONBLOCK);
  if (made != 0) return -errno;
  const bool waits = (flags & O_NONBLOCK) == 0;
  const long first = opened(room_one, ends[0], waits), second = opened(room_two, ends[1], waits);
  const std::uint64_t to = a[is_sockets ? 3 : 0];
  const long result = first < 0                         ? first
                      : second < 0                      ? second
                      : copy_out(to, ends, sizeof ends) ? 0
                                                        : -EFAULT;
  if (result < 0 && first >= 0) close(ends[0]);
  if (result < 0 && second >= 0) close(ends[1]);
  return result;
}

long service::call_linux(service_thread& t, const request& q) {
  const call_record& c = q.call;
  const linux_call* const info = q.linux;
  if (info == nullptr) return -ENOSYS;
  if (info->useful == usefulness::not_useful) return -EOPNOTSUPP;
  if (info->useful == usefulness::not_today) return -ENOTRECOVERABLE;
  long result = -EPERM;
  if (c.number == SYS_close) {
    result = close(static_cast<int>(c.argument[0]));
  } else if (allows(*info, c)) {
    result = check(*info, c, t);
    if (result == 0) result = make_allowed(t, q, *info);
    descriptors_.end_short(t.number);
    t.memory.clear();
  }
  if (result == -EPERM) count(t.counts.denied);
  return result;
}

long service::make_allowed(service_thread& t, const request& q, const linux_call& info) {
  const call_record& c = q.call;
  if (info.has_path) return call_path(t, c, info);
  int fd = -1;
  if (const auto file = file_to_change(c, fd)) return call_on_memory(info, c, *file, fd);
  if (waits_for_disk(c)) return call_disk(t, q, info);
  if (is_poll(c.number)) return call_poll(t, q, info);
  if (makes_pair(c.number)) return call_pair(c);
  if (c.number == SYS_nanosleep || c.number == SYS_clock_nanosleep) return call_sleep(t, q, info);
  if (is_select(c.number) && c.argument[1] == 0 && c.argument[2] == 0 && c.argument[3] == 0)
    return call_select(t, q, info);
  const bool waits =
      info.waits == waiting::other || c.number == SYS_socket ||
      (info.waits == waiting::peer && !(info.arguments[0].kind == argument_kind::descriptor &&
                                        descriptors_.is_regular(static_cast<int>(c.argument[0]))));
  return waits ? call_waiting(t, q, info) : call_plain(info, c);
}

}  // namespace grosr::sys
