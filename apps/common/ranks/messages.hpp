// What messages of ranks took.
#pragma once

#include <algorithm>
#include <vector>

#include "grosr/net/options.hpp"
#include "measure/row.hpp"

namespace grosr::ranks {

/// Of all ranks, so far.
struct messages {
  std::uint64_t words = 0, deferred = 0;
  std::size_t memory = 0;  ///< of the rank that has the most

  explicit messages(const std::vector<net::rank_stats>& ranks) {
    for (const net::rank_stats& s : ranks) {
      words += s.words_sent;
      deferred += s.deferred;
      memory = std::max(memory, s.memory);
    }
  }
  /// Sets them, and by a key of its own how many of the `sent` words each of `count` took.
  tool::row& add_to(tool::row& r, const char* key, std::uint64_t sent, double count) const {
    return r.set(key, static_cast<double>(sent) / std::max(count, 1.0))
        .set("deferred", static_cast<double>(deferred))
        .set("rank_memory_bytes", static_cast<double>(memory));
  }
};

}  // namespace grosr::ranks
