// What becomes of calls whose peer goes, whose socket is closed, and that are not allowed.
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "grosr/simt/wait.hpp"
#include "sys/peers.hpp"

namespace grosr::sys {
namespace {

using namespace std::chrono_literals;

GROSR_DEVICE_SUITE(network_ends);

// ---- peers that go, sockets that are closed ----

struct use_dead {
  server_ref sys;
  int socket;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 3) return;
    char text[16] = {};
    long first = 0, n = 0;
    while ((n = recv(sys, socket, text, sizeof text)) > 0) first += n;
    r[0] = first;
    r[1] = n;
    for (unsigned i = 0; i < 1000 && n >= 0; ++i) n = send(sys, socket, text, sizeof text);
    r[2] = n;
    for (unsigned i = 0; i < 2 && n != -EPIPE; ++i) n = write(sys, socket, text, sizeof text);
    r[3] = n;
  }
};

TEST_P(network_ends, tells_that_a_peer_has_gone) {
  for (const bool resets : {false, true}) {
    const peer listener(SOCK_STREAM, true), own(SOCK_STREAM);
    server s(where(), networked());
    own.connect_to(listener.port());
    const int other = listener.accepted();
    EXPECT_EQ(::send(other, "abc", 3, 0), 3);
    s.grant(own.fd());
    auto r = make<std::int64_t>(4);
    {
      beside goes([&] {
        std::this_thread::sleep_for(20ms);
        if (resets) {
          const linger now{1, 0};
          ::setsockopt(other, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        }
        ::close(other);
      });
      run(1, 32, use_dead{s.ref(), own.fd(), r.data()});
    }
    const auto got = contents(r);
    EXPECT_EQ(got[0], 3);
    EXPECT_EQ(got[1], resets ? -ECONNRESET : 0);
    EXPECT_TRUE(got[2] == -EPIPE || got[2] == -ECONNRESET) << got[2];
    EXPECT_EQ(got[3], -EPIPE);
  }
}

// Lane 0 closes what the others wait for.
struct close_waited {
  server_ref sys;
  int type;
  std::int64_t* r;
  std::uint32_t* socket_of;  // 1 more
  GROSR_DEVICE void operator()() const {
    simt::atomic_ref<std::uint32_t> number(*socket_of);
    if (simt::thread_id() == 0) {
      const int s = static_cast<int>(socket(sys, AF_INET, type));
      const sockaddr_in any = loopback(0);
      r[0] = bind(sys, s, &any, sizeof any);
      if (type == SOCK_STREAM) r[0] |= listen(sys, s, 8);
      number.store(static_cast<std::uint32_t>(s) + 1, simt::release);
      const timespec a_while{0, 30'000'000};
      r[0] |= nanosleep(sys, &a_while);
      r[0] |= close(sys, s);
    } else {
      simt::wait_until([&] { return number.load(simt::acquire) != 0; }, simt::forever, nullptr,
                       "a socket");
      const int s = static_cast<int>(number.load(simt::relaxed) - 1);
      char text[4];
      pollfd p{s, POLLIN, 0};
      if (simt::thread_id() % 8 == 7)
        r[simt::thread_id()] = poll(sys, &p, 1, -1) == 1 && p.revents == POLLNVAL ? -EBADF : 1;
      else
        r[simt::thread_id()] = type == SOCK_STREAM ? accept(sys, s) : recv(sys, s, text, 4);
    }
  }
};

TEST_P(network_ends, ends_calls_whose_socket_is_closed) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    server s(where(), networked());
    auto r = make<std::int64_t>(32);
    auto number = make<std::uint32_t>(1);
    run(1, 32, close_waited{s.ref(), type, r.data(), number.data()});
    const auto got = contents(r);
    EXPECT_EQ(got[0], 0);
    for (unsigned i = 1; i < 32; ++i) EXPECT_EQ(got[i], -EBADF) << i;
  }
}

// ---- what does not work ----

