// One call, made at once: what the policy says, whether its arguments may be used, making it.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "sys/linux_result.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

/// Calls that would get around the policy: only a raw one allows them.
bool goes_around(long number) {
  switch (number) {
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup3:
    case SYS_close_range:
    case SYS_open_by_handle_at:
    case SYS_io_uring_setup:
    case SYS_io_uring_enter:
    case SYS_io_uring_register:
    case SYS_brk:
    case SYS_mremap:
    case SYS_remap_file_pages:
    case SYS_process_madvise:
    case SYS_ioctl:
    case SYS_fcntl:
    // Of the whole process, or of the machine, whoever made it.
    case SYS_shmget:
    case SYS_shmat:
    case SYS_shmctl:
    case SYS_shmdt:
    case SYS_mlockall:
    case SYS_munlockall:
    case SYS_migrate_pages:
    case SYS_move_pages:
    case SYS_pkey_alloc:
    case SYS_pkey_free:
#ifdef SYS_mseal
    case SYS_mseal:
#endif
    case SYS_io_setup:
    case SYS_io_destroy:
    case SYS_io_submit:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_cancel:
    case SYS_fanotify_init:  // its events open files
      return true;
    default:
      return false;
  }
}

/// Options whose value holds pointers or descriptors, or has the host make a descriptor.
bool is_option_of_host(int level, int option) {
  constexpr int attach_cbpf = 51, attach_ebpf = 52, peer_pidfd = 77, zerocopy_receive = 35;
  if (level == SOL_SOCKET)
    return option == SO_ATTACH_FILTER || option == SO_ATTACH_BPF || option == attach_cbpf ||
           option == attach_ebpf || option == peer_pidfd;
  // Those of packet filters.
  if (level == IPPROTO_IP) return option >= 64;
  if (level == IPPROTO_IPV6) return option == 64 || option == 65 || option == 68 || option == 69;
  return level == IPPROTO_TCP && option == zerocopy_receive;
}

bool is_socket_for_kernels(std::uint64_t domain, std::uint64_t type) {
  const auto family = static_cast<int>(domain);
  const int kind = static_cast<int>(type) & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  return (family == AF_INET || family == AF_INET6) && kind != SOCK_RAW && kind != SOCK_PACKET;
}

std::uint32_t most_of_value(long number) {
  return number == SYS_getsockopt ? option_bytes : name_bytes;
}

bool is_pipe(long number) {
#ifdef SYS_pipe
  if (number == SYS_pipe) return true;
#endif
  return number == SYS_pipe2;
}

bool is_select(long number) {
#ifdef SYS_select
  if (number == SYS_select) return true;
#endif
  return number == SYS_pselect6;
}

bool is_memory_of_host(long number) {
  return number == SYS_munmap || number == SYS_madvise || number == SYS_mprotect ||
         number == SYS_msync || number == SYS_mincore || number == SYS_mlock ||
         number == SYS_munlock || number == SYS_mlock2 || number == SYS_pkey_mprotect ||
#ifdef SYS_set_mempolicy_home_node
         number == SYS_set_mempolicy_home_node ||
#endif
         number == SYS_mbind;
}

/// Calls that change what a file is by a descriptor, however that was opened.
bool changes_file(long number) {
  return number == SYS_fchmod || number == SYS_fchown || number == SYS_fsetxattr ||
         number == SYS_fremovexattr;
}

