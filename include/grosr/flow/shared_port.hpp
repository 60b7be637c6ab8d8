// Ports with names: ends of a graph's channels that other processes of the machine use.
//
//   auto camera = graph.source<float>(smoother["frame"]);
//   auto counts = graph.sink<std::uint32_t>(counter["count"]);
//   graph.compile();
//   flow::shared_port frames_in(camera, "frames"), counts_out(counts, "counts");
//
// grosr/flow/remote_port.hpp has what the other processes do, and remote_port_on_device.hpp what
// they do where slots lie in memory of a device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grosr/flow/graph.hpp"
#include "grosr/simt/process.hpp"

namespace grosr::flow {

struct shared_port_options {
  unsigned slots = 4;    ///< blocks in the memory shared with each client, 1 to 64
  unsigned clients = 8;  ///< that may be connected at a time, at least 1
  /// A device of the executor in whose memory slots lie: clients use remote_port_on_device.hpp.
  /// A sink's channel_options::prefetch is off from then on. None: in memory of the host.
  std::optional<device> slots_on = {};
  /// Users, by their number, whose processes may connect. None: the own user alone. Other users
  /// need a folder that they can reach.
  std::optional<std::vector<std::uint32_t>> users = {};
  /// Where the name lies. Empty: $XDG_RUNTIME_DIR/grosr where XDG_RUNTIME_DIR is a folder of the
  /// own user, else /tmp/grosr-UID, which no other user can reach.
  std::string folder = {};
};

/// Counts since the port was made.
struct shared_port_stats {
  unsigned clients = 0;        ///< that are connected now, or whose blocks wait for room
  std::uint64_t connects = 0;  ///< clients that were let in
  std::uint64_t refused = 0;   ///< that were not
  std::uint64_t expelled = 0;  ///< that broke the protocol, or did not read what was sent to them
  std::uint64_t blocks = 0;    ///< that came from clients or went to them
};

/// Serves an end of a channel under a name, with a thread of its own. Blocks that several clients
/// push go into the channel by turns; a block that clients pull goes to the one that has waited
/// longest. The program may go on to use the source or sink. Thread-safe.
class shared_port {
 public:
  /// Throws error(invalid_option) for an option outside its range, a name that is no name or that
  /// another process serves, which it says, a folder that belongs to other users, an executor
  /// without threads, and slots on a device that it does not have; error(not_built) where memory of
  /// that device cannot be shared; error(misuse) before compile(); error(out_of_memory); what has
  /// ended the graph.
  shared_port(const any_source& of, const std::string& name,
              const shared_port_options& options = {});
  shared_port(const any_sink& of, const std::string& name, const shared_port_options& options = {});
  /// Clients' calls throw error(stopped) from now on. Blocks that clients have pushed and the
  /// channel has not taken are lost.
  ~shared_port();
  shared_port(const shared_port&) = delete;

  shared_port_stats stats() const;
  /// Why it serves nobody any more: the graph has ended, or memory has. Empty while it serves.
  std::string why_ended() const;

 private:
  class server;
  std::unique_ptr<server, simt::not_in_a_fork> server_;
};

}  // namespace grosr::flow
