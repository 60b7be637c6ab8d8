// What tasks of a world's ranks are made of.
#pragma once

#include "grosr/net/world.hpp"

namespace grosr::ranks {

/// A warp's share of a list of its rank: 32 in a row for each `stride` warps, from the 32 of
/// number `first` on.
struct warp_share {
  std::uint32_t first, stride;
  GROSR_DEVICE void each(const auto& context, std::uint64_t count, const auto& visit) const {
    GROSR_NO_UNROLL
    for (std::uint64_t i = std::uint64_t{first} * context.size() + context.rank(); i < count;
         i += std::uint64_t{stride} * context.size())
      simt::stay_together([&] { visit(static_cast<std::uint32_t>(i)); });
  }
};

}  // namespace grosr::ranks