bool is_open_for_writing(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

long service::make(service_thread& t, const request& q) {
  const call_record& c = q.call;
  if (stopping_.load(std::memory_order_relaxed)) return -ESHUTDOWN;
  if (c.slot >= slots_) return -EFAULT;
  if (c.number < handler_base) return call_linux(t, q);
  if (c.number < own_base) return call_handler(t, c);
  return c.number == call_print ? 0 : -ENOSYS;
}

void service::install(call_number number, handler_function handler) {
  std::unique_lock lock(shared_lock_);
  if (handlers_.size() <= number) handlers_.resize(number + 1u);
  handlers_[number] = std::make_shared<handler_function>(std::move(handler));
}

long service::call_handler(service_thread& t, const call_record& c) {
  std::shared_ptr<handler_function> handler;
  {
    std::shared_lock lock(shared_lock_);
    const unsigned number = c.number - handler_base;
    if (number < handlers_.size()) handler = handlers_[number];
  }
  if (!handler) return -ENOSYS;
  try {
    return (*handler)(c.argument);
  } catch (const std::system_error& e) {
    count(t.counts.thrown);
    const auto& kind = e.code().category();
    const bool is_errno = kind == std::generic_category() || kind == std::system_category();
    return is_errno && e.code().value() > 0 ? -e.code().value() : -EIO;
  } catch (...) {
    count(t.counts.thrown);
    return -EIO;
  }
}

bool service::allows(const linux_call& info, const call_record& c) const {
  const sys::policy& p = options_.policy;
  if (p.raw) return true;
  if (goes_around(c.number)) return false;
  switch (info.in) {
    case group::files:
    case group::time:
    case group::identity:
      return true;
    case group::network:
      if (!p.network) return false;
      if (c.number == SYS_socket || c.number == SYS_socketpair)
        return is_socket_for_kernels(c.argument[0], c.argument[1]);
      if (c.number == SYS_setsockopt || c.number == SYS_getsockopt)
        return !is_option_of_host(static_cast<int>(c.argument[1]), static_cast<int>(c.argument[2]));
      return true;
    case group::memory:
      if (c.number == SYS_mmap)
        return (c.argument[2] & PROT_EXEC) == 0 &&
               (c.argument[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0;
      if ((c.number == SYS_mprotect || c.number == SYS_pkey_mprotect) &&
          (c.argument[2] & ~std::uint64_t{PROT_READ | PROT_WRITE}) != 0)
        return false;
      return !is_memory_of_host(c.number) || mapped_.holds(c.argument[0], c.argument[1]);
    case group::process:
      return p.process;
    case group::system:
      return false;
    case group::other:
      return c.number == SYS_getrandom;
  }
  return false;
}

/// Whether a call may use this memory, and nothing else can lie there before its reply: what
/// kernels map they also unmap.
bool service::may_keep(std::uint64_t at, std::uint64_t bytes) {
  if (options_.policy.raw || !copies_) return true;
  const auto begin = reinterpret_cast<std::uint64_t>(arena_.data());
  if (at >= begin && at - begin < arena_.bytes()) return bytes <= begin + arena_.bytes() - at;
  std::shared_lock lock(shared_lock_);
  return std::any_of(shared_host_.at, shared_host_.at + shared_host_.count, [&](const auto& r) {
    return at >= r.begin && at < r.end && bytes <= r.end - at;
  });
}

bool service::may_use(std::uint64_t at, std::uint64_t bytes) {
  return may_keep(at, bytes) || mapped_.holds(at, bytes);
}

/// Copies what a kernel passed a pointer to. False where there is nothing: a kernel names any
/// address, and unmaps what it has mapped.
bool service::copy_in(void* to, std::uint64_t at, std::size_t bytes) {
  if (!may_use(at, bytes)) return false;
  iovec local{to, bytes}, remote{reinterpret_cast<void*>(at), bytes};
  if (copies_ && at - reinterpret_cast<std::uint64_t>(arena_.data()) < arena_.bytes())
    std::memcpy(to, remote.iov_base, bytes);
  else if (::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes))
    return false;
  return true;
}

bool service::copy_out(std::uint64_t at, const void* from, std::size_t bytes) {
  if (!may_use(at, bytes)) return false;
  iovec local{const_cast<void*>(from), bytes}, remote{reinterpret_cast<void*>(at), bytes};
  if (copies_ && at - reinterpret_cast<std::uint64_t>(arena_.data()) < arena_.bytes())
    std::memcpy(remote.iov_base, from, bytes);
  else if (::process_vm_writev(::getpid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes))
    return false;
  return true;
}

/// Whether the call may have its arguments. Holds the descriptors that it uses, for the thread.
long service::check(const linux_call& info, const call_record& c, unsigned thread) {
  unsigned held = 0;
  for (unsigned i = 0; i < info.count; ++i) {
    const argument& a = info.arguments[i];
    const std::uint64_t v = c.argument[i];
    switch (a.kind) {
      case argument_kind::value:
        break;
      case argument_kind::folder:
        if (static_cast<int>(v) == AT_FDCWD) break;
        [[fallthrough]];
      case argument_kind::descriptor: {
        if (a.nullable && static_cast<int>(v) == -1) break;
        if (held == descriptors::at_a_time) return -EPERM;
        if (!descriptors_.begin_short(thread, held++, static_cast<int>(v))) return -EBADF;
        break;
      }
      case argument_kind::input_bytes:
      case argument_kind::output_bytes: {
        const std::uint64_t bytes = c.argument[a.from];
        if (bytes != 0 && v == 0 && !a.nullable) return -EFAULT;
        if (v != 0 && bytes != 0 && !may_use(v, bytes)) return -EFAULT;
        break;
      }
      case argument_kind::input:
      case argument_kind::output:
      case argument_kind::both:
        if (v == 0 && a.nullable) break;
        if (v == 0 || !may_use(v, a.bytes)) return -EFAULT;
        break;
      case argument_kind::path:
      case argument_kind::text:
        if (v == 0 && a.nullable) break;
        if (v == 0 || !may_use(v, 1)) return -EFAULT;
        break;
      case argument_kind::sized: {
        if (v == 0 && a.nullable) break;
        std::uint32_t room = 0;  // looked at again when the value is there
        if (v == 0 || c.argument[a.from] == 0 || !copy_in(&room, c.argument[a.from], sizeof room))
          return -EFAULT;
        if (room != 0 && !may_use(v, std::min(room, most_of_value(c.number)))) return -EFAULT;
        break;
      }
      case argument_kind::array: {
        const std::uint64_t many = c.argument[a.from];
        if (many > std::uint64_t{descriptors::end}) return -EINVAL;
        if (many != 0 && (v == 0 || !may_use(v, many * a.bytes))) return -EFAULT;
        break;
      }
      case argument_kind::read_iovecs:
      case argument_kind::fill_iovecs:
      case argument_kind::pointer:
        if (v != 0 && !options_.policy.raw) return -EPERM;
        break;
    }
  }
  return 0;
}

/// A path as the host has it: no kernel can change it any more. Empty where it cannot be had.
long service::copy_path(std::uint64_t at, std::array<char, PATH_MAX>& path) {
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
  // Anywhere in this process: the kernel copies, page by page, and says where there is none.
  for (std::size_t n = 0; n < PATH_MAX;) {
    const std::size_t now = std::min<std::size_t>(PATH_MAX - n, 4096 - (at + n) % 4096);
    iovec to{path.data() + n, now}, from{reinterpret_cast<void*>(at + n), now};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) < 0) {
      path[0] = 0;
      return -EFAULT;
    }
    if (std::memchr(path.data() + n, 0, now) != nullptr) return 0;
    n += now;
  }
  path[0] = 0;
  return -ENAMETOOLONG;
}

