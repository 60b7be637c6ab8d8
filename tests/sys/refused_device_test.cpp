// What Linux refuses whoever comes, a call that could wait is refused at once as well.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <thread>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(refused_calls);

using namespace std::chrono_literals;

constexpr unsigned kinds = 8, calls = 5;

struct call_each {
  server_ref sys;
  const int* fds;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const unsigned self = simt::thread_id();
    if (self >= kinds + 1) return;
    // The last one is the kernel's own.
    const int fd = self < kinds ? fds[self] : static_cast<int>(syscall(sys, SYS_epoll_create1, 0));
    std::int64_t* const at = r + self * calls;
    char some[8] = {};
    at[0] = sys::read(sys, fd, some, 8);
    at[1] = sys::write(sys, fd, some, 8);
    at[2] = accept(sys, fd);
    at[3] = recv(sys, fd, some, 8);
    at[4] = connect(sys, fd, some, 8);
  }
};

long of_linux(int fd, unsigned call) {
  char some[8] = {};
  const auto* name = reinterpret_cast<const sockaddr*>(some);
  errno = 0;
  const long result = call == 0   ? ::read(fd, some, 8)
                      : call == 1 ? ::write(fd, some, 8)
                      : call == 2 ? ::accept(fd, nullptr, nullptr)
                      : call == 3 ? ::recv(fd, some, 8, 0)
                                  : ::connect(fd, name, 8);
  return result < 0 ? -errno : result;
}

TEST_P(refused_calls, are_refused_as_linux_does_it) {
  int pipe[2], peers[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peers), 0);
  ::close(peers[1]);
  ::close(pipe[1]);
  auto* const before = ::signal(SIGPIPE, SIG_IGN);
  const std::vector<int> fds{::epoll_create1(EPOLL_CLOEXEC),
                             ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                             ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                             ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
                             ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                             static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)),
                             pipe[0],
                             peers[0]};
  ASSERT_EQ(fds.size(), kinds);
  std::vector<std::int64_t> expected;
  for (unsigned i = 0; i < kinds + 1; ++i)
    for (unsigned c = 0; c < calls; ++c) expected.push_back(of_linux(fds[i < kinds ? i : 0], c));
  auto on_device = make<int>(kinds);
  on_device.copy_from(fds);
  auto r = make<std::int64_t>(expected.size());
  simt::stream stream(where());
  options o;
  o.policy.network = true;
  server s(where(), o);
  for (int fd : fds) s.grant(fd);
  simt::launch(stream, {1, 32}, call_each{s.ref(), on_device.data(), r.data()});
  for (int i = 0; i < 10'000 && !stream.done(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(stream.done());
  s.stop();
  stream.wait();
  EXPECT_EQ(contents(r), expected);
  for (int fd : fds) ::close(fd);
  ::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace grosr::sys