struct bad_calls {
  server_ref sys;
  int own;  // nobody's but the program's
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    const auto note = [&](long result) { r[i++] = result; };
    char text[8] = {};
    sockaddr_storage most{};
    auto& name = reinterpret_cast<sockaddr_in&>(most);
    name = loopback(9);
    socklen_t length = sizeof name;
    note(socket(sys, AF_NETLINK, SOCK_RAW));
    note(socket(sys, AF_PACKET, SOCK_RAW));
    note(socket(sys, AF_UNIX, SOCK_STREAM));
    note(socket(sys, AF_INET, SOCK_RAW, IPPROTO_ICMP));
    for (int s : {-1, own, 1 << 19}) {
      note(recv(sys, s, text, 8));
      note(send(sys, s, text, 8));
      note(accept(sys, s));
      note(bind(sys, s, &name, sizeof name));
    }
    const int s = static_cast<int>(socket(sys, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK));
    note(s >= 0);
    note(recv(sys, s, text, 8));                         // nothing there
    note(recvfrom(sys, s, text, 8, 0, &name, nullptr));  // a name without its length
    note(send(sys, s, nullptr, 8));
    note(bind(sys, s, &name, 200));
    note(send(sys, s, text, 8));  // to nobody
    note(getsockname(sys, s, nullptr, &length));
    length = 4;
    note(getsockname(sys, s, &name, &length));
    note(length == sizeof name && name.sin_addr.s_addr == 0x0100007f);  // only 4 bytes came
    length = static_cast<socklen_t>(-1);
    note(getsockname(sys, s, &name, &length));
    note(setsockopt(sys, s, SOL_SOCKET, SO_ATTACH_FILTER, text, 8));
    length = sizeof text;
    note(getsockopt(sys, s, SOL_SOCKET, 77, text, &length));
    note(syscall(sys, SYS_getsockname, s, &name, &length));  // not the host's memory
    note(syscall(sys, SYS_poll, &name, 1, 0));
    note(syscall(sys, SYS_poll, nullptr, 1, 0));
    note(syscall(sys, SYS_poll, nullptr, ~0ull / 8 + 2, 0));
    note(close(sys, s));
  }
};

TEST_P(network_ends, refuses_what_is_not_there_or_not_allowed) {
  const peer own(SOCK_STREAM, true);
  server s(where(), networked());
  auto r = make<std::int64_t>(33);
  run(1, 32, bad_calls{s.ref(), own.fd(), r.data()});
  std::vector<std::int64_t> expected{-EPERM, -EPERM, -EPERM, -EPERM};
  expected.insert(expected.end(), 12, -EBADF);
  for (std::int64_t e : {1, -EAGAIN, -EFAULT, -EFAULT, -EINVAL, -EDESTADDRREQ, -EFAULT, 0, 1,
                         -EINVAL, -EPERM, -EPERM, -EFAULT, -EFAULT, -EFAULT, -EINVAL, 0})
    expected.push_back(e);
  EXPECT_EQ(contents(r), expected);
  EXPECT_EQ(s.statistics().denied, 6u);
}

struct call_all {
  server_ref sys;
  int given;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.warp();
    char text[8] = {};
    const long all[] = {socket(c, AF_INET, SOCK_DGRAM),
                        recv(c, given, text, 8),
                        send(c, given, text, 8),
                        accept(c, given),
                        listen(c, given, 1),
                        shutdown(c, given, SHUT_RD)};
    if (simt::lane_id() == 0)
      for (unsigned i = 0; i < 6; ++i) r[i] = all[i];
  }
};

TEST_P(network_ends, is_denied_unless_the_policy_allows_it) {
  const peer own(SOCK_STREAM, true);
  options o = networked();
  o.policy.network = false;
  server s(where(), o);
  s.grant(own.fd());
  auto r = make<std::int64_t>(6);
  run(1, 32, call_all{s.ref(), own.fd(), r.data()});
  EXPECT_EQ(contents(r), std::vector<std::int64_t>(6, -EPERM));
  EXPECT_EQ(s.statistics().denied, 6u);
}

}  // namespace
}  // namespace grosr::sys
