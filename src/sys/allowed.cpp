// What the policy allows, and whether the arguments of a call may be used.
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "sys/service.hpp"

namespace grosr::sys {
namespace {

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

/// Advice that takes pages away from the whole machine.
bool is_advice_on_machine(std::uint64_t advice) {
  constexpr std::uint64_t soft_offline = 101;  // which libc does not name
  return advice == MADV_HWPOISON || advice == soft_offline;
}

bool is_socket_for_kernels(std::uint64_t domain, std::uint64_t type) {
  const auto family = static_cast<int>(domain);
  const int kind = static_cast<int>(type) & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  return (family == AF_INET || family == AF_INET6) && kind != SOCK_RAW && kind != SOCK_PACKET;
}

bool is_memory_of_host(long number) {
  return number == SYS_madvise || number == SYS_mprotect || number == SYS_msync ||
         number == SYS_mincore || number == SYS_mlock || number == SYS_munlock ||
         number == SYS_mlock2 || number == SYS_pkey_mprotect ||
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

/// Calls that have whoever runs a file run it with the program's rights.
bool gives_rights(const call_record& c) {
  const std::uint64_t* a = c.argument;
  constexpr std::uint64_t rights = S_ISUID | S_ISGID;
  const auto makes = [](std::uint64_t flags) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  };
  switch (c.number) {
    case SYS_openat:
      return makes(a[2]) && (a[3] & rights) != 0;
    case SYS_fchmodat:
      return (a[2] & rights) != 0;
    case SYS_fchmod:
      return (a[1] & rights) != 0;
#ifdef SYS_open
    case SYS_open:
      return makes(a[1]) && (a[2] & rights) != 0;
    case SYS_creat:
    case SYS_chmod:
      return (a[1] & rights) != 0;
#endif
    default:
      return false;
  }
}

bool is_open_for_writing(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

bool service::allows(const linux_call& info, const call_record& c) const {
  const sys::policy& p = options_.policy;
  if (p.raw) return true;
  if (info.useful == usefulness::raw) return false;
  switch (info.in) {
    case group::files:
      return !gives_rights(c);
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
      if (c.number == SYS_madvise && is_advice_on_machine(c.argument[2])) return false;
      return true;  // of what is mapped, which check() holds
    case group::process:
      return p.process;
    case group::system:
    case group::other:
      return true;
  }
  return false;
}

bool service::in_arena(std::uint64_t at, std::uint64_t bytes) const {
  const std::uint64_t from = at - reinterpret_cast<std::uint64_t>(arena_.data());
  return from < arena_.bytes() && bytes <= arena_.bytes() - from;
}

/// Whether a call may use this memory, which stays what it is: what kernels map they also unmap.
bool service::may_keep(std::uint64_t at, std::uint64_t bytes) {
  if (options_.policy.raw || !copies_) return true;
  if (in_arena(at, bytes)) return true;
  std::shared_lock lock(shared_lock_);
  return std::any_of(shared_host_.at, shared_host_.at + shared_host_.count, [&](const auto& r) {
    return at >= r.begin && at < r.end && bytes <= r.end - at;
  });
}

/// How many bytes from there on a call may use.
std::uint64_t service::bytes_from(std::uint64_t at) {
  if (options_.policy.raw || !copies_) return ~std::uint64_t{0} - at;
  if (in_arena(at, 0))
    return arena_.bytes() - (at - reinterpret_cast<std::uint64_t>(arena_.data()));
  std::uint64_t most = mapped_.bytes_from(at);
  const std::shared_lock lock(shared_lock_);
  for (const auto& r : std::span(shared_host_.at, shared_host_.count))
    if (at >= r.begin && at < r.end) most = std::max(most, r.end - at);
  return most;
}

/// Whether a call may use this memory, and then it is held: nothing of the program's can come to
/// lie there. None: it may not.
std::optional<mapped_ranges::use> service::hold(std::uint64_t at, std::uint64_t bytes) {
  if (may_keep(at, bytes)) return mapped_ranges::use();
  return mapped_.hold(at, bytes);
}

/// The same until the call of this thread has ended, though it may wait.
bool service::may_use(service_thread& t, std::uint64_t at, std::uint64_t bytes) {
  if (may_keep(at, bytes)) return true;
  auto held = mapped_.hold(at, bytes);
  if (held) t.memory.push_back(std::move(*held));
  return held.has_value();
}

/// Copies what a kernel passed a pointer to. False where there is nothing: a kernel names any
/// address, and unmaps what it has mapped.
bool service::copy_in(void* to, std::uint64_t at, std::size_t bytes) {
  const auto held = hold(at, bytes);
  if (!held) return false;
  iovec local{to, bytes}, remote{reinterpret_cast<void*>(at), bytes};
  if (in_arena(at, bytes))
    std::memcpy(to, remote.iov_base, bytes);
  else if (::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes))
    return false;
  return true;
}

bool service::copy_out(std::uint64_t at, const void* from, std::size_t bytes) {
  const auto held = hold(at, bytes);
  if (!held) return false;
  iovec local{const_cast<void*>(from), bytes}, remote{reinterpret_cast<void*>(at), bytes};
  if (in_arena(at, bytes))
    std::memcpy(remote.iov_base, from, bytes);
  else if (::process_vm_writev(::getpid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes))
    return false;
  return true;
}

/// The name of a socket, which no kernel can change any more. 0, or -errno; -EPERM: it is a path,
/// or something else on this machine that is no network.
long service::copy_name(sockaddr_storage& to, std::uint64_t at, std::uint64_t bytes) {
  const auto n = static_cast<std::int32_t>(bytes);  // what Linux takes of it
  if (n < 0 || static_cast<std::size_t>(n) > sizeof to) return -EINVAL;
  to = {};
  if (n != 0 && !copy_in(&to, at, static_cast<std::size_t>(n))) return -EFAULT;
  return to.ss_family == AF_UNIX ? -EPERM : 0;
}

/// Whether the call may have its arguments. Holds the descriptors and the memory that it uses, for
/// the thread.
long service::check(const linux_call& info, const call_record& c, service_thread& t) {
  if (is_memory_of_host(c.number) && !options_.policy.raw) {
    auto held = mapped_.hold(c.argument[0], c.argument[1]);
    if (!held) return -EPERM;
    if (!mapped_.may_map()) return -ENOMEM;
    t.memory.push_back(std::move(*held));
  }
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
        if (!descriptors_.begin_short(t.number, held++, static_cast<int>(v))) return -EBADF;
        break;
      }
      case argument_kind::input_bytes:
      case argument_kind::output_bytes: {
        const std::uint64_t bytes = c.argument[a.from];
        if (bytes != 0 && v == 0 && !a.nullable) return -EFAULT;
        if (v != 0 && bytes != 0 && !may_use(t, v, bytes)) return -EFAULT;
        break;
      }
      case argument_kind::input:
      case argument_kind::output:
      case argument_kind::both:
        if (v == 0 && a.nullable) break;
        if (v == 0 || !may_use(t, v, a.bytes)) return -EFAULT;
        break;
      case argument_kind::path:
      case argument_kind::text:
        if (v == 0 && a.nullable) break;
        if (v == 0 || !may_use(t, v, 1)) return -EFAULT;
        break;
      case argument_kind::sized: {
        if (v == 0 && a.nullable) break;
        std::uint32_t room = 0;  // looked at again when the value is there
        if (v == 0 || c.argument[a.from] == 0 || !copy_in(&room, c.argument[a.from], sizeof room))
          return -EFAULT;
        if (room != 0 && !may_use(t, v, std::min(room, most_of_value(c.number)))) return -EFAULT;
        break;
      }
      case argument_kind::array: {
        const std::uint64_t many = c.argument[a.from];
        if (many > std::uint64_t{descriptors::end}) return -EINVAL;
        if (many != 0 && (v == 0 || !may_use(t, v, many * a.bytes))) return -EFAULT;
        break;
      }
      case argument_kind::read_iovecs:
      case argument_kind::fill_iovecs:
      case argument_kind::pointer:
        if (v != 0 && !options_.policy.raw) return -EPERM;
        break;
    }
  }
  const bool changes = changes_file(c.number) && !options_.policy.raw;
  return changes && !is_open_for_writing(static_cast<int>(c.argument[0])) ? -EPERM : 0;
}

}  // namespace grosr::sys
