// Ranks that share a device, and what they send each other: chains in which each message answers
// the one before, and floods of messages from all lanes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grosr/net/options.hpp"

namespace grosr::tool {

/// A chain of rounds that begins and ends on rank 0. The other end is rank 1.
enum class chain_of : std::uint8_t {
  forks,  ///< a task forked on rank 0 and joined
  calls,  ///< the same task called on rank 1: its result, of 8 bytes, comes back
  sends,  ///< a task of one word sent to rank 1, which sends one back
  gets,   ///< an element of rank 1
};

struct chain_times {
  std::vector<double> us;  ///< of each round, by the device's clock
  std::string wrong;       ///< empty: all results were right
};

/// Lane tasks that each send so many tasks of `words` words, which count themselves where they run.
struct flood {
  enum class pattern : std::uint8_t {
    to_each,   ///< each rank to so many ranks after it, in turn: lanes that send together differ
    to_first,  ///< all other ranks to rank 0
    in_place,  ///< rank 0 to itself: spawned there
  };
  pattern how = pattern::to_each;
  std::uint32_t destinations = 1;  ///< of to_each
  std::uint32_t words = 1;         ///< of a message, 1 to 4: 12 bytes of task each
  std::uint32_t tasks = 1, each = 1;
};

/// Warp tasks on ranks 0 and 1, of which so many lanes together add to elements of the other rank.
struct group_flood {
  std::uint32_t lanes = 1;
  std::uint32_t tasks = 1, each = 1;
};

class messaging_ranks {
 public:
  virtual ~messaging_ranks() = default;

  virtual chain_times run(chain_of what, std::uint32_t rounds) = 0;
  /// Microseconds from the first submit until nothing is under way.
  virtual double run(const flood& f) = 0;
  virtual double run(const group_flood& f) = 0;
  virtual std::uint64_t messages(const flood& f) const = 0;
  virtual std::uint64_t messages(const group_flood& f) const = 0;

  /// What is wrong when all that was sent so far has run once, and nothing is under way; else
  /// empty.
  virtual std::string wrong() = 0;

  virtual std::uint64_t words_sent() const = 0;  ///< padding included
  virtual std::uint64_t deferred() const = 0;
  virtual std::size_t memory() const = 0;  ///< of links, of the rank that has most of it
  virtual unsigned workers() = 0;          ///< of rank 0
};

/// Ranks that divide the device. Chains have at most `rounds` rounds.
std::unique_ptr<messaging_ranks> make_messaging_ranks(const device& where, std::uint32_t ranks,
                                                      std::uint32_t rounds, net::path path);

}  // namespace grosr::tool
