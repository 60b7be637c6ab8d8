#include "flow/port_wire.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "flow/refuse.hpp"

namespace grosr::flow {

block_template template_of(const port_welcome& w, const char* name) {
  element_type e;
  e.is = static_cast<element_type::kind>(w.element_kind);
  e.bytes = w.element_bytes;
  e.name = name;
  return block_template(static_cast<block_template::records>(w.layout), e,
                        {w.extents[0], w.extents[1], w.extents[2]});
}

owned_descriptor::~owned_descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

// ---- memory ----

void read_shared(const simt::shareable_memory& from, std::size_t at, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = pread(from.file(), static_cast<std::byte*>(to) + done, bytes - done,
                            static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_errno("pread");
    done += static_cast<std::size_t>(n);
  }
}

// ---- sockets ----

port_peer peer_of(int socket) {
  ucred is = {};
  socklen_t bytes = sizeof is;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &is, &bytes) != 0) throw_errno("SO_PEERCRED");
  return {is.uid, is.pid};
}

bool is_among(const port_users& users, uid_t user) {
  if (!users) return user == geteuid();
  return std::find(users->begin(), users->end(), user) != users->end();
}

port_sent send_message(int socket, const void* message, std::size_t bytes, int file) {
  iovec part{const_cast<void*>(message), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr m = {};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  if (file >= 0) {
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &file, sizeof file);
  }
  for (;;) {
    if (sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return port_sent::yes;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == ENOBUFS ? port_sent::full : port_sent::gone;
  }
}

void send_text(int socket, port_word word, errc code, const std::string& text) {
  port_text t = {};
  t.head = {word, static_cast<std::uint32_t>(code), 0};
  text.copy(t.text, sizeof t.text - 1);
  send_message(socket, &t, sizeof t);
}

port_received receive_message(int socket, void* to, std::size_t room, bool takes_file) {
  iovec part{to, room};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  for (;;) {
    msghdr m = {};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    if (takes_file) {
      m.msg_control = control;
      m.msg_controllen = CMSG_LEN(sizeof(int));  // there is room for a second one behind
    }
    port_received r;
    r.bytes = recvmsg(socket, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
    if (r.bytes < 0) {
      // Linux says once that the other end closed with messages unread, before it gives those that
      // are here.
      if (errno == EINTR || errno == ECONNRESET) continue;
      if (errno != EAGAIN) r.bytes = 0;
      return r;
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); takes_file && c != nullptr; c = CMSG_NXTHDR(&m, c))
      if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        int file = -1;
        std::memcpy(&file, CMSG_DATA(c), sizeof file);
        r.file = owned_descriptor(file);
      }
    return r;
  }
}

bool wait_for_descriptor(int fd, short events, port_clock::time_point until, int also) {
  for (;;) {
    pollfd p[] = {{fd, events, 0}, {also, POLLIN, 0}};
    timespec left{};
    const bool limited = until != port_clock::time_point::max();
    if (limited) {
      const auto ns = std::max(std::chrono::nanoseconds(until - port_clock::now()),
                               std::chrono::nanoseconds(0));
      left.tv_sec = ns.count() / 1'000'000'000;
      left.tv_nsec = ns.count() % 1'000'000'000;
    }
    const int ready = ppoll(p, 2, limited ? &left : nullptr, nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw_errno("ppoll");
  }
}

port_clock::time_point after(std::optional<std::chrono::nanoseconds> limit) {
  const auto now = port_clock::now();
  return limit && *limit < port_clock::time_point::max() - now ? now + *limit
                                                               : port_clock::time_point::max();
}

}  // namespace grosr::flow
