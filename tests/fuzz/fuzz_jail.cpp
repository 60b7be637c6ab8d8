#include "fuzz/fuzz_jail.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <vector>

namespace grosr::tool {
namespace {

std::function<std::string()>& report() {
  static std::function<std::string()> r;
  return r;
}

void say(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(2, text.data() + at, text.size() - at);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

void caught(int signal, siginfo_t* info, void*) {
  end_with(signal == SIGSYS ? fmt::format("a call was made that the policy must deny: number {}",
                                          info->si_syscall)
                            : fmt::format("crashed: signal {} at {}", signal, info->si_addr));
}

// Calls that no policy of the fuzzer allows, and that this program has no use for itself.
const std::vector<unsigned>& forbidden() {
  static const std::vector<unsigned> all{
      SYS_execve,
      SYS_execveat,
      SYS_kill,
      SYS_tkill,

      SYS_chdir,
      SYS_fchdir,
      SYS_chroot,
      SYS_pivot_root,
      SYS_umask,
      SYS_setuid,
      SYS_setgid,
      SYS_setreuid,
      SYS_setregid,
      SYS_setresuid,
      SYS_setresgid,
      SYS_setfsuid,
      SYS_setfsgid,
      SYS_setgroups,
      SYS_setsid,
      SYS_setpgid,
      SYS_personality,
      SYS_reboot,
      SYS_kexec_load,
      SYS_mount,
      SYS_umount2,
      SYS_swapon,
      SYS_swapoff,
      SYS_init_module,
      SYS_finit_module,
      SYS_delete_module,
      SYS_sethostname,
      SYS_setdomainname,
      SYS_settimeofday,
      SYS_clock_settime,
      SYS_adjtimex,
      SYS_clock_adjtime,
      SYS_bpf,
      SYS_quotactl,
      SYS_acct,
      SYS_keyctl,
      SYS_add_key,
      SYS_request_key,
      SYS_unshare,
      SYS_setns,
      SYS_capset,
      SYS_setitimer,
      SYS_rt_sigqueueinfo,
      SYS_rt_tgsigqueueinfo,
      SYS_open_by_handle_at,
      SYS_dup3,
      SYS_remap_file_pages,
      SYS_userfaultfd,
      SYS_perf_event_open,
      SYS_syslog,
      SYS_vhangup,
#ifdef SYS_fork
      SYS_fork,
      SYS_vfork,
      SYS_alarm,
      SYS_dup2,
      SYS_setrlimit,
      SYS_iopl,
      SYS_ioperm,
#endif
#ifdef SYS_close_range
      SYS_close_range,
#endif
#ifdef SYS_pidfd_getfd
      SYS_pidfd_getfd,
      SYS_pidfd_open,
      SYS_pidfd_send_signal,
#endif
  };
  return all;
}

}  // namespace

void on_crash(std::function<std::string()> r) {
  report() = std::move(r);
  struct sigaction act {};
  act.sa_sigaction = caught;
  act.sa_flags = SA_SIGINFO;
  for (int signal : {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    // A sanitizer says more.
    if (signal == SIGSYS || old.sa_handler == SIG_DFL) ::sigaction(signal, &act, nullptr);
  }
}

void end_with(const std::string& reason) {
  static std::atomic<bool> ending{false};
  if (ending.exchange(true)) {
    ::sleep(5);  // of a crash in the report itself, or of another thread's
    ::_exit(1);
  }
  say("grosr-fuzz: " + reason + "\n");
  if (report()) say(report()());
  ::_exit(1);
}

bool enter_jail(std::uint64_t file_bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{file_bytes, file_bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::vector<sock_filter> f;
  f.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (unsigned number : forbidden()) {
    f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  }
  f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(f.size()), f.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

}  // namespace grosr::tool
