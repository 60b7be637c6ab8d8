// Whatever a kernel asks for that it may not have or that makes no sense: it gets the errno that
// the documentation names, and nothing else happens.
#include <fcntl.h>

#include <cstdint>
#include <cstring>

#include "sys/calls.hpp"
#include "sys/open_files.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(bad_input);

struct noted {
  std::int64_t* r;
  unsigned i = 0;
  GROSR_DEVICE void operator()(long result) { r[i++] = result; }
};

struct bad_buffers {
  server_ref sys;
  int file;               // 200,000 bytes
  const char* long_path;  // 5000 bytes without an end
  char* to;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    constexpr std::uint64_t huge = std::uint64_t{1} << 40;
    noted note{r};
    note(pread(sys, file, nullptr, 1, 0));
    note(pread(sys, file, nullptr, 200000, 0));
    note(pread(sys, file, nullptr, huge, 0));
    note(pread(sys, file, nullptr, 0, 0));
    note(pwrite(sys, file, nullptr, 200000, 0));
    note(read(sys, file, nullptr, 8));
    note(write(sys, file, nullptr, 8));
    note(fstat(sys, file, nullptr));
    note(open(sys, nullptr, O_RDONLY));
    note(open(sys, "", O_RDONLY));
    note(open(sys, long_path, O_RDONLY));
    note(rename(sys, long_path, long_path));
    note(rename(sys, "in", long_path));
    note(rename(sys, nullptr, "in"));
    note(pread(sys, file, to, huge, 199990));
    note(pread(sys, file, to, huge, INT64_MAX) < 0);
    note(pread(sys, file, to, 8, -1));
    note(pread(sys, -1, to, huge, 0));
    // Told apart from those that a group makes.
    auto t = pread(sys.start(), file, nullptr, 5, 0);
    note(t.begun());
    note(wait(sys.start(), t));
  }
};

TEST_P(bad_input, of_buffers_and_paths_is_refused) {
  own_folder f;
  f.write("in", std::string(200000, 'x'));
  server s(where(), options_for(f));
  const int file = ::open(f.file("in").c_str(), O_RDONLY | O_CLOEXEC);
  s.grant(file);
  auto path = make<char>(5000);
  path.copy_from(std::vector<char>(5000, 'p'));
  auto to = make<char>(65536);
  auto r = make<std::int64_t>(20);
  run(1, 32, bad_buffers{s.ref(), file, path.data(), to.data(), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{-EFAULT,
                                                    -EFAULT,
                                                    -EFAULT,
                                                    0,
                                                    -EFAULT,
                                                    -EFAULT,
                                                    -EFAULT,
                                                    -EFAULT,
                                                    -EFAULT,
                                                    -ENOENT,
                                                    -ENAMETOOLONG,
                                                    -ENAMETOOLONG,
                                                    -ENAMETOOLONG,
                                                    -EFAULT,
                                                    10,
                                                    1,
                                                    -EINVAL,
                                                    -EBADF,
                                                    0,
                                                    -EFAULT}));
  ::close(file);
}

struct bad_descriptors {
  server_ref sys;
  int stranger;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    char some[4] = {};
    const int numbers[] = {0, 1, 2, -1, -101, 1 << 20, 0x7fffffff, stranger};
    for (int fd : numbers) {
      const bool all = pread(sys, fd, some, 4, 0) == -EBADF && read(sys, fd, some, 4) == -EBADF &&
                       write(sys, fd, some, 4) == -EBADF && close(sys, fd) == -EBADF &&
                       lseek(sys, fd, 0, SEEK_SET) == -EBADF && fsync(sys, fd) == -EBADF &&
                       openat(sys, fd, "in", O_RDONLY) == -EBADF;
      note(all);
    }
    const int own = static_cast<int>(open(sys, "in", O_RDONLY));
    note(own >= 0);
    note(close(sys, own));
    note(close(sys, own));
    note(pread(sys, own, some, 4, 0));
    note(openat(sys, own, "in", O_RDONLY));
  }
};

TEST_P(bad_input, of_descriptors_is_refused) {
  own_folder f;
  f.write("in", "text");
  server s(where(), options_for(f));
  const int stranger = ::open(f.file("in").c_str(), O_RDONLY | O_CLOEXEC);
  auto r = make<std::int64_t>(13);
  run(1, 32, bad_descriptors{s.ref(), stranger, r.data()});
  EXPECT_EQ(contents(r),
            (std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, -EBADF, -EBADF, -EBADF}));
  EXPECT_EQ(::close(stranger), 0);
}

