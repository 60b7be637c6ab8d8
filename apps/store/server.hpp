// Servers that keep values by key: kernels, and threads of the CPU.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <memory>

#include "grosr/simt/device.hpp"
#include "net/calls_made.hpp"
#include "session.hpp"

namespace grosr::store {

struct server_options {
  sockaddr_in name{};    ///< the port may be 0: a free one
  unsigned threads = 2;  ///< service threads, or threads of the CPU
  std::uint32_t longest_value = 8192;
  std::size_t memory = 0;  ///< for keys and values, of a kernel; 0: by the device
};

/// How kernels answer.
struct kernel_options {
  unsigned workers = 0;  ///< warps, each with one connection at a time; 0: by the device
  unsigned looks = 0;    ///< how often a warp looks for a request before it waits for one
  double idle = 5;       ///< seconds without a request, after which a peer makes way for another
  unsigned batch = 0;    ///< calls that a service thread takes at once; 0: chosen
};

class server {
 public:
  virtual ~server() = default;
  virtual sockaddr_in name() const = 0;
  /// Throws when it cannot go on, e.g. because the device is lost.
  virtual void check() = 0;
  /// Ends all connections: what it did.
  virtual totals stop() = 0;
  /// After stop(): how many keys there are. Throws std::runtime_error if memory was lost.
  virtual std::uint64_t items() = 0;
  virtual tool::calls_made calls() const { return {}; }
};

/// Each warp of a kernel accepts a connection, answers its requests until it ends, and takes the
/// next. A client that comes when all warps are taken waits in the backlog, until a connection ends
/// or one that is idle makes way.
std::unique_ptr<server> serve_on(const device& d, const server_options& o, const kernel_options& k);

/// Threads of the CPU, each with an epoll of its connections, and a table whose shards have locks.
std::unique_ptr<server> serve_on_cpu(const server_options& o);

unsigned usual_workers(const device& d);

}  // namespace grosr::store
