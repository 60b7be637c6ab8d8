// Under a raw policy kernels may make every call, and what they open is theirs: to use, to close,
// and gone with the server.
#include <fcntl.h>
#include <sys/socket.h>

#include "sys/calls.hpp"
#include "sys/open_files.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(raw_policy);

// One lane notes what each call returns.
struct open_and_use {
  server_ref sys;
  const char* path;
  int* ends;  // shared memory
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    std::int64_t* at = r;
    char some[4] = {};
    const int file = static_cast<int>(open(sys, path, O_RDWR));
    *at++ = pread(sys, file, some, 4, 0);
    *at++ = some[0] == 'f' && some[3] == 'r';
    const int copy = static_cast<int>(syscall(sys, SYS_fcntl, file, F_DUPFD_CLOEXEC, 0));
    *at++ = pread(sys, copy, some, 2, 0);
    *at++ = syscall(sys, SYS_dup2, copy, file);  // in its place
    *at++ = pread(sys, file, some, 3, 0);
    const int far = static_cast<int>(syscall(sys, SYS_dup2, file, 900));
    *at++ = pread(sys, far, some, 1, 0);
    *at++ = close(sys, far);
    *at++ = close(sys, copy);
    *at++ = close(sys, file);
    *at++ = pread(sys, file, some, 1, 0);
    *at++ = open(sys, path, O_RDONLY) >= 0;  // left open
    *at++ = syscall(sys, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, ends);
    *at++ = write(sys, ends[1], "four", 4);
    *at++ = read(sys, ends[0], some, 4);
    *at++ = close(sys, ends[1]);
    *at++ = read(sys, ends[0], some, 4);  // left open
    *at++ = syscall(sys, SYS_pidfd_open, syscall(sys, SYS_getpid), 0) >= 0;
  }
};

TEST_P(raw_policy, gives_kernels_what_they_open) {
  own_folder f;
  f.write("file", "four");
  { server first(where()); }  // what the first one keeps
  const std::size_t before = open_files();
  {
    options o;
    o.policy.raw = true;
    server s(where(), o);
    simt::buffer<int> ends(where(), simt::space::pinned, 2);
    s.share(std::as_writable_bytes(std::span(ends.data(), 2)));
    const std::string name = f.file("file");
    auto path = make<char>(name.size() + 1);
    path.copy_from(std::vector<char>(name.c_str(), name.c_str() + name.size() + 1));
    auto r = make<std::int64_t>(17);
    run(1, 32, open_and_use{s.ref(), path.data(), ends.data(), r.data()});
    std::vector<std::int64_t> found = contents(r);
    const std::int64_t file = found[3];  // its number
    EXPECT_GE(file, 0);
    found[3] = 0;
    EXPECT_EQ(found,
              (std::vector<std::int64_t>{4, 1, 2, 0, 3, 1, 0, 0, 0, -EBADF, 1, 0, 4, 4, 0, 0, 1}));
    EXPECT_EQ(s.statistics().denied, 0u);
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace grosr::sys
