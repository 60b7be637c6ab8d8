// The table of Linux's system calls is complete in itself, and says what the headers say.
#include "sys/linux_calls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <utime.h>

#include <map>
#include <stdexcept>
#include <string>

namespace grosr::sys {
namespace {

const linux_call& call(unsigned number) {
  const linux_call* found = find_linux_call(number);
  if (found == nullptr) throw std::out_of_range("no call " + std::to_string(number));
  return *found;
}

// The arguments as tokens again.
std::string tokens(const linux_call& c) {
  static const std::map<argument_kind, char> letters = {
      {argument_kind::value, 'v'},        {argument_kind::descriptor, 'f'},
      {argument_kind::folder, 'd'},       {argument_kind::path, 'p'},
      {argument_kind::text, 's'},         {argument_kind::input_bytes, 'i'},
      {argument_kind::output_bytes, 'o'}, {argument_kind::input, 'I'},
      {argument_kind::output, 'O'},       {argument_kind::both, 'B'},
      {argument_kind::read_iovecs, 'V'},  {argument_kind::fill_iovecs, 'W'},
      {argument_kind::sized, 'u'},        {argument_kind::array, 'A'},
      {argument_kind::pointer, 'r'}};
  std::string text;
  for (unsigned i = 0; i < c.count; ++i) {
    const argument& a = c.arguments[i];
    if (i > 0) text += ' ';
    text += letters.at(a.kind);
    if (a.kind == argument_kind::input_bytes || a.kind == argument_kind::output_bytes ||
        a.kind == argument_kind::sized)
      text += std::to_string(a.from);
    if (a.bytes > 0) text += std::to_string(a.bytes);
    if (a.nullable) text += '?';
  }
  return text;
}

TEST(linux_calls, are_in_order_and_have_numbers_of_their_own) {
  const auto all = linux_calls();
  ASSERT_GT(all.size(), 250u);
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_LT(all[i - 1].number, all[i].number) << all[i].name;
}

TEST(linux_calls, are_found_by_number) {
  for (const linux_call& c : linux_calls()) EXPECT_EQ(find_linux_call(c.number), &c) << c.name;
  unsigned found = 0;
  for (unsigned n = 0; n < 2000; ++n) found += find_linux_call(n) != nullptr;
  EXPECT_EQ(found, linux_calls().size());
  EXPECT_EQ(find_linux_call(100000), nullptr);
  EXPECT_EQ(find_linux_call(~0u), nullptr);
}

TEST(linux_calls, have_arguments_that_fit_together) {
  for (const linux_call& c : linux_calls()) {
    const argument_list again = parse_arguments(tokens(c));
    ASSERT_EQ(again.count, c.count) << c.name;
    for (unsigned i = 0; i < c.count; ++i) {
      EXPECT_EQ(again.at[i].kind, c.arguments[i].kind) << c.name;
      EXPECT_EQ(again.at[i].from, c.arguments[i].from) << c.name;
      EXPECT_EQ(again.at[i].bytes, c.arguments[i].bytes) << c.name;
      EXPECT_EQ(again.at[i].nullable, c.arguments[i].nullable) << c.name;
    }
  }
}

TEST(linux_calls, with_bad_arguments_are_refused) {
  for (const char* bad :
       {"x",  "f  v", " v",    "v ",    "i",    "i1 p",          "i9 v",        "v8", "I",
        "O0", "v?",   "o1x v", "p7",    "W",    "v V",           "A v",         "A8", "A8 f",
        "u",  "u1 v", "u1 B8", "u2 B4", "O4??", "v v v v v v v", "O99999999999"})
    EXPECT_THROW(parse_arguments(bad), std::invalid_argument) << '"' << bad << '"';
  EXPECT_EQ(parse_arguments("").count, 0u);
}

TEST(linux_calls, that_everybody_knows_are_as_everybody_knows_them) {
  struct known {
    unsigned number;
    const char* name;
    usefulness useful;
    group in;
    waiting waits;
    const char* arguments;
  };
  using enum usefulness;
  for (const known& k : {
           known{__NR_pread64, "pread64", useful, group::files, waiting::disk, "f o2 v v"},
           known{__NR_pwrite64, "pwrite64", useful, group::files, waiting::disk, "f i2 v v"},
           known{__NR_openat, "openat", useful, group::files, waiting::disk, "d p v v"},
           known{__NR_readv, "readv", usefulness::raw, group::files, waiting::peer, "f W v"},
           known{__NR_writev, "writev", usefulness::raw, group::files, waiting::peer, "f V v"},
           known{__NR_recvfrom, "recvfrom", useful, group::network, waiting::peer,
                 "f o2 v v u5? B4?"},
           known{__NR_accept4, "accept4", useful, group::network, waiting::peer, "f u2? B4? v"},
           known{__NR_ppoll, "ppoll", useful, group::files, waiting::peer, "A8 v B16? i4? v"},
           known{__NR_mmap, "mmap", useful, group::memory, waiting::disk, "v v v v f? v"},
           known{__NR_nanosleep, "nanosleep", useful, group::time, waiting::other, "I16 O16?"},
           known{__NR_getpid, "getpid", useful, group::identity, waiting::never, ""},
           known{__NR_rt_sigaction, "rt_sigaction", not_today, group::process, waiting::never,
                 "v I32? O32? v"},
           known{__NR_sched_yield, "sched_yield", not_useful, group::process, waiting::never, ""},
#ifdef __NR_fork
           known{__NR_fork, "fork", not_useful, group::process, waiting::never, ""},
#endif
#ifdef __NR_openat2
           known{__NR_openat2, "openat2", usefulness::raw, group::files, waiting::disk, "d p i3 v"},
#endif
       }) {
    const linux_call& c = call(k.number);
    EXPECT_EQ(c.name, k.name);
    EXPECT_EQ(c.useful, k.useful) << k.name;
    EXPECT_EQ(c.in, k.in) << k.name;
    EXPECT_EQ(c.waits, k.waits) << k.name;
    EXPECT_EQ(tokens(c), k.arguments) << k.name;
  }
  EXPECT_EQ(call(__NR_readv).arguments[1].from, 2u);
}

TEST(linux_calls, that_are_not_today_say_why) {
  for (const linux_call& c : linux_calls())
    EXPECT_TRUE(c.useful != usefulness::not_today || !c.note.empty()) << c.name;
}

// What the server cannot check.
TEST(linux_calls, with_pointers_to_pointers_are_raw) {
  for (const linux_call& c : linux_calls()) {
    if (c.useful != usefulness::useful) continue;
    EXPECT_NE(c.in, group::system) << c.name;
    for (unsigned i = 0; i < c.count; ++i) {
      const argument& a = c.arguments[i];
      EXPECT_NE(a.kind, argument_kind::read_iovecs) << c.name;
      EXPECT_NE(a.kind, argument_kind::fill_iovecs) << c.name;
      EXPECT_TRUE(a.kind != argument_kind::pointer || a.nullable) << c.name;
    }
  }
  for (const unsigned number : {__NR_statx, __NR_ioctl, __NR_fcntl, __NR_epoll_wait, __NR_sendmsg,
                                __NR_inotify_add_watch, __NR_preadv, __NR_futex, __NR_dup2})
    EXPECT_EQ(call(number).useful, usefulness::raw) << number;
}

TEST(linux_calls, are_mostly_useful) {
  std::map<usefulness, double> percent;
  for (const linux_call& c : linux_calls())
    percent[c.useful] += 100.0 / static_cast<double>(linux_calls().size());
  EXPECT_GT(percent[usefulness::useful], 40);
  EXPECT_GT(percent[usefulness::useful] + percent[usefulness::raw], 74);
  EXPECT_LT(percent[usefulness::useful] + percent[usefulness::raw], 88);
  EXPECT_GT(percent[usefulness::not_today], 7);
  EXPECT_LT(percent[usefulness::not_today], 16);
  EXPECT_GT(percent[usefulness::not_useful], 3);
  EXPECT_LT(percent[usefulness::not_useful], 12);
}

TEST(linux_calls, have_classes_with_names) {
  EXPECT_EQ(name_of(usefulness::not_today), "not today");
  EXPECT_EQ(name_of(group::identity), "identity");
  EXPECT_EQ(name_of(waiting::peer), "peer");
  EXPECT_EQ(name_of(argument_kind::fill_iovecs), "fill iovecs");
}

#ifdef __x86_64__
TEST(linux_calls, have_structs_of_the_sizes_of_the_headers) {
  const auto bytes = [](unsigned number, unsigned i) { return call(number).arguments[i].bytes; };
  static_assert(sizeof(timespec) == 16 && sizeof(timeval) == 16 && sizeof(loff_t) == 8);
  EXPECT_EQ(bytes(__NR_fstat, 1), sizeof(struct stat));
  EXPECT_EQ(bytes(__NR_stat, 1), sizeof(struct stat));
  EXPECT_EQ(bytes(__NR_newfstatat, 2), sizeof(struct stat));
  EXPECT_EQ(bytes(__NR_statx, 4), sizeof(struct statx));
  EXPECT_EQ(bytes(__NR_fstatfs, 1), sizeof(struct statfs));
  EXPECT_EQ(bytes(__NR_epoll_ctl, 3), sizeof(epoll_event));
  EXPECT_EQ(bytes(__NR_clock_gettime, 1), sizeof(timespec));
  EXPECT_EQ(bytes(__NR_utimensat, 2), 2 * sizeof(timespec));
  EXPECT_EQ(bytes(__NR_timerfd_settime, 2), sizeof(itimerspec));
  EXPECT_EQ(bytes(__NR_getitimer, 1), sizeof(itimerval));
  EXPECT_EQ(bytes(__NR_times, 0), sizeof(tms));
  EXPECT_EQ(bytes(__NR_utime, 1), sizeof(utimbuf));
  EXPECT_EQ(bytes(__NR_adjtimex, 0), sizeof(timex));
  EXPECT_EQ(bytes(__NR_uname, 0), sizeof(utsname));
  EXPECT_EQ(bytes(__NR_sysinfo, 0), sizeof(struct sysinfo));
  EXPECT_EQ(bytes(__NR_getrusage, 1), sizeof(rusage));
  EXPECT_EQ(bytes(__NR_getrlimit, 1), sizeof(rlimit));
  EXPECT_EQ(bytes(__NR_waitid, 2), sizeof(siginfo_t));
  EXPECT_EQ(bytes(__NR_timer_create, 1), sizeof(sigevent));
  EXPECT_EQ(bytes(__NR_mq_open, 3), sizeof(mq_attr));
  EXPECT_EQ(bytes(__NR_sched_setparam, 1), sizeof(sched_param));
  EXPECT_EQ(bytes(__NR_pipe2, 0), sizeof(int[2]));
  EXPECT_EQ(bytes(__NR_capset, 0), sizeof(__user_cap_header_struct));
  EXPECT_EQ(bytes(__NR_capset, 1), sizeof(__user_cap_data_struct) * _LINUX_CAPABILITY_U32S_3);
}
#endif

}  // namespace
}  // namespace grosr::sys
