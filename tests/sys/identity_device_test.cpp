// What a kernel changes of the program it changes for all of its threads, or not at all.
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(identity);

constexpr unsigned nobody = 65534;

struct become_nobody {
  server_ref sys;
  std::uint32_t* wrong;
  GROSR_DEVICE void count(bool is_wrong) const {
    if (is_wrong) simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
  }
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) {
      count(syscall(sys, SYS_setresgid, -1, nobody, -1) != 0);
      count(syscall(sys, SYS_setresuid, -1, nobody, -1) != 0);
    }
    simt::sync_block();
    for (int i = 0; i < 20; ++i) {
      count(syscall(sys, SYS_geteuid) != nobody);
      count(syscall(sys, SYS_getegid) != nobody);
      count(syscall(sys, SYS_getuid) != 0);
    }
  }
};

[[noreturn]] void change_who_the_program_is(device d) {
  options o;
  o.threads = 4;
  o.policy.process = true;
  std::uint32_t wrong = 1;
  {
    server s(d, o);
    simt::buffer<std::uint32_t> counted(d, simt::space::device, 1);
    simt::run(d, {4, 64}, become_nobody{s.ref(), counted.data()});
    counted.copy_to({&wrong, 1});
  }
  std::fprintf(stderr, "%u wrong, %u\n", wrong, ::geteuid());
  std::_Exit(wrong == 0 && ::geteuid() == nobody && ::getegid() == nobody ? 0 : 1);
}

TEST_P(identity, changes_for_all_threads) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(change_who_the_program_is(where()), ::testing::ExitedWithCode(0), "");
}

struct change_one_thread {
  server_ref sys;
  std::uint32_t* word;  // pinned
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    r[i++] = syscall(sys, SYS_prctl, PR_GET_DUMPABLE);
    r[i++] = syscall(sys, SYS_prctl, PR_GET_THP_DISABLE);
    r[i++] = syscall(sys, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    r[i++] = syscall(sys, SYS_prctl, PR_SET_TIMERSLACK, 1);
    r[i++] = syscall(sys, SYS_prctl, PR_SET_NAME, "name");
    r[i++] = syscall(sys, SYS_personality, 0xffffffff);
    r[i++] = syscall(sys, SYS_futex, word, FUTEX_LOCK_PI, 0, 0);
    r[i++] = syscall(sys, SYS_futex, word, FUTEX_UNLOCK_PI);
    r[i++] = syscall(sys, SYS_keyctl, 1, 0);  // KEYCTL_JOIN_SESSION_KEYRING
#ifdef SYS_close_range
    r[i++] = syscall(sys, SYS_close_range, 900, 900, 2);  // CLOSE_RANGE_UNSHARE
#endif
  }
};

TEST_P(identity, of_one_thread_is_refused) {
  auto r = make<std::int64_t>(10);
  auto word = make<std::uint32_t>(1, simt::space::pinned);
  word[0] = 0;
  options o;
  o.policy.raw = true;
  server s(where(), o);
  run(1, 32, change_one_thread{s.ref(), word.data(), r.data()});
  std::vector<std::int64_t> expected(10, -ENOTRECOVERABLE);
  expected[0] = ::prctl(PR_GET_DUMPABLE);
  expected[1] = 0;
#ifndef SYS_close_range
  expected[9] = 0;
#endif
  EXPECT_EQ(contents(r), expected);
  EXPECT_EQ(word[0], 0u);
  EXPECT_EQ(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}

}  // namespace
}  // namespace grosr::sys