struct bad_numbers {
  server_ref sys;
  void* host;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    note(syscall(sys, 9999L));
    note(syscall(sys, -1L));
    note(syscall(sys, 0x4000L));
    note(syscall(sys, 0x8001L, host, host));
    note(syscall(sys, 1L << 32));
    note(syscall(sys, long{SYS_fork}));
    note(syscall(sys, long{SYS_execve}, host, host, host));
    note(syscall(sys, long{SYS_fork}, 1, 2, 3, 4, 5, 6));
    note(syscall(sys, long{SYS_kill}, 0, 9));
    note(syscall(sys, long{SYS_socket}, 2, 1, 0));
    note(syscall(sys, long{SYS_clock_gettime}, 0, host));
    note(syscall(sys, long{SYS_getrandom}, host, 8L, 0));
    note(syscall(sys, long{SYS_openat}, AT_FDCWD, host, O_RDONLY));
    note(syscall(sys, long{SYS_clock_gettime}, 0, nullptr));
    note(syscall(sys, long{SYS_munmap}, host, 4096L));
  }
};

bool is_refusal(std::int64_t r) { return r == -EOPNOTSUPP || r == -ENOTRECOVERABLE; }

TEST_P(bad_input, of_numbers_and_raw_pointers_is_refused) {
  own_folder f;
  server s(where(), options_for(f));
  alignas(16) static char host[4096];
  std::memset(host, 7, sizeof host);
  auto r = make<std::int64_t>(15);
  run(1, 32, bad_numbers{s.ref(), host, r.data()});
  const auto got = contents(r);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(got[i], -ENOSYS) << i;
  for (int i = 5; i < 8; ++i) EXPECT_TRUE(is_refusal(got[i])) << got[i];
  EXPECT_EQ(got[8], -EPERM);
  EXPECT_EQ(got[9], -EPERM);
  for (int i = 10; i < 14; ++i) EXPECT_EQ(got[i], -EFAULT) << i;
  EXPECT_EQ(got[14], -EPERM);
  for (char c : host) ASSERT_EQ(c, 7);
  s.drain(std::chrono::seconds(10));
  EXPECT_EQ(s.statistics().denied, 3u);
}

struct beyond_folders {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    note(open(sys, "in", O_RDONLY) >= 0);
    note(open(sys, "in", O_RDWR));
    note(open(sys, "new", O_CREAT | O_WRONLY, 0600));
    note(open(sys, "in", O_RDONLY | O_TRUNC));
    note(unlink(sys, "in"));
    note(rename(sys, "in", "out"));
    note(mkdir(sys, "folder", 0700));
    note(open(sys, "..", O_RDONLY));
    note(open(sys, "../in", O_RDONLY));
    note(open(sys, "/etc/passwd", O_RDONLY));
    note(open(sys, "link", O_RDONLY));
  }
};

TEST_P(bad_input, of_folders_is_refused_and_counted) {
  own_folder f;
  f.write("in", "text");
  ASSERT_EQ(::symlink("/etc/passwd", f.file("link").c_str()), 0);
  options o = options_for(f);
  o.policy.folders[0].allowed = access::read;
  server s(where(), o);
  auto r = make<std::int64_t>(11);
  run(1, 32, beyond_folders{s.ref(), r.data()});
  const auto got = contents(r);
  EXPECT_EQ(got[0], 1);
  for (unsigned i = 1; i < 11; ++i) EXPECT_EQ(got[i], -EPERM) << i;
  s.drain(std::chrono::seconds(10));
  EXPECT_EQ(s.statistics().denied, 10u);
  EXPECT_EQ(f.read("in"), "text");
}

struct many_descriptors {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    const long a = open(sys, "in", O_RDONLY), b = open(sys, "in", O_RDONLY);
    note(a >= 0 && b >= 0);
    note(open(sys, "in", O_RDONLY));
    note(open(sys, "new", O_CREAT | O_WRONLY, 0600));
    note(close(sys, static_cast<int>(b)));
    note(open(sys, "in", O_RDONLY) >= 0);
  }
};

TEST_P(bad_input, of_too_many_descriptors_is_refused) {
  own_folder f;
  f.write("in", "text");
  { server first(where(), options_for(f)); }
  const std::size_t before = open_files();
  {
    options o = options_for(f);
    o.descriptors = 2;
    server s(where(), o);
    auto r = make<std::int64_t>(5);
    run(1, 32, many_descriptors{s.ref(), r.data()});
    EXPECT_EQ(contents(r), (std::vector<std::int64_t>{1, -EMFILE, -EMFILE, 0, 1}));
  }
  EXPECT_EQ(open_files(), before);
}

struct no_files {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) *r = open(sys, "in", O_RDONLY);
  }
};

TEST_P(bad_input, without_a_policy_is_refused) {
  server s(where());
  auto r = make<std::int64_t>(1);
  run(1, 32, no_files{s.ref(), r.data()});
  EXPECT_EQ(contents(r)[0], -EPERM);
}

}  // namespace
}  // namespace grosr::sys
