// Servers that send each datagram back where it came from: kernels, and threads of the CPU.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <memory>

#include "grosr/simt/device.hpp"
#include "grosr/sys/caller.hpp"
#include "net/calls_made.hpp"

namespace grosr::echo {

/// What both kinds are told. A thread of the CPU makes all its calls itself; a kernel's are made by
/// as many service threads.
struct server_options {
  sockaddr_in name{};  ///< the port may be 0: a free one
  unsigned threads = 1;
  unsigned sockets = 1;        ///< with that name, among which Linux spreads the clients
  std::uint32_t bytes = 4096;  ///< of the longest datagram that is answered
};

/// How kernels answer.
struct kernel_options {
  sys::granularity who = sys::granularity::warp;  ///< warp or block
  unsigned groups = 0;  ///< warps or blocks; 0: as many as the device likes
  bool polls = false;   ///< ask again where there is nothing, rather than wait
  unsigned batch = 0;   ///< calls that a service thread takes at once; 0: chosen
};

struct totals {
  std::uint64_t datagrams = 0;  ///< answered
  std::uint64_t bytes = 0;      ///< in these
  std::uint64_t sum = 0;        ///< of the values of these bytes: the server has seen them
  std::uint64_t too_long = 0;   ///< longer than `bytes`: dropped
  std::uint64_t failed = 0;     ///< receives and sends that failed
};

class server {
 public:
  virtual ~server() = default;
  virtual sockaddr_in name() const = 0;
  /// Throws when it cannot go on, e.g. because the device is lost.
  virtual void check() = 0;
  /// Stops answering: what it did.
  virtual totals stop() = 0;
  virtual tool::calls_made calls() const { return {}; }
};

/// Warps or blocks of one kernel: each receives a datagram, looks at its bytes, sends it back.
std::unique_ptr<server> serve_on(const device& d, const server_options& o, const kernel_options& k);

/// Threads that do the same. `batch`: datagrams a call, by recvmmsg and sendmmsg; 1: by recvfrom
/// and sendto.
std::unique_ptr<server> serve_on_cpu(const server_options& o, unsigned batch);

/// How many groups serve_on() uses where it may choose.
unsigned usual_groups(const device& d);

}  // namespace grosr::echo
