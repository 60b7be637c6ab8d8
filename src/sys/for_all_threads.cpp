// Calls that Linux makes for the thread alone that makes them. Who the program is changes for all
// of its threads or for none; what can only be one thread's is refused, since a service thread is
// no kernel's own.
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "sys/linux_result.hpp"
#include "sys/service.hpp"

namespace grosr::sys {
namespace {

/// What prctl does for the whole program. Numbers that older headers lack are Linux's.
bool is_of_program(std::uint64_t option) {
  constexpr int set_mdwe = 65, get_mdwe = 66, set_memory_merge = 67, get_memory_merge = 68,
                set_vma = 0x53564d41, get_auxv = 0x41555856;
  switch (static_cast<int>(option)) {
    case PR_GET_DUMPABLE:
    case PR_SET_DUMPABLE:
    case PR_GET_CHILD_SUBREAPER:
    case PR_SET_CHILD_SUBREAPER:
    case PR_GET_THP_DISABLE:
    case PR_SET_THP_DISABLE:
    case PR_SET_MM:
    case PR_SET_PTRACER:
    case set_mdwe:
    case get_mdwe:
    case set_memory_merge:
    case get_memory_merge:
    case set_vma:
    case get_auxv:
      return true;
    default:
      return false;
  }
}

/// The futex operations whose word holds the number of the CPU thread that owns it.
bool has_owner(std::uint64_t operation) {
  switch (static_cast<int>(operation) & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
    case FUTEX_UNLOCK_PI:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_CMP_REQUEUE_PI:
    case 13:  // FUTEX_LOCK_PI2, which older headers lack
      return true;
    default:
      return false;
  }
}

}  // namespace

/// Whether Linux would do this for one of the server's threads alone.
bool service::is_for_one_thread(const call_record& c) {
  switch (c.number) {
    case SYS_prctl:
      return !is_of_program(c.argument[0]);
    case SYS_futex:
      return has_owner(c.argument[1]);
    case SYS_keyctl: {
      const std::uint64_t what = c.argument[0];
      return what == KEYCTL_JOIN_SESSION_KEYRING || what == KEYCTL_SET_REQKEY_KEYRING ||
             what == KEYCTL_ASSUME_AUTHORITY;
    }
#ifdef SYS_close_range
    case SYS_close_range:
      return (c.argument[2] & 2) != 0;  // CLOSE_RANGE_UNSHARE
#endif
    default:
      return false;
  }
}

/// Whether it changes who the program is.
bool service::changes_identity(unsigned number) {
  switch (number) {
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setgroups:
      return true;
    default:
      return false;
  }
}

/// Changes it for all threads, or for none: so does libc, which reaches each of them by a signal.
long service::change_identity(const call_record& c) {
  std::uint64_t a[max_arguments];
  std::copy_n(c.argument, max_arguments, a);
  if (const long injected = injected_result(c.number, a)) return injected;
  const auto user = [&](unsigned i) { return static_cast<uid_t>(a[i]); };
  const auto group = [&](unsigned i) { return static_cast<gid_t>(a[i]); };
  int result = 0;
  switch (c.number) {
    case SYS_setuid:
      result = ::setuid(user(0));
      break;
    case SYS_setgid:
      result = ::setgid(group(0));
      break;
    case SYS_setreuid:
      result = ::setreuid(user(0), user(1));
      break;
    case SYS_setregid:
      result = ::setregid(group(0), group(1));
      break;
    case SYS_setresuid:
      result = ::setresuid(user(0), user(1), user(2));
      break;
    case SYS_setresgid:
      result = ::setresgid(group(0), group(1), group(2));
      break;
    case SYS_setgroups: {
      if (a[0] > NGROUPS_MAX) return -EINVAL;
      std::vector<gid_t> all(static_cast<std::size_t>(a[0]));  // the same for all threads
      if (!all.empty() && !copy_in(all.data(), a[1], all.size() * sizeof(gid_t))) return -EFAULT;
      result = ::setgroups(all.size(), all.data());
      break;
    }
    default:
      return -ENOSYS;
  }
  return result < 0 ? -errno : 0;
}

}  // namespace grosr::sys
