// A block sorts what fits into its tile: each thread its own keys, in registers; then merges.
#pragma once

#include "recursion/block_merge.hpp"

namespace grosr::recursion {

/// Batcher's network of odd-even merges for a thread's keys.
struct network {
  struct {
    unsigned low, high;
  } step[thread_keys * thread_keys] = {};
  unsigned size = 0;

  constexpr network() {
    constexpr unsigned n = thread_keys;
    for (unsigned p = 1; p < n; p *= 2)
      for (unsigned k = p; k >= 1; k /= 2)
        for (unsigned j = k % p; j + k < n; j += 2 * k)
          for (unsigned i = j; i < j + k && i + k < n; ++i)
            if (i / (2 * p) == (i + k) / (2 * p)) step[size++] = {i, i + k};
  }
};
inline constexpr network thread_network;

GROSR_DEVICE inline void sort_own(own_keys& own) {
  unrolled<thread_network.size>([&](auto i) {
    constexpr unsigned low = thread_network.step[decltype(i)::value].low;
    constexpr unsigned high = thread_network.step[decltype(i)::value].high;
    const key x = own.k[low], y = own.k[high];
    own.k[low] = x < y ? x : y;
    own.k[high] = x < y ? y : x;
  });
}

/// Whole block: sorts at most tile_keys. `from` may be `to`.
GROSR_DEVICE GROSR_NOINLINE inline void block_sort(const key* from, std::uint32_t count, key* to,
                                                   unsigned rank) {
  tile& t = simt::block_shared<tile>();
  load(t, count, rank, [&](std::uint32_t i) { return from[i]; });
  own_keys own;
  own.from_tile(t, rank);
  sort_own(own);
  own.to_tile(t, rank);
  simt::sync_block();
  GROSR_NO_UNROLL
  for (std::uint32_t n = thread_keys; n < count; n *= 2) merge_in_tile(t, n, n, rank);
  store(t, count, rank, to);
}

}  // namespace grosr::recursion
