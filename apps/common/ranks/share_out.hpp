// Work that all ranks of a world do alike: given to those of this process, and waited for.
#pragma once

#include <algorithm>
#include <vector>

#include "ranks/tasks.hpp"

namespace grosr::ranks {

/// Each rank runs make(i) for each i below `tasks`.
template <class World, class Make>
void on_all_ranks(World& world, std::uint32_t tasks, const Make& make) {
  std::vector<decltype(make(tasks))> all;
  for (std::uint32_t i = 0; i < tasks; ++i) all.push_back(make(i));
  for (std::uint32_t r = world.first_rank(); world.is_here(r); ++r) world.submit(r, all);
  world.wait_all();
}

/// Each rank runs make(warp_share) for all shares of a list that is so long on a rank, `most` of
/// them at most.
template <class World, class Make>
void share_out(World& world, std::uint64_t of_a_rank, std::uint32_t most, const Make& make) {
  const std::uint64_t turns = (of_a_rank + simt::warp_size - 1) / simt::warp_size;
  const auto warps = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(turns, 1, most));
  on_all_ranks(world, warps, [&](std::uint32_t i) { return make(warp_share{i, warps}); });
}

}  // namespace grosr::ranks
