// Worlds of few workers on one device.
#pragma once

#include <vector>

#include "grosr/net/world.hpp"

namespace grosr::net::tested {

/// `n` ranks on `d`, with a small share of it each.
inline std::vector<rank_options> small_ranks(const device& d, std::uint32_t n) {
  rank_options r{.where = d};
  if (d.is_cuda()) r.runtime.sms = 2;
  r.runtime.blocks_per_sm = 1;
  r.runtime.memory_limit = std::size_t{16} << 20;
  r.runtime.slots = 1024;
  r.runtime.staging_buffers = 64;
  return std::vector<rank_options>(n, r);
}

}  // namespace grosr::net::tested
