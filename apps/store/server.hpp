// Servers that keep values by key: tasks on a device, and threads of the CPU.
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
  std::size_t memory = 0;  ///< for keys and values, of a device; 0: by the device
};

/// How tasks answer.
struct device_options {
  unsigned workers = 0;      ///< warps that answer; usual_workers()
  unsigned connections = 0;  ///< at a time; usual_connections()
  unsigned looks = 16;       ///< how often a task receives what is there before it awaits more
  double idle = 5;     ///< seconds without a request, after which a peer makes way for another
  unsigned batch = 0;  ///< calls that a service thread takes at once; 0: chosen
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

/// Tasks accept connections and answer their requests; no warp waits for a peer. A client that
/// comes when all connections are taken waits in the backlog, until one ends or one that is idle
/// makes way.
std::unique_ptr<server> serve_on(const device& d, const server_options& o, const device_options& k);

/// Threads of the CPU, each with an epoll of its connections, and a table whose shards have locks.
std::unique_ptr<server> serve_on_cpu(const server_options& o);

unsigned usual_workers(const device& d);
unsigned usual_connections(const device& d, std::uint32_t longest_value);

}  // namespace grosr::store
