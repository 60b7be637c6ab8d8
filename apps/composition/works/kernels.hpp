// What kernels of several works are made of.
#pragma once

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "warp/sums.hpp"

namespace grosr::composition {

inline constexpr unsigned block_threads = 128;

/// Calls `f` with each number below `all`, spread over the threads of the grid.
template <class F>
GROSR_DEVICE void each(std::uint32_t all, const F& f) {
  const std::uint32_t stride = simt::grid_size() * simt::block_size();
  for (std::uint32_t i = simt::block_id() * simt::block_size() + simt::thread_id(); i < all;
       i += stride)
    f(i);
}

/// Calls `f` with each number below `all`, spread over the warps of the grid.
template <class F>
GROSR_DEVICE void each_by_warp(std::uint32_t all, const F& f) {
  const std::uint32_t warps = simt::block_size() / simt::warp_size;
  for (std::uint32_t i = simt::block_id() * warps + simt::warp_id(); i < all;
       i += simt::grid_size() * warps)
    f(i);
}

/// A grid with a thread, or a warp, for each of `all`.
inline simt::shape threads_for(std::uint32_t all) {
  if (all < block_threads)
    return {1, (all + simt::warp_size - 1) / simt::warp_size * simt::warp_size};
  return {(all + block_threads - 1) / block_threads, block_threads};
}
inline simt::shape warps_for(std::uint32_t all) { return threads_for(all * simt::warp_size); }

}  // namespace grosr::composition
