// What the threads of one block do together, whatever its size.
#pragma once

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::graphs {

/// Block-shared memory that the parts of an algorithm use one after the other.
struct scratch_store {
  alignas(16) unsigned char bytes[11 * 1024];
};
template <class T>
GROSR_DEVICE inline T& block_scratch() {
  static_assert(sizeof(T) <= sizeof(scratch_store) && alignof(T) <= 16);
  return *reinterpret_cast<T*>(simt::block_shared<scratch_store>().bytes);
}

/// Whole block: a copy in block-shared memory. What every thread keeps to itself beyond its
/// registers takes more of the cache than all threads have; kernel arguments have a cache of their
/// own.
template <class T>
struct shared_copy_store {
  alignas(16) unsigned char bytes[sizeof(T)];
};
template <class T>
GROSR_DEVICE const T& shared_copy(const T& from) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  auto& store = simt::block_shared<shared_copy_store<T>>();
  auto* to = reinterpret_cast<std::uint32_t*>(store.bytes);
  const auto* words = reinterpret_cast<const std::uint32_t*>(&from);
  simt::sync_block();
  for (unsigned i = simt::thread_id(); i < sizeof(T) / 4; i += simt::block_size()) to[i] = words[i];
  simt::sync_block();
  return *reinterpret_cast<const T*>(store.bytes);
}

struct scan_store {
  std::uint32_t warp[32];
};

/// Whole block: the sum of `mine` over the threads before this one, and over all of them.
struct scanned {
  std::uint32_t before, total;
};
GROSR_DEVICE inline scanned block_scan(std::uint32_t mine) {
  auto& store = simt::block_shared<scan_store>();
  const unsigned lane = simt::lane_id(), warp = simt::warp_id();
  std::uint32_t sum = mine;
  for (unsigned step = 1; step < simt::warp_size; step *= 2) {
    const std::uint32_t other =
        simt::shuffle(simt::full_mask, sum, lane >= step ? lane - step : lane);
    if (lane >= step) sum += other;
  }
  simt::sync_block();  // the last use of the store is over
  if (lane == simt::warp_size - 1) store.warp[warp] = sum;
  simt::sync_block();
  scanned s{sum - mine, 0};
  const unsigned warps = simt::block_size() / simt::warp_size;
  for (unsigned w = 0; w < warps; ++w) {
    const std::uint32_t n = store.warp[w];
    if (w < warp) s.before += n;
    s.total += n;
  }
  return s;
}

/// Whole warp: the sum over its lanes.
template <class T>
GROSR_DEVICE T warp_sum(T mine) {
  for (unsigned step = simt::warp_size / 2; step != 0; step /= 2)
    mine += simt::shuffle(simt::full_mask, mine, simt::lane_id() ^ step);
  return mine;
}

}  // namespace grosr::graphs
