// Sockets. Names, arguments and results are those of `man 2`; errors come as negative errno. The
// policy must allow the network: AF_INET and AF_INET6, streams and datagrams; other families and
// SOCK_RAW are -EPERM. Calls wait as on Linux, and hold no thread of the host meanwhile:
// SOCK_NONBLOCK, MSG_DONTWAIT, SO_RCVTIMEO and SO_SNDTIMEO say otherwise; MSG_WAITALL does nothing.
// A peer that has gone is an error, -EPIPE or -ECONNRESET, never a signal.
//
// close() ends calls that wait for the socket, with -EBADF. Names may lie in device memory, as
// everything else; `name` and `bytes` where one comes back may both be null.
//
// The flags and types of Linux come from its own headers, <sys/socket.h>, <netinet/in.h> and
// <poll.h>, which a file that names them includes.
#pragma once

#include "grosr/sys/detail/wrap.hpp"

struct pollfd;  // of <poll.h>

namespace grosr::sys {

using socklen_t = unsigned;    ///< Linux's, without its header
using nfds_t = unsigned long;  ///< likewise

namespace detail {

/// A name that goes to the server. Linux refuses one that is longer than any: it sees that much.
GROSR_DEVICE inline socklen_t length_of_name(socklen_t bytes) {
  return bytes <= name_bytes ? bytes : name_bytes + 1;
}

/// A name of a socket; of one that is too long, which Linux refuses, what a name may have.
GROSR_DEVICE inline part name_to(unsigned argument, const void* name, socklen_t bytes) {
  return bytes_to(argument, name, bytes < name_bytes ? bytes : name_bytes);
}

/// The two parts of a value that comes back with its length, as arguments `argument` and the next.
template <unsigned First, unsigned Parts, bulk Bulk>
GROSR_DEVICE void value_back(operation<Parts, Bulk>& o, unsigned argument, void* value,
                             socklen_t* bytes, std::uint32_t most) {
  const bool asks = value != nullptr;
  std::uint32_t room = asks && bytes != nullptr ? *bytes : 0;
  if (room > most) room = most;
  // There and back: what Linux leaves as it is, stays as it is.
  o.part_of[First] = {value, room, static_cast<std::uint8_t>(argument), travel::both};
  o.part_of[First + 1] = {asks ? bytes : nullptr,
                          asks ? static_cast<std::uint32_t>(sizeof *bytes) : 0,
                          static_cast<std::uint8_t>(argument + 1), travel::both};
}

}  // namespace detail

/// A descriptor.
template <class Caller>
GROSR_DEVICE auto socket(const Caller& c, int domain, int type, int protocol = 0) {
  return invoke(c, detail::make<0>(SYS_socket, domain, type, protocol));
}

/// Those of `man 2`: 0, or -errno.
template <class Caller>
GROSR_DEVICE auto bind(const Caller& c, int socket, const void* name, socklen_t bytes) {
  bytes = detail::length_of_name(bytes);
  auto o = detail::make<1>(SYS_bind, socket, name, bytes);
  o.part_of[0] = detail::name_to(1, name, bytes);
  return invoke(c, o);
}

template <class Caller>
GROSR_DEVICE auto listen(const Caller& c, int socket, int most) {
  return invoke(c, detail::make<0>(SYS_listen, socket, most));
}

/// Connects; waits until it is, or has failed.
template <class Caller>
GROSR_DEVICE auto connect(const Caller& c, int socket, const void* name, socklen_t bytes) {
  bytes = detail::length_of_name(bytes);
  auto o = detail::make<1>(SYS_connect, socket, name, bytes);
  o.part_of[0] = detail::name_to(1, name, bytes);
  return invoke(c, o);
}

/// Waits for a connection: its descriptor. `flags`: SOCK_NONBLOCK.
template <class Caller>
GROSR_DEVICE auto accept(const Caller& c, int socket, void* name = nullptr,
                         socklen_t* bytes = nullptr, int flags = 0) {
  auto o = detail::make<2>(SYS_accept4, socket, name, bytes, flags);
  detail::value_back<0>(o, 1, name, bytes, name_bytes);
  return invoke(c, o);
}

/// Sends `bytes`; a datagram to `name`, or where the socket is connected to. How many. A datagram
/// is one call whatever its length; of a stream more than piece_bytes go in pieces, between which
/// others may send.
template <class Caller>
GROSR_DEVICE auto sendto(const Caller& c, int socket, const void* from, std::size_t bytes,
                         int flags, const void* name, socklen_t name_length) {
  name_length = name != nullptr ? detail::length_of_name(name_length) : 0;
  return detail::in_pieces<false>(c, from, bytes, [=](std::size_t at, std::uint32_t now) {
    auto* part_from = static_cast<const unsigned char*>(from) + at;
    auto o =
        detail::make<2, bulk::bytes>(SYS_sendto, socket, part_from, now, flags, name, name_length);
    o.part_of[0] = detail::bytes_to(1, part_from, now);
    o.part_of[1] = detail::name_to(4, name, name_length);
    return o;
  });
}
template <class Caller>
GROSR_DEVICE auto send(const Caller& c, int socket, const void* from, std::size_t bytes,
                       int flags = 0) {
  return detail::in_pieces<false>(c, from, bytes, [=](std::size_t at, std::uint32_t now) {
    auto* part_from = static_cast<const unsigned char*>(from) + at;
    auto o = detail::make<1, bulk::bytes>(SYS_sendto, socket, part_from, now, flags, 0, 0);
    o.part_of[0] = detail::bytes_to(1, part_from, now);
    return o;
  });
}

/// Receives what is there, waiting for some: a datagram, or at most `bytes` and at most what one
/// call brings (piece_bytes of device memory) of a stream. How many; 0 when the peer has ended a
/// stream.
/// `*name_length`: the room for the name, and then the name's length.
template <class Caller>
GROSR_DEVICE auto recvfrom(const Caller& c, int socket, void* to, std::size_t bytes, int flags,
                           void* name, socklen_t* name_length) {
  const std::uint32_t now = detail::at_once(c, to, bytes);
  auto o = detail::make<3, bulk::bytes>(SYS_recvfrom, socket, to, now, flags, name, name_length);
  o.part_of[0] = detail::bytes_from(1, to, now, travel::by_result);
  detail::value_back<1>(o, 4, name, name_length, name_bytes);
  return invoke(c, o);
}
template <class Caller>
GROSR_DEVICE auto recv(const Caller& c, int socket, void* to, std::size_t bytes, int flags = 0) {
  const std::uint32_t now = detail::at_once(c, to, bytes);
  auto o = detail::make<1, bulk::bytes>(SYS_recvfrom, socket, to, now, flags, 0, 0);
  o.part_of[0] = detail::bytes_from(1, to, now, travel::by_result);
  return invoke(c, o);
}

template <class Caller>
GROSR_DEVICE auto shutdown(const Caller& c, int socket, int how) {
  return invoke(c, detail::make<0>(SYS_shutdown, socket, how));
}

/// Sets an option; of its value, at most option_bytes are looked at. -EPERM for those whose values
/// hold pointers or descriptors.
template <class Caller>
GROSR_DEVICE auto setsockopt(const Caller& c, int socket, int level, int option, const void* value,
                             socklen_t bytes) {
  if (bytes > option_bytes) bytes = option_bytes;
  auto o = detail::make<1>(SYS_setsockopt, socket, level, option, value, bytes);
  o.part_of[0] = detail::bytes_to(3, value, bytes);
  return invoke(c, o);
}

/// An option's value, at most option_bytes of it; `*bytes`: the room, and then the value's length.
template <class Caller>
GROSR_DEVICE auto getsockopt(const Caller& c, int socket, int level, int option, void* value,
                             socklen_t* bytes) {
  auto o = detail::make<2>(SYS_getsockopt, socket, level, option, value, bytes);
  detail::value_back<0>(o, 3, value, bytes, option_bytes);
  return invoke(c, o);
}

/// The name of a socket, and of its peer.
template <class Caller>
GROSR_DEVICE auto getsockname(const Caller& c, int socket, void* name, socklen_t* bytes) {
  auto o = detail::make<2>(SYS_getsockname, socket, name, bytes);
  detail::value_back<0>(o, 1, name, bytes, name_bytes);
  return invoke(c, o);
}
template <class Caller>
GROSR_DEVICE auto getpeername(const Caller& c, int socket, void* name, socklen_t* bytes) {
  auto o = detail::make<2>(SYS_getpeername, socket, name, bytes);
  detail::value_back<0>(o, 1, name, bytes, name_bytes);
  return invoke(c, o);
}

/// Waits until one of `count` descriptors is ready, at most `ms` milliseconds (negative: for ever).
/// How many are ready; 0: the time has passed. -EINVAL for more than piece_bytes of them in device
/// memory. A descriptor that is closed meanwhile ends a poll of it alone (POLLNVAL); a poll of
/// several holds on to it, as on Linux.
template <class Caller>
GROSR_DEVICE auto poll(const Caller& c, pollfd* descriptors, nfds_t count, int ms) {
  constexpr nfds_t each = detail::pollfd_bytes, most = piece_bytes / each;
  const bool fits = count <= most || (count <= ~std::uint32_t{0} / each &&
                                      host_sees(c.where(), descriptors, count * each));
#ifdef SYS_poll
  auto o = detail::make<1>(SYS_poll, descriptors, fits ? count : ~nfds_t{0}, ms);
#else
  const long limit[2] = {ms / 1000, ms % 1000 * 1000000L};  // a timespec
  auto o = detail::make<2>(SYS_ppoll, descriptors, fits ? count : ~nfds_t{0},
                           ms < 0 ? nullptr : &limit, 0, 0);
  o.part_of[1] = detail::bytes_to(2, ms < 0 ? nullptr : &limit, ms < 0 ? 0 : sizeof limit);
#endif
  o.part_of[0] = {descriptors, fits ? static_cast<std::uint32_t>(count * each) : 0, 0,
                  travel::both};
  return invoke(c, o);
}

}  // namespace grosr::sys
