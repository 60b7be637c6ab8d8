#include "fuzz/fuzz_peers.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "grosr/simt/error.hpp"

namespace grosr::tool {
namespace {

int on_loopback(int type, std::uint16_t& port) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof name;
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&name), bytes) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0)
    throw error(errc::invalid_option, "open a socket on the loopback: not possible");
  port = ntohs(name.sin_port);
  return fd;
}

void reset(int fd) {
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd);
}

}  // namespace

fuzz_peers::fuzz_peers(std::uint64_t seed)
    : tcp_(on_loopback(SOCK_STREAM, tcp_port_)), udp_(on_loopback(SOCK_DGRAM, udp_port_)) {
  ::listen(tcp_, 16);
  thread_ = std::thread([this, seed] { run(seed); });
}

fuzz_peers::~fuzz_peers() {
  ends_ = true;
  thread_.join();
  ::close(tcp_);
  ::close(udp_);
}

void fuzz_peers::run(std::uint64_t seed) {
  std::mt19937_64 dice(seed);
  std::vector<pollfd> all{{tcp_, POLLIN, 0}, {udp_, POLLIN, 0}};
  std::vector<char> some(100000, 'p');
  while (!ends_) {
    ::poll(all.data(), all.size(), 5);
    if ((all[0].revents & POLLIN) != 0) {
      const int fd = ::accept4(tcp_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0 && (all.size() > 100 || dice() % 4 == 0))
        dice() % 2 != 0 ? reset(fd) : static_cast<void>(::close(fd));
      else if (fd >= 0)
        all.push_back({fd, POLLIN, 0});
    }
    if ((all[1].revents & POLLIN) != 0) {
      sockaddr_in from{};
      socklen_t bytes = sizeof from;
      const ssize_t n =
          ::recvfrom(udp_, some.data(), some.size(), 0, reinterpret_cast<sockaddr*>(&from), &bytes);
      if (n >= 0 && dice() % 4 != 0)
        ::sendto(udp_, some.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL,
                 reinterpret_cast<sockaddr*>(&from), bytes);
    }
    for (std::size_t i = 2; i < all.size(); ++i) {
      pollfd& p = all[i];
      bool ended = dice() % 64 == 0;
      if ((p.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        const ssize_t n = ::recv(p.fd, some.data(), 1 + dice() % some.size(), 0);
        ended |= n <= 0;
        if (n > 0 && dice() % 2 == 0)
          ::send(p.fd, some.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL);
      }
      if (dice() % 16 == 0) ::send(p.fd, some.data(), dice() % some.size(), MSG_NOSIGNAL);
      if (!ended) continue;
      dice() % 2 != 0 ? reset(p.fd) : static_cast<void>(::close(p.fd));
      p = all.back();
      all.pop_back();
      --i;
    }
  }
  for (std::size_t i = 2; i < all.size(); ++i) ::close(all[i].fd);
}

}  // namespace grosr::tool
