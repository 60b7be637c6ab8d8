// Where the ranks of a world lie: so many on one device.
#pragma once

#include <cstdint>
#include <vector>

#include "grosr/net/options.hpp"

namespace grosr::ranks {

struct placement {
  device where;
  std::uint32_t ranks = 8;
  unsigned sms = 0;              ///< of each rank
  unsigned blocks_per_sm = 0;    ///< of runtime_options
  std::uint32_t link_bytes = 0;  ///< of net::world_options
};

/// What a world is to know of them. `memory_limit`: of runtime_options.
inline std::vector<net::rank_options> ranks_of(const placement& p, std::size_t memory_limit) {
  net::rank_options r{.where = p.where};
  r.runtime.sms = p.sms;
  r.runtime.blocks_per_sm = p.blocks_per_sm;
  r.runtime.memory_limit = memory_limit;
  return std::vector<net::rank_options>(p.ranks, r);
}
/// With room for many tasks that wait: messages mostly, of which each task may send a lot.
inline std::vector<net::rank_options> ranks_of(const placement& p) {
  return ranks_of(p, p.where.is_cuda() ? (std::size_t{2} << 30) / p.ranks : std::size_t{16} << 20);
}

}  // namespace grosr::ranks
