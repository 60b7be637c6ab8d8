// Sockets as kernels see them, against threads of the host over the loopback: who sends gets what
// it sent, whoever calls and however many wait.
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>

#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "sys/peers.hpp"

namespace grosr::sys {
namespace {

using namespace std::chrono_literals;

GROSR_DEVICE_SUITE(network);

// ---- datagrams ----

enum class by { lane, warp, block };

template <by Who, class F>
GROSR_DEVICE void for_group(const server_ref& sys, const F& f) {
  if constexpr (Who == by::lane) f(sys);
  if constexpr (Who == by::warp) f(sys.warp());
  if constexpr (Who == by::block) f(sys.block());
}

// Each group has a socket, sends texts of all lengths, and gets each back from where it went.
template <by Who>
struct echo {
  server_ref sys;
  std::uint32_t port, turns, most;
  unsigned char* memory;  // 2 * most a group
  std::uint32_t* good;
  GROSR_DEVICE void operator()() const {
    for_group<Who>(sys, [&](const auto& c) {
      const std::uint32_t size = Who == by::lane ? 1 : Who == by::warp ? 32 : simt::block_size();
      const std::uint32_t rank = simt::thread_id() % size;
      const std::uint32_t group =
          (simt::block_id() * simt::block_size() + simt::thread_id()) / size;
      const auto meet = [&] {
        if constexpr (Who == by::warp) simt::sync_warp();
        if constexpr (Who == by::block) simt::sync_block();
      };
      unsigned char* const out = memory + std::size_t{group} * 2 * most;
      unsigned char* const in = out + most;
      const int s = static_cast<int>(socket(c, AF_INET, SOCK_DGRAM));
      const sockaddr_in to = loopback(port);
      std::uint32_t well = s >= 0;
      for (std::uint32_t i = 0; i < turns; ++i) {
        const std::uint32_t n = testing::scramble(group * 977 + i) % most;
        meet();
        for (std::uint32_t k = rank; k < n; k += size)
          out[k] = static_cast<unsigned char>(testing::scramble(group + i * 131 + k));
        meet();
        well &= sendto(c, s, out, n, 0, &to, sizeof to) == static_cast<long>(n);
        sockaddr_in from{};
        socklen_t length = sizeof from;
        well &= recvfrom(c, s, in, most, 0, &from, &length) == static_cast<long>(n);
        meet();
        if (rank == 0)
          well &= length == sizeof from && from.sin_port == to.sin_port &&
                  from.sin_addr.s_addr == to.sin_addr.s_addr;
        for (std::uint32_t k = rank; k < n; k += size) well &= in[k] == out[k];
      }
      well &= close(c, s) == 0;
      simt::atomic_ref<std::uint32_t>(*good).fetch_add(well, simt::relaxed);
    });
  }
};

template <by Who>
void expect_echo(device d, std::uint32_t groups, std::uint32_t most) {
  const peer p(SOCK_DGRAM);
  const auto turns = static_cast<std::uint32_t>(testing::scaled(8, 2));
  std::atomic<bool> ends{false};
  std::uint32_t good = 0;
  {
    beside echoes([&] {
      std::vector<char> text(70000);
      const timeval tick{0, 50000};
      ::setsockopt(p.fd(), SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
      while (!ends) {
        sockaddr_in from{};
        socklen_t length = sizeof from;
        auto* at = reinterpret_cast<sockaddr*>(&from);
        const ssize_t n = ::recvfrom(p.fd(), text.data(), text.size(), 0, at, &length);
        if (n >= 0) ::sendto(p.fd(), text.data(), static_cast<std::size_t>(n), 0, at, length);
      }
    });
    server s(d, networked());
    simt::buffer<unsigned char> memory(d, simt::space::device, std::size_t{groups} * 2 * most);
    simt::buffer<std::uint32_t> counts(d, simt::space::device, 1);
    simt::run(d, {2, 64}, echo<Who>{s.ref(), p.port(), turns, most, memory.data(), counts.data()});
    counts.copy_to({&good, 1});
    EXPECT_EQ(s.statistics().denied, 0u);
    ends = true;
  }
  EXPECT_EQ(good, 128u) << most;
}

TEST_P(network, echoes_datagrams_of_every_group) {
  expect_echo<by::lane>(where(), 128, 60);
  expect_echo<by::warp>(where(), 4, 3000);
  expect_echo<by::block>(where(), 2, 60000);
}

// All lanes wait on one socket.
struct take_one {
  server_ref sys;
  int socket;
  std::uint32_t* got;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    std::uint32_t value = 0;
    got[self] = recv(sys, socket, &value, sizeof value) == sizeof value ? value : ~0u;
  }
};

TEST_P(network, gives_each_waiting_lane_one_datagram) {
  const peer in(SOCK_DGRAM), out(SOCK_DGRAM);
  out.connect_to(in.port());
  server s(where(), networked());
  s.grant(in.fd());
  auto got = make<std::uint32_t>(256);
  {
    beside sends([&] {
      for (std::uint32_t i = 0; i < 256; ++i) {
        if (i % 16 == 0) std::this_thread::sleep_for(2ms);
        EXPECT_EQ(::send(out.fd(), &i, sizeof i, 0), 4);
      }
    });
    run(4, 64, take_one{s.ref(), in.fd(), got.data()});
  }
  const auto all = contents(got);
  std::set<std::uint32_t> once(all.begin(), all.end());
  EXPECT_EQ(once.size(), 256u);
  EXPECT_EQ(*once.rbegin(), 255u);
}

// ---- streams ----

// Lanes accept and answer until all connections have been served: a number a connection, doubled.
struct serve_numbers {
  server_ref sys;
  int listener;
  std::uint32_t connections;
  std::uint32_t* taken;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    std::uint32_t bad = 0;
    while (simt::atomic_ref<std::uint32_t>(*taken).fetch_add(1, simt::relaxed) < connections) {
      sockaddr_in from{};
      socklen_t length = sizeof from;
      const int s = static_cast<int>(accept(sys, listener, &from, &length));
      bad += s < 0 || length != sizeof from || from.sin_family != AF_INET;
      std::uint32_t value = 0;
      bad += recv(sys, s, &value, sizeof value) != sizeof value;
      value *= 2;
      bad += send(sys, s, &value, sizeof value) != sizeof value;
      char end = 0;
      bad += recv(sys, s, &end, 1) != 0;  // the peer has gone
      bad += shutdown(sys, s, SHUT_RDWR) == -EBADF;
      bad += close(sys, s) != 0;
    }
    if (bad != 0) simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(bad, simt::relaxed);
  }
};

struct open_listener {
  server_ref sys;
  std::int64_t* r;  // descriptor, port
  GROSR_DEVICE void operator()() const {
    const auto c = sys.warp();
    const int s = static_cast<int>(socket(c, AF_INET, SOCK_STREAM));
    const int yes = 1;
    const long set = setsockopt(c, s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const sockaddr_in any = loopback(0);
    const long bound = bind(c, s, &any, sizeof any);
    const long listens = listen(c, s, 128);
    sockaddr_in name{};
    socklen_t length = sizeof name;
    const long named = getsockname(c, s, &name, &length);
    int kind = 0;
    socklen_t kind_length = sizeof kind;
    const long told = getsockopt(c, s, SOL_SOCKET, SO_TYPE, &kind, &kind_length);
    if (simt::lane_id() != 0) return;
    r[0] = s;
    r[1] = static_cast<std::uint16_t>(name.sin_port << 8 | name.sin_port >> 8);
    r[2] = set | bound | listens | named | told;
    r[3] = length == sizeof name && kind == SOCK_STREAM && kind_length == sizeof kind;
  }
};

TEST_P(network, serves_more_connections_than_lanes) {
  server s(where(), networked());
  auto r = make<std::int64_t>(4);
  run(1, 32, open_listener{s.ref(), r.data()});
  const auto opened = contents(r);
  EXPECT_EQ(opened[2], 0);
  EXPECT_EQ(opened[3], 1);
  const auto port = static_cast<std::uint32_t>(opened[1]);
  auto counts = make<std::uint32_t>(2);
  {
    std::vector<std::unique_ptr<beside>> clients;
    for (std::uint32_t t = 0; t < 4; ++t)
      clients.push_back(std::make_unique<beside>([=] {
        for (std::uint32_t i = 0; i < 50; ++i) {
          const peer p(SOCK_STREAM);
          p.connect_to(port);
          std::uint32_t value = t * 1000 + i, back = 0;
          EXPECT_EQ(::send(p.fd(), &value, sizeof value, MSG_NOSIGNAL), 4);
          EXPECT_EQ(::recv(p.fd(), &back, sizeof back, MSG_WAITALL), 4);
          EXPECT_EQ(back, 2 * value);
        }
      }));
    run(1, 64,
        serve_numbers{s.ref(), static_cast<int>(opened[0]), 200, counts.data(), counts.data() + 1});
  }
  EXPECT_EQ(contents(counts)[1], 0u);
}

// Blocks connect, send much, and read an answer.
struct upload {
  server_ref sys;
  std::uint32_t port;
  unsigned char* memory;
  std::uint64_t bytes;
  std::int64_t* r;  // 4 a block
  GROSR_DEVICE void operator()() const {
    const auto c = sys.block();
    unsigned char* own = memory + simt::block_id() * bytes;
    for (std::uint64_t i = simt::thread_id(); i < bytes; i += simt::block_size())
      own[i] = static_cast<unsigned char>(testing::scramble(static_cast<std::uint32_t>(i)));
    const int s = static_cast<int>(socket(c, AF_INET, SOCK_STREAM));
    const sockaddr_in to = loopback(port);
    const long connected = connect(c, s, &to, sizeof to);
    const long sent = send(c, s, own, bytes);
    const long ended = shutdown(c, s, SHUT_WR);
    const long got = recv(c, s, own, bytes);
    const long closed = close(c, s);
    if (simt::thread_id() != 0) return;
    std::int64_t* mine = r + 4 * simt::block_id();
    mine[0] = connected;
    mine[1] = sent;
    mine[2] = ended | closed;
    mine[3] = got == 8 && own[7] == 7;
  }
};

TEST_P(network, sends_a_megabyte_to_readers_that_take_their_time) {
  constexpr std::size_t bytes = (1 << 20) + 77;
  const peer p(SOCK_STREAM, true);
  server s(where(), networked());
  auto memory = make<unsigned char>(2 * bytes);
  auto r = make<std::int64_t>(8);
  std::atomic<std::size_t> wrong{0}, received{0};
  {
    const auto reads = [&] {
      const int fd = p.accepted();
      std::vector<unsigned char> piece(50000);
      std::size_t at = 0;
      for (ssize_t n = 0; (n = ::recv(fd, piece.data(), piece.size(), 0)) > 0;) {
        for (ssize_t k = 0; k < n; ++k)
          wrong += piece[static_cast<std::size_t>(k)] !=
                   static_cast<unsigned char>(testing::scramble(static_cast<std::uint32_t>(at++)));
        std::this_thread::sleep_for(1ms);
      }
      received += at;
      const unsigned char answer[8] = {0, 1, 2, 3, 4, 5, 6, 7};
      ::send(fd, answer, sizeof answer, MSG_NOSIGNAL);
      ::close(fd);
    };
    beside one(reads), other(reads);
    run(2, 96, upload{s.ref(), p.port(), memory.data(), bytes, r.data()});
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(received, 2 * bytes);
  const auto n = static_cast<std::int64_t>(bytes);
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, n, 0, 1, 0, n, 0, 1}));
}

}  // namespace
}  // namespace grosr::sys