long service::opened(long fd, bool waits) {
  if (fd < 0) return fd;
  const long added = descriptors_.add(static_cast<int>(fd), waits);
  if (added < 0) {
    if (folders_) folders_->forget(static_cast<int>(fd));
    ::close(static_cast<int>(fd));
  }
  return added;
}

/// Opens without waiting: a FIFO's other end may never come. Reads and writes of it wait as those
/// of sockets do.
long service::open_below(int directory, const char* path, int flags, std::uint64_t mode) {
  const int made = (flags & O_PATH) != 0 ? flags : flags | O_NONBLOCK;
  return opened(folders_->openat(directory, path, made, static_cast<unsigned>(mode)),
                (flags & O_NONBLOCK) == 0);
}

/// Calls that take a path: below the policy's folders, or not at all.
long service::call_path(service_thread& t, const call_record& c, const linux_call& info) {
  if (options_.policy.raw) return call_plain(info, c);
  if (!folders_) return -EPERM;
  const std::uint64_t* a = c.argument;
  const auto number = [&](unsigned i) { return static_cast<int>(a[i]); };
  const auto text = [&](unsigned i) { return copy_path(a[i], t.path[0]); };
  const auto second = [&](unsigned i) { return copy_path(a[i], t.path[1]); };
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
    case SYS_readlinkat:
      if ((bad = text(1))) return bad;
      return f.readlinkat(number(0), path, reinterpret_cast<char*>(a[2]), a[3]);
    case SYS_symlinkat:
      if ((bad = text(0)) || (bad = second(2))) return bad;
      return f.symlinkat(path, number(1), other);
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

long service::call_plain(const linux_call& info, const call_record& c) {
  const std::uint64_t* a = c.argument;
  if (!options_.policy.raw)
    for (unsigned i = 0; i < info.count; ++i)
      if (info.arguments[i].kind == argument_kind::sized && a[i] != 0)
        return call_sized(info, c, i);
  // Before it is gone: the program may get the same addresses at once.
  if (c.number == SYS_munmap) mapped_.remove(a[0], a[1]);
  // A sleep that was interrupted would begin anew.
  const long result = linux_result(info.number, a, info.waits != waiting::other);
  if (result < 0) {
    if (c.number == SYS_munmap) mapped_.add(a[0], a[1]);
    return result;
  }
  switch (c.number) {
    case SYS_mmap:
      mapped_.add(static_cast<std::uint64_t>(result), a[1]);
      break;
    case SYS_dup:
    case SYS_memfd_create:
    case SYS_eventfd2:
    case SYS_timerfd_create:
    case SYS_epoll_create1:
    case SYS_inotify_init1:
#ifdef SYS_memfd_secret
    case SYS_memfd_secret:
#endif
#ifdef SYS_inotify_init
    case SYS_inotify_init:
#endif
#ifdef SYS_eventfd
    case SYS_eventfd:
    case SYS_epoll_create:
#endif
      return opened(result);
    default:
      break;
  }
  return result;
}

/// A pipe, whose ends never block on the host's side: who would wait does so in the reactor.
long service::call_pipe(const call_record& c) {
  const int flags = c.number == SYS_pipe2 ? static_cast<int>(c.argument[1]) : 0;
  if ((flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT)) != 0) return -EINVAL;
  int ends[2];
  if (::pipe2(ends, flags | O_CLOEXEC | O_NONBLOCK) != 0) return -errno;
  const bool waits = (flags & O_NONBLOCK) == 0;
  const long first = opened(ends[0], waits), second = opened(ends[1], waits);
  const long result = first < 0                                    ? first
                      : second < 0                                 ? second
                      : copy_out(c.argument[0], ends, sizeof ends) ? 0
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
    result = check(*info, c, t.number);
    if (result == 0 && changes_file(c.number) && !options_.policy.raw &&
        !is_open_for_writing(static_cast<int>(c.argument[0])))
      result = -EPERM;
    if (result == 0) result = make_allowed(t, q, *info);
    descriptors_.end_short(t.number);
  }
  if (result == -EPERM) count(t.counts.denied);
  return result;
}

long service::make_allowed(service_thread& t, const request& q, const linux_call& info) {
  const call_record& c = q.call;
  if (info.has_path) return call_path(t, c, info);
  if (waits_for_disk(c)) return call_disk(t, q, info);
  if (is_poll(c.number)) return call_poll(t, q, info);
  if (is_pipe(c.number)) return call_pipe(c);
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
