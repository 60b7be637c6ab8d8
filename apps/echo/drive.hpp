// Clients: threads with connected sockets, each of which keeps some datagrams under way.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "measure/samples.hpp"

namespace grosr::echo {

struct drive_options {
  sockaddr_in server{};
  std::uint32_t bytes = 64;  ///< of a datagram, at least least_bytes
  unsigned clients = 4;      ///< threads
  unsigned sockets = 8;      ///< of each
  unsigned window = 4;       ///< datagrams that a socket has under way
  unsigned lost_after_ms = 50;
  double seconds = 1;
};
inline constexpr std::uint32_t least_bytes = 16;

struct driven {
  double seconds = 0;
  std::uint64_t echoed = 0;  ///< in these seconds
  std::uint64_t wrong = 0;   ///< since the start: echoes with other bytes than were sent
  std::uint64_t lost = 0;    ///< since the start: not back after lost_after_ms
  double client_cpu_s = 0;
  double others_cpu_s = 0;   ///< of the rest of this process
  tool::samples round_trip;  ///< of some of them
};

/// Every echo's length and head are looked at, and all bytes of one in 64. Throws
/// std::runtime_error when there is no server.
driven drive(const drive_options& o);

}  // namespace grosr::echo
