// Linux calls whose arguments the fuzzer draws by what they take (all others get anything), and the
// names of things.
#include "fuzz/fuzz.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

namespace grosr::tool::fuzz {

const std::vector<raw_call>& raw_calls() {
  static const std::vector<raw_call> all{
      // files
      {SYS_read, "fbn"},
      {SYS_write, "fbn"},
      {SYS_close, "f"},
      {SYS_fstat, "fb"},
      {SYS_lseek, "fov"},
      {SYS_pread64, "fbno"},
      {SYS_pwrite64, "fbno"},
      {SYS_readv, "fbc"},
      {SYS_writev, "fbc"},
      {SYS_preadv, "fbco"},
      {SYS_pwritev, "fbco"},
      {SYS_preadv2, "fbcoov"},
      {SYS_dup, "f"},
      {SYS_dup3, "ffv"},
      {SYS_fcntl, "fcb"},
      {SYS_fcntl, "fva"},
      {SYS_ioctl, "fvb"},
      {SYS_fsync, "f"},
      {SYS_fdatasync, "f"},
      {SYS_truncate, "po"},
      {SYS_ftruncate, "fo"},
      {SYS_fallocate, "fvnm"},
      {SYS_getcwd, "bn"},
      {SYS_sendfile, "ffbn"},
      {SYS_splice, "fbfbnv"},
      {SYS_tee, "ffnv"},
      {SYS_vmsplice, "fbnv"},
      {SYS_copy_file_range, "fbfbn0"},
      {SYS_fchmod, "fv"},
      {SYS_fchown, "fvv"},
      {SYS_fsetxattr, "fpbnv"},
      {SYS_fgetxattr, "fpbn"},
      {SYS_flistxattr, "fbn"},
      {SYS_fremovexattr, "fp"},
      {SYS_setxattr, "ppbnv"},
      {SYS_getxattr, "ppbn"},
      {SYS_fstatfs, "fb"},
      {SYS_statfs, "pb"},
      {SYS_readahead, "fon"},
      {SYS_fadvise64, "foov"},
      {SYS_getdents64, "fbn"},
      {SYS_openat, "dpvv"},
      {SYS_openat, "dpvv"},
      {SYS_openat2, "dpbn"},
      {SYS_mkdirat, "dpv"},
      {SYS_mknodat, "dpvv"},
      {SYS_fchownat, "dpvvv"},
      {SYS_newfstatat, "dpbv"},
      {SYS_unlinkat, "dpv"},
      {SYS_unlinkat, "dp0"},
      {SYS_renameat2, "dpdpv"},
      {SYS_renameat2, "dpdp0"},
      {SYS_linkat, "dpdp0"},
      {SYS_linkat, "dpdpv"},
      {SYS_symlinkat, "pdp"},
      {SYS_symlinkat, "pdp"},
      {SYS_readlinkat, "dpbn"},
      {SYS_fchmodat, "dpv"},
      {SYS_faccessat, "dpv"},
      {SYS_utimensat, "dpbv"},
      {SYS_utimensat, "f0bv"},
      {SYS_statx, "dpvvb"},
      {SYS_name_to_handle_at, "dpbbv"},
      {SYS_open_by_handle_at, "dbv"},
      {SYS_eventfd2, "cv"},
      {SYS_timerfd_create, "cv"},
      {SYS_timerfd_settime, "fvbb"},
      {SYS_epoll_create1, "v"},
      {SYS_epoll_ctl, "fcfb"},
      {SYS_inotify_init1, "v"},
      {SYS_inotify_add_watch, "fpv"},
      {SYS_fanotify_init, "vv"},
      {SYS_pipe2, "bv"},
      {SYS_memfd_create, "pv"},
      {SYS_close_range, "ffv"},
      {SYS_io_setup, "cb"},
      {SYS_io_destroy, "v"},
      {SYS_io_submit, "vcb"},
      {SYS_io_uring_setup, "cb"},
      {SYS_io_uring_enter, "fccvbn"},
      {SYS_io_uring_register, "fvbc"},
      {SYS_syncfs, "f"},
      {SYS_flock, "fv"},
      {SYS_flock, "fc"},
      {SYS_chroot, "p"},
      {SYS_swapoff, "p"},
      {SYS_acct, "p"},
#ifdef SYS_open
      {SYS_open, "pvv"},
      {SYS_creat, "pv"},
      {SYS_stat, "pb"},
      {SYS_lstat, "pb"},
      {SYS_access, "pv"},
      {SYS_rename, "pp"},
      {SYS_mkdir, "pv"},
      {SYS_rmdir, "p"},
      {SYS_link, "pp"},
      {SYS_unlink, "p"},
      {SYS_symlink, "pp"},
      {SYS_symlink, "pp"},
      {SYS_readlink, "pbn"},
      {SYS_chmod, "pv"},
      {SYS_chown, "pvv"},
      {SYS_mknod, "pvv"},
      {SYS_utime, "pb"},
      {SYS_dup2, "fv"},
      {SYS_dup2, "ff"},
      {SYS_pipe, "b"},
      {SYS_select, "cbbbb"},
      {SYS_poll, "bcc"},
      {SYS_epoll_wait, "fbcc"},
      {SYS_fork, ""},
      {SYS_vfork, ""},
      {SYS_alarm, "c"},
      {SYS_arch_prctl, "va"},
      {SYS_modify_ldt, "cbn"},
      {SYS_iopl, "c"},
      {SYS_ioperm, "vvc"},
#endif
      // memory
      {SYS_mmap, "amvvfo"},
      {SYS_mmap, "0mccfo"},
      {SYS_munmap, "am"},
      {SYS_mprotect, "amv"},
      {SYS_mprotect, "amc"},
      {SYS_mremap, "ammva"},
      {SYS_mremap, "ammca"},
      {SYS_brk, "a"},
      {SYS_msync, "amv"},
      {SYS_mincore, "amb"},
      {SYS_madvise, "amc"},
      {SYS_mlock, "am"},
      {SYS_mlock2, "amv"},
      {SYS_munlock, "am"},
      {SYS_munlockall, ""},
      {SYS_mbind, "amc0cc"},
      {SYS_remap_file_pages, "amccv"},
      {SYS_shmget, "vmv"},
      {SYS_shmget, "0mv"},
      {SYS_shmat, "vav"},
      {SYS_shmat, "cav"},
      {SYS_shmdt, "a"},
      {SYS_shmctl, "cc0"},
      {SYS_pkey_mprotect, "amcv"},
      {SYS_pkey_alloc, "0c"},
      {SYS_pkey_free, "c"},
      {SYS_migrate_pages, "0v00"},
      {SYS_move_pages, "0ca0bv"},
      {SYS_userfaultfd, "v"},
      {SYS_process_vm_readv, "kbcbc0"},
      {SYS_process_vm_writev, "kbcbc0"},
#ifdef SYS_memfd_secret
      {SYS_memfd_secret, "v"},
#endif
#ifdef SYS_mseal
      {SYS_mseal, "amv"},
#endif
#ifdef SYS_set_mempolicy_home_node
      {SYS_set_mempolicy_home_node, "amvv"},
#endif
      // network
      {SYS_socket, "vvv"},
      {SYS_socket, "ccc"},
      {SYS_connect, "fbn"},
      {SYS_accept, "fbb"},
      {SYS_accept4, "fbbv"},
      {SYS_sendto, "fbnvbn"},
      {SYS_recvfrom, "fbnvbb"},
      {SYS_sendmsg, "fbv"},
      {SYS_recvmsg, "fbv"},
      {SYS_shutdown, "fc"},
      {SYS_bind, "fbn"},
      {SYS_listen, "fv"},
      {SYS_getsockname, "fbb"},
      {SYS_socketpair, "cc0b"},
      {SYS_setsockopt, "fvvbn"},
      {SYS_setsockopt, "fccbn"},
      {SYS_getsockopt, "fccbb"},
      {SYS_recvmmsg, "fbcvb"},
      {SYS_sendmmsg, "fbcv"},
      // time, identity
      {SYS_nanosleep, "bb"},
      {SYS_clock_nanosleep, "cvbb"},
      {SYS_clock_gettime, "cb"},
      {SYS_gettimeofday, "bb"},
      {SYS_times, "b"},
      {SYS_timer_gettime, "cb"},
      {SYS_getitimer, "cb"},
      {SYS_uname, "b"},
      {SYS_sysinfo, "b"},
      {SYS_getgroups, "cb"},
      {SYS_getrandom, "bnv"},
      {SYS_getresuid, "bbb"},
      // processes: pids that nobody has
      {SYS_kill, "kc"},
      {SYS_tkill, "kc"},
      {SYS_tgkill, "kkc"},
      {SYS_exit, "c"},
      {SYS_exit_group, "c"},
      {SYS_setitimer, "cbb"},
      {SYS_chdir, "p"},
      {SYS_fchdir, "f"},
      {SYS_umask, "v"},
      {SYS_setuid, "v"},
      {SYS_setgid, "v"},
      {SYS_setresuid, "vvv"},
      {SYS_setfsuid, "v"},
      {SYS_setgroups, "cb"},
      {SYS_setsid, ""},
      {SYS_setpgid, "kk"},
      {SYS_prctl, "cvvvv"},
      {SYS_prctl, "vbbbb"},
      {SYS_prlimit64, "0cbb"},
      {SYS_wait4, "kb0b"},
      {SYS_ptrace, "ckbb"},
      {SYS_personality, "v"},
      {SYS_unshare, "v"},
      {SYS_setns, "fv"},
      {SYS_timer_create, "cbb"},
      {SYS_rt_sigaction, "cbb8"},
      {SYS_rt_sigqueueinfo, "kcb"},
      {SYS_execve, "pbb"},
      {SYS_execveat, "dpbbv"},
      {SYS_clone, "v0000"},
      {SYS_seccomp, "ccb"},
      {SYS_sched_setaffinity, "0nb"},
      {SYS_setpriority, "c0c"},
      {SYS_capset, "bb"},
#ifdef SYS_setrlimit
      {SYS_setrlimit, "cb"},
#endif
#ifdef SYS_pidfd_getfd
      {SYS_pidfd_open, "kc"},
      {SYS_pidfd_getfd, "ff0"},
      {SYS_pidfd_send_signal, "fcb0"},
#endif
      // the machine
      {SYS_mount, "pppvb"},
      {SYS_umount2, "pv"},
      {SYS_pivot_root, "pp"},
      {SYS_sethostname, "bn"},
      {SYS_settimeofday, "bb"},
      {SYS_clock_settime, "cb"},
      {SYS_bpf, "cbn"},
      {SYS_syslog, "cbn"},
      {SYS_perf_event_open, "bkc00"},
      {SYS_delete_module, "pv"},
      {SYS_quotactl, "vpcb"},
      // other
      {SYS_futex, "bccb0c"},
      {SYS_semget, "vcv"},
      {SYS_msgget, "vv"},
      {SYS_mq_open, "pvvb"},
      {SYS_add_key, "ppbnv"},
      {SYS_keyctl, "ccccc"},
  };
  return all;
}

std::string text_of(std::span<const lane_steps> all, unsigned threads, unsigned most) {
  std::string text;
  const std::size_t lanes = all.size() - 1;
  for (std::size_t n = 0; n <= lanes; ++n) {
    const std::size_t i = n == 0 ? lanes : n - 1;  // the one that found something, first
    const lane_steps& l = all[i];
    const unsigned each = i == lanes ? steps_a_lane : most;
    for (std::uint32_t turn = l.turns > each ? l.turns - each + 1 : 1; turn <= l.turns; ++turn) {
      const step& s = l.at[turn % steps_a_lane];
      text += fmt::format("{} turn {}: {} {} {}({}, {:#x}, {:#x}, {:#x}) = {}\n",
                          i == lanes ? "found by"
                                     : fmt::format("block {} warp {} lane {}", i / threads,
                                                   i % threads / 32, i % 32),
                          s.turn, name_of(s.who),
                          s.how == fate::drop   ? "drop"
                          : s.how == fate::test ? "test"
                                                : "wait",
                          name_of(s.what), static_cast<std::int64_t>(s.a[0]), s.a[1], s.a[2],
                          s.a[3], s.result == running ? "under way" : std::to_string(s.result));
    }
  }
  return text;
}

const char* name_of(op o) {
  static const char* const names[] = {
      "nothing",    "add",           "throws",      "throws other", "missing",  "syscall",
      "print",      "open",          "openat",      "close",        "pread",    "pwrite",
      "read",       "write",         "readv",       "writev",       "lseek",    "fstat",
      "ftruncate",  "fsync",         "fallocate",   "unlink",       "rename",   "mkdir",
      "getdents",   "socket",        "bind",        "listen",       "connect",  "accept",
      "sendto",     "send",          "recvfrom",    "recv",         "shutdown", "setsockopt",
      "getsockopt", "getsockname",   "getpeername", "poll",         "mmap",     "munmap",
      "madvise",    "clock_gettime", "nanosleep",   "getrandom",    "getrusage"};
  static_assert(std::size(names) == static_cast<std::size_t>(op::count));
  return o == op::check ? "check" : o < op::count ? names[static_cast<unsigned>(o)] : "?";
}

const char* name_of(form f) {
  static const char* const names[] = {
      "lane",          "lane started",   "lane attempt",   "lane attempt started",
      "warp",          "warp started",   "warp attempt",   "block",
      "block started", "block producer", "block consumer", "block consumer started",
      "grid producer", "grid consumer",  "grid started"};
  static_assert(std::size(names) == static_cast<std::size_t>(form::count));
  return f < form::count ? names[static_cast<unsigned>(f)] : "?";
}

const char* name_of_wrong(std::uint32_t kind) {
  static const char* const names[] = {"right",
                                      "a result that is neither a value nor an errno",
                                      "more bytes than there was room for",
                                      "something outside of the policy was done",
                                      "a result that it cannot have",
                                      "other bytes than were written",
                                      "bytes of the program's own"};
  return kind < std::size(names) ? names[kind] : "?";
}

}  // namespace grosr::tool::fuzz
