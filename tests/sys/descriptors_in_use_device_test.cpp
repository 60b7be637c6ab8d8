// A call that waits holds all descriptors that it uses: their numbers are not other files' before
// it has ended.
#include <fcntl.h>
#include <poll.h>

#include <cstring>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(descriptors_in_use);

/// The program opens a file of its own: the descriptor; or -EAGAIN if the pipe holds something by
/// then.
struct open_own {
  static constexpr std::uint16_t number = 0;
  const char* path;
  int pipe;
  long operator()() const {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    pollfd p{pipe, POLLIN, 0};
    if (fd < 0 || ::poll(&p, 1, 0) == 0) return fd;
    ::close(fd);
    return -EAGAIN;
  }
};

/// Returns when two calls of the server wait.
struct until_two_wait {
  static constexpr std::uint16_t number = 1;
  const server* of;
  long operator()() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (of->statistics().waited < 2)
      if (std::chrono::steady_clock::now() > end) return -ETIMEDOUT;
    return 0;
  }
};

// The first one has the only thread for a while, the second one has not begun when its file is
// closed. On a slow machine it may have ended by then, which r[2] = -EAGAIN tells.
struct send_and_close {
  server_ref sys;
  int full[2], empty[2];  // pipes of the program
  unsigned char* bytes;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const auto later = sys.start();
    const int first = static_cast<int>(open(sys, "in", O_RDONLY));
    const int second = static_cast<int>(open(sys, "in", O_RDONLY));
    auto waits = syscall(later, SYS_sendfile, full[1], first, 0, 6);
    auto queues = syscall(later, SYS_sendfile, empty[1], second, 0, 6);
    r[0] = call<until_two_wait>(sys);
    r[1] = close(sys, second);
    const long own = call<open_own>(sys);
    r[2] = own == -EAGAIN ? own : own != second;
    long left = 65536, n = 0;
    while (left > 0 && (n = read(sys, full[0], bytes, 4096)) > 0) left -= n;
    r[3] = wait(later, waits);
    r[4] = wait(later, queues);
    r[5] = read(sys, empty[0], bytes, 16);
  }
};

TEST_P(descriptors_in_use, by_a_call_that_waits_are_held) {
  own_folder f, program;
  f.write("in", "inside");
  program.write("own", "SECRET");
  const std::string path = program.file("own");
  const std::string much(65536, 'x');
  auto r = make<std::int64_t>(6);
  auto bytes = make<unsigned char>(4096);
  for (unsigned tries = 0; tries == 0 || (contents(r)[2] == -EAGAIN && tries < 100); ++tries) {
    send_and_close kernel{};
    for (int* ends : {kernel.full, kernel.empty}) ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(::write(kernel.full[1], much.data(), much.size()), 65536);
    {
      options o = options_for(f);
      o.blocking_threads = 1;
      server s(where(), o);
      for (const int fd : {kernel.full[0], kernel.full[1], kernel.empty[0], kernel.empty[1]})
        s.grant(fd);
      s.install(open_own{path.c_str(), kernel.empty[0]});
      s.install(until_two_wait{&s});
      kernel.sys = s.ref();
      kernel.bytes = bytes.data();
      kernel.r = r.data();
      run(1, 32, kernel);
    }
    for (const int* ends : {kernel.full, kernel.empty})
      for (int i = 0; i < 2; ++i) ::close(ends[i]);
  }
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0, 1, 6, 6, 6}));
  EXPECT_EQ(std::memcmp(contents(bytes).data(), "inside", 6), 0);
}

}  // namespace
}  // namespace grosr::sys
