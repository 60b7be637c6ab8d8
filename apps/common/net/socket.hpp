// Sockets of the host's own, for the CPU's servers and for clients. IPv4.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace grosr::tool {

/// Owns a descriptor.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

/// Throws usage_error unless `address` is four numbers with dots.
sockaddr_in name_of(const std::string& address, unsigned port);
std::string text_of(const sockaddr_in& name);
inline unsigned port_of(const sockaddr_in& name) { return ntohs(name.sin_port); }

/// What is asked for, for datagrams that came and were not received; Linux gives what it allows.
inline constexpr int datagram_room = 1 << 20;

/// `count` sockets with one name, among which Linux spreads what comes; those of streams listen.
/// `name` gets the port where that is 0. Throws usage_error when another program has the name.
std::vector<descriptor> open_sockets(int type, sockaddr_in& name, unsigned count);

/// A socket that is connected. Throws std::runtime_error.
descriptor connect_to(int type, const sockaddr_in& name);

/// Throws what says that the name cannot be had; `problem` is an errno.
[[noreturn]] void refuse_name(int type, const sockaddr_in& name, int problem);

}  // namespace grosr::tool
