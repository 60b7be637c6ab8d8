// Polls tell what is ready and no more, wait as long as was said, and keep no thread.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "support/scale.hpp"
#include "sys/peers.hpp"

namespace grosr::sys {
namespace {

using namespace std::chrono_literals;

GROSR_DEVICE_SUITE(polls);

struct poll_them {
  server_ref sys;
  int first, second, denied;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    const auto note = [&](long result) { r[i++] = result; };
    const auto step = [&](std::int64_t n) {
      simt::atomic_ref<std::int64_t, simt::scope::system>(r[31]).store(n, simt::release);
    };
    pollfd p[4] = {{first, POLLIN, 9}, {second, POLLIN, 9}, {-1, POLLIN, 9}, {first, POLLIN, 9}};
    note(poll(sys, p, 4, 0));
    note(p[0].revents | p[1].revents | p[2].revents | p[3].revents);
    note(poll(sys, p, 4, 20));  // nothing comes
    note(poll(sys, p, 1, 20));
    note(poll(sys, p, 0, 20));
    step(1);
    note(poll(sys, p, 4, -1));  // to the second
    note(p[0].revents == 0 && p[1].revents == POLLIN && p[2].revents == 0 && p[3].revents == 0);
    char text[8];
    note(recv(sys, second, text, 8));
    p[0].events = POLLIN | POLLOUT;
    note(poll(sys, p, 2, -1));
    note(p[0].revents);
    p[1].fd = denied;
    p[0].events = POLLIN;
    note(poll(sys, p, 2, -1));
    note(p[1].revents);
    step(2);
    note(poll(sys, p, 1, 10'000));  // to the first
    note(p[0].revents);
    note(poll(sys, p, 100'000, 0));
    const timeval limit{0, 30'000};
    note(setsockopt(sys, second, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    note(recv(sys, second, text, 8));
  }
};

TEST_P(polls, tell_what_is_ready) {
  const peer first(SOCK_DGRAM), second(SOCK_DGRAM), out(SOCK_DGRAM);
  server s(where(), networked());
  s.grant(first.fd());
  s.grant(second.fd());
  auto r = make<std::int64_t>(32, simt::space::pinned);
  {
    beside sends([&] {
      std::atomic_ref<std::int64_t> step(r.data()[31]);
      for (std::int64_t i = 1; i <= 2; ++i) {
        while (step.load() < i) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(20ms);
        const sockaddr_in to = loopback(i == 1 ? second.port() : first.port());
        ::sendto(out.fd(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
      }
    });
    run(1, 32, poll_them{s.ref(), first.fd(), second.fd(), out.fd(), r.data()});
  }
  std::vector<std::int64_t> got(r.data(), r.data() + 17);
  EXPECT_EQ(got, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, POLLOUT, 1, POLLNVAL, 1,
                                            POLLIN, -EINVAL, 0, -EAGAIN}));
}

// Many wait at a time, none on a thread.
struct poll_long {
  server_ref sys;
  int socket;
  std::uint32_t* good;
  GROSR_DEVICE void operator()() const {
    pollfd p{socket, POLLIN, 0};
    const long n = poll(sys, &p, 1, simt::thread_id() % 2 == 0 ? 50 : -1);
    if (n == 0 || n == -ESHUTDOWN)
      simt::atomic_ref<std::uint32_t>(*good).fetch_add(n == 0 ? 1 : 1000, simt::relaxed);
  }
};

TEST_P(polls, wait_until_the_server_stops) {
  const peer own(SOCK_DGRAM);
  options o = networked();
  o.blocking_threads = 1;
  server s(where(), o);
  s.grant(own.fd());
  auto good = make<std::uint32_t>(1);
  {
    beside stops([&] {
      std::this_thread::sleep_for(300ms * testing::slowdown);
      s.stop();
    });
    run(2, 128, poll_long{s.ref(), own.fd(), good.data()});
  }
  EXPECT_EQ(contents(good)[0], 128u + 128u * 1000);
}

}  // namespace
}  // namespace grosr::sys
