// What a graph may be told, and what it tells of its channels.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "grosr/run/options.hpp"

namespace grosr {

struct element_graph_options {
  runtime_options runtime = {};
  /// wait() gives up after so long and says which channel most went into: for graphs with cycles,
  /// which may never come to rest. 0: it waits as long as it takes.
  std::chrono::milliseconds limit{0};
  /// Elements on their way to functions of the host, 64 bytes of pinned memory each; a power of
  /// two, from 32.
  std::uint32_t host_records = 4096;
};

/// What went through a channel.
struct channel_stats {
  std::string name, function;
  std::uint64_t from_host = 0;  ///< elements that the host pushed: they are served by themselves
  std::uint64_t pushed = 0;     ///< elements that went into the channel
  std::uint64_t refused = 0;    ///< that push() found no room for: tasks of their own, or lost
  std::uint64_t alone = 0;      ///< tasks of their own, too: nothing else was on its way (push())
  std::uint64_t batches = 0;    ///< handed to consumers
  std::uint64_t padded = 0;     ///< what these had less than full ones have
  std::uint64_t waiting = 0;    ///< in the channel now, with padding that nobody has taken yet
  std::uint32_t capacity = 0, batch = 0;
  std::size_t bytes = 0;  ///< device memory
};

}  // namespace grosr
