// What kernels of several works are made of.
#pragma once

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"

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

/// The sum over the lanes of a whole warp, in each of them.
GROSR_DEVICE inline float sum_of_warp(float x) {
  for (unsigned d = simt::warp_size / 2; d != 0; d /= 2)
    x += simt::shuffle(simt::full_mask, x, simt::lane_id() ^ d);
  return x;
}

/// A grid with a thread, or a warp, for each of `all`.
inline simt::shape threads_for(std::uint32_t all) {
  if (all < block_threads)
    return {1, (all + simt::warp_size - 1) / simt::warp_size * simt::warp_size};
  return {(all + block_threads - 1) / block_threads, block_threads};
}
inline simt::shape warps_for(std::uint32_t all) { return threads_for(all * simt::warp_size); }

}  // namespace grosr::composition
