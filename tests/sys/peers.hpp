// What tests of sockets share: the host's ends of connections over the loopback.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "sys/calls.hpp"

namespace grosr::sys {

GROSR_DEVICE inline sockaddr_in loopback(std::uint32_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = static_cast<std::uint16_t>(port << 8 | port >> 8);
  a.sin_addr.s_addr = 0x0100007f;
  return a;
}

// A socket of the host's, on the loopback.
class peer {
 public:
  explicit peer(int type, bool listens = false) : fd_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    sockaddr_in a = loopback(0);
    socklen_t bytes = sizeof a;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&a), bytes), 0);
    if (listens) {
      EXPECT_EQ(::listen(fd_, 128), 0);
    }
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &bytes), 0);
    port_ = ntohs(a.sin_port);
    limit(fd_);
  }
  peer(const peer&) = delete;
  ~peer() { ::close(fd_); }
  int fd() const { return fd_; }
  std::uint32_t port() const { return port_; }
  int accepted() const {
    const int fd = ::accept(fd_, nullptr, nullptr);
    limit(fd);
    return fd;
  }
  void connect_to(std::uint32_t port) const {
    const sockaddr_in a = loopback(port);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&a), sizeof a), 0) << errno;
  }

 private:
  static void limit(int fd) {  // a test that fails ends
    const timeval t{20, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  }
  int fd_;
  std::uint32_t port_ = 0;
};

inline options networked() {
  options o;
  o.threads = 2;
  o.policy.network = true;
  o.use_arena = true;
  return o;
}

/// A thread that is joined at the end of its scope.
class beside {
 public:
  template <class F>
  explicit beside(F f) : thread_(std::move(f)) {}
  ~beside() { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace grosr::sys
