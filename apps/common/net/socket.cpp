#include "net/socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "cli/errors.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

const char* kind_of(int type) { return type == SOCK_STREAM ? "TCP" : "UDP"; }

const sockaddr* generic(const sockaddr_in& name) {
  return reinterpret_cast<const sockaddr*>(&name);
}

descriptor make_socket(int type) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
  if (fd < 0)
    throw std::runtime_error(
        fmt::format("a {} socket cannot be made ({}); raise the limit of open "
                    "files (ulimit -n) or ask for fewer clients",
                    kind_of(type), std::strerror(errno)));
  return descriptor(fd);
}

void set_up(int fd, int type) {
  const int on = 1, room = datagram_room;
  if (type == SOCK_STREAM)
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  else
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
}

descriptor open_socket(int type, sockaddr_in& name, bool shared) {
  descriptor s = make_socket(type);
  const int on = 1;
  const int option = shared ? SO_REUSEPORT : SO_REUSEADDR;
  if (shared || type == SOCK_STREAM) ::setsockopt(s.fd(), SOL_SOCKET, option, &on, sizeof on);
  set_up(s.fd(), type);
  socklen_t bytes = sizeof name;
  if (::bind(s.fd(), generic(name), bytes) < 0) refuse_name(type, name, errno);
  ::getsockname(s.fd(), reinterpret_cast<sockaddr*>(&name), &bytes);
  if (type == SOCK_STREAM && ::listen(s.fd(), 1024) < 0) refuse_name(type, name, errno);
  return s;
}

}  // namespace

sockaddr_in name_of(const std::string& address, unsigned port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1)
    throw usage_error(fmt::format(
        "--address is \"{}\"; give the IPv4 address of an interface, such as 127.0.0.1 or 0.0.0.0",
        one_line(address)));
  return name;
}

std::string text_of(const sockaddr_in& name) {
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &name.sin_addr, text, sizeof text);
  return fmt::format("{}:{}", text, port_of(name));
}

void refuse_name(int type, const sockaddr_in& name, int problem) {
  const char* advice =
      problem == EADDRINUSE ? "another program has it: give another --port, or 0 for a free one"
      : problem == EACCES   ? "ports below 1024 need privileges: give a higher --port"
                            : "give the --address of an interface of this machine";
  throw usage_error(fmt::format("{} {} cannot be served ({}); {}", kind_of(type), text_of(name),
                                std::strerror(problem), advice));
}

std::vector<descriptor> open_sockets(int type, sockaddr_in& name, unsigned count) {
  std::vector<descriptor> all;
  // A program that shares a name would not notice that another one has it, and shares it too.
  all.push_back(open_socket(type, name, false));
  if (count == 1) return all;
  all.clear();
  for (unsigned i = 0; i < count; ++i) all.push_back(open_socket(type, name, true));
  return all;
}

descriptor connect_to(int type, const sockaddr_in& name) {
  descriptor s = make_socket(type);
  if (::connect(s.fd(), generic(name), sizeof name) < 0)
    throw std::runtime_error(fmt::format("{} {} does not answer ({}); is the server running?",
                                         kind_of(type), text_of(name), std::strerror(errno)));
  set_up(s.fd(), type);
  return s;
}

}  // namespace grosr::tool
