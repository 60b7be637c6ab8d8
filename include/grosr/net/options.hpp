// What a world can be told, and what it tells.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "grosr/run/options.hpp"
#include "grosr/simt/device.hpp"

namespace grosr::net {

/// A rank: a device, or so many multiprocessors of it.
struct rank_options {
  grosr::device where;
  /// Of its scheduler. `sms` says how many multiprocessors it has; its kernel never leaves the
  /// device by itself, so that `idle_timeout` is not looked at.
  runtime_options runtime = {};
};

/// How elements of arrays on other ranks are reached.
enum class path : std::uint8_t {
  automatic,  ///< at once where the memory of the other rank can be reached, else by messages
  messages,   ///< always by messages
};

class transport;

struct world_options {
  /// Bytes of a link, a power of two, 8 KiB to 1 MiB: two for each pair of ranks, in the memory of
  /// the one that receives. 0: 64 KiB, and more where a rank has so many warps that what they have
  /// under way at a time would not fit.
  std::uint32_t link_bytes = 0;
  /// Messages that wait for others to fill up their chunk of 2 KiB go at the latest after that,
  /// and at once when their worker has nothing else to do.
  std::chrono::microseconds flush_after{125};
  grosr::net::path path = net::path::automatic;
  /// The processes whose ranks the world has: &net::mpi() (grosr/net/mpi.hpp); null: this one. All
  /// of them make the world, each with ranks of its own, and with the same task types and options.
  transport* processes = nullptr;
  /// How long processes wait for each other where they make worlds and arrays or copy elements; and
  /// in wait_all_for(), when its limit is over.
  std::chrono::seconds collective_within{60};
};

/// Of one rank, so far.
struct rank_stats {
  std::uint64_t words_sent = 0;      ///< of 16 bytes, padding included
  std::uint64_t words_received = 0;  ///< the same, given back by receivers
  std::uint64_t deferred = 0;        ///< times that a message found no room, and became a task
  std::size_t memory = 0;            ///< of its links, bytes; on a device, and pinned
};

}  // namespace grosr::net
