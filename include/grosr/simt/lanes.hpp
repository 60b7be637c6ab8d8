// Where a lane is, and what lanes say to each other: the whole vocabulary, mask first.
//
// Contract of every masked collective: each lane named in `mask` calls it, from the same place in
// the code or not, with the same mask; lanes outside the mask do not take part. A lane must be in
// its own mask. `active_mask()` gives such a mask in divergent code. sync_warp() and
// sync_block() order memory among those that take part; the others only move values.
#pragma once

#include <bit>

#include "grosr/simt/config.hpp"
#include "grosr/simt/detail/host_machine.hpp"

namespace grosr::simt {

/// Lane number in its warp, 0 to 31.
GROSR_DEVICE inline unsigned lane_id() {
#if GROSR_ON_GPU
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
#else
  return host::current().lane;
#endif
}

/// Thread number in its block. Blocks are one-dimensional.
GROSR_DEVICE inline unsigned thread_id() {
#if GROSR_ON_GPU
  return threadIdx.x;
#else
  return host::current().warp * warp_size + host::current().lane;
#endif
}

/// Warp number in its block.
GROSR_DEVICE inline unsigned warp_id() {
#if GROSR_ON_GPU
  return threadIdx.x / warp_size;
#else
  return host::current().warp;
#endif
}

/// Block number in its grid.
GROSR_DEVICE inline unsigned block_id() {
#if GROSR_ON_GPU
  return blockIdx.x;
#else
  return host::current().block;
#endif
}

/// Threads in a block: a multiple of 32.
GROSR_DEVICE inline unsigned block_size() {
#if GROSR_ON_GPU
  return blockDim.x;
#else
  return host::current().warps * warp_size;
#endif
}

/// Blocks in the grid.
GROSR_DEVICE inline unsigned grid_size() {
#if GROSR_ON_GPU
  return gridDim.x;
#else
  return host::current().blocks;
#endif
}

/// The multiprocessor this lane runs on (on the host, its worker thread).
GROSR_DEVICE inline unsigned sm_id() {
#if GROSR_ON_GPU
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
#else
  return host::current().worker;
#endif
}

/// Which of the warps that the multiprocessor holds at a time this is: a hint, for spreading warps.
GROSR_DEVICE inline unsigned warp_slot() {
#if GROSR_ON_GPU
  unsigned slot;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(slot));
  return slot;
#else
  return host::current().block * host::current().warps + host::current().warp;
#endif
}

/// Whether stores that neighbours make together to one line leave the processor as one. Where lanes
/// take turns it would cost more to bring them together than it saves.
GROSR_DEVICE constexpr bool stores_combine() {
#if GROSR_ON_GPU
  return true;
#else
  return false;
#endif
}

/// Whether only the calling lane reaches what is at this address: on a GPU, what lies on its stack.
/// The same address is another one's own memory in another lane.
GROSR_DEVICE inline bool is_private([[maybe_unused]] const void* p) {
#if GROSR_ON_GPU
  return __isLocal(p) != 0;
#else
  return false;
#endif
}

/// Whether only the caller's block reaches what is at this address: on a GPU, block-shared memory.
GROSR_DEVICE inline bool is_block_shared([[maybe_unused]] const void* p) {
#if GROSR_ON_GPU
  return __isShared(p) != 0;
#else
  return false;
#endif
}

/// Number of bits set.
GROSR_DEVICE inline unsigned popcount(std::uint32_t mask) {
#if GROSR_ON_GPU
  return static_cast<unsigned>(__popc(static_cast<int>(mask)));
#else
  return static_cast<unsigned>(std::popcount(mask));
#endif
}

/// Number of the lowest set bit; undefined for 0.
GROSR_DEVICE inline unsigned lowest_bit(std::uint32_t mask) {
#if GROSR_ON_GPU
  return static_cast<unsigned>(__ffs(static_cast<int>(mask))) - 1u;
#else
  return static_cast<unsigned>(std::countr_zero(mask));
#endif
}

/// Position of the lowest bit set; `mask` must not be 0.
GROSR_DEVICE inline unsigned lowest_bit64(std::uint64_t mask) {
#if GROSR_ON_GPU
  return static_cast<unsigned>(__ffsll(static_cast<long long>(mask))) - 1u;
#else
  return static_cast<unsigned>(std::countr_zero(mask));
#endif
}

/// Position of the highest bit set; `mask` must not be 0.
GROSR_DEVICE inline unsigned highest_bit(std::uint32_t mask) {
#if GROSR_ON_GPU
  return 31u - static_cast<unsigned>(__clz(static_cast<int>(mask)));
#else
  return 31u - static_cast<unsigned>(std::countl_zero(mask));
#endif
}

/// Position of the highest bit set; `mask` must not be 0.
GROSR_DEVICE inline unsigned highest_bit64(std::uint64_t mask) {
#if GROSR_ON_GPU
  return 63u - static_cast<unsigned>(__clzll(static_cast<long long>(mask)));
#else
  return 63u - static_cast<unsigned>(std::countl_zero(mask));
#endif
}

/// Number of bits set.
GROSR_DEVICE inline unsigned popcount64(std::uint64_t mask) {
#if GROSR_ON_GPU
  return static_cast<unsigned>(__popcll(mask));
#else
  return static_cast<unsigned>(std::popcount(mask));
#endif
}

/// Position of the n-th set bit, counted from 0; `mask` must have more than n.
GROSR_DEVICE inline unsigned nth_bit(std::uint32_t mask, unsigned n) {
  std::uint32_t low = mask & (~mask + 1);
  if ((mask & (mask + low)) == 0) return lowest_bit(mask) + n;  // bits in a row, as mostly
  unsigned at = 0;
#if GROSR_ON_GPU
#pragma unroll
#endif
  for (unsigned step = 16; step != 0; step /= 2) {
    unsigned below = popcount(mask >> at & ((1u << step) - 1));
    if (n >= below) {
      n -= below;
      at += step;
    }
  }
  return at;
}
GROSR_DEVICE inline unsigned nth_bit64(std::uint64_t mask, unsigned n) {
  auto low = static_cast<std::uint32_t>(mask), high = static_cast<std::uint32_t>(mask >> 32);
  unsigned below = popcount(low);
  return n < below ? nth_bit(low, n) : 32 + nth_bit(high, n - below);
}

/// The n lowest bits, n up to 32.
GROSR_DEVICE constexpr std::uint32_t first_bits(unsigned n) {
  return n >= warp_size ? full_mask : (1u << n) - 1;
}

/// The n lowest set bits of `mask`; all when it has fewer.
GROSR_DEVICE inline std::uint32_t lowest_bits(std::uint32_t mask, unsigned n) {
  return popcount(mask) <= n ? mask : mask & ((1u << nth_bit(mask, n)) - 1);
}
GROSR_DEVICE inline std::uint64_t lowest_bits64(std::uint64_t mask, unsigned n) {
  return popcount64(mask) <= n ? mask : mask & ((std::uint64_t{1} << nth_bit64(mask, n)) - 1);
}

/// All lanes of the warp: a mask that compilers know. With it a collective is an instruction of a
/// GPU; with a mask that is in a register it is six, two of which take long.
struct whole_warp {
  GROSR_DEVICE constexpr operator std::uint32_t() const { return full_mask; }
};

/// Number of lanes in `mask` below `lane`.
GROSR_DEVICE inline unsigned rank_in(std::uint32_t mask, unsigned lane) {
  return popcount(mask & ((1u << lane) - 1u));
}
GROSR_DEVICE inline unsigned rank_in(whole_warp, unsigned lane) { return lane; }

#if GROSR_ON_GPU
namespace detail {
/// The same mask, in a register of which the assembler does not believe that it is equal in all
/// lanes. What __activemask() returns it does believe that of, also after lanes of two such masks
/// met again; it then drops the waiting from collectives (seen with CUDA 13.0 on sm_90), and lanes
/// hang.
__device__ inline std::uint32_t per_lane(std::uint32_t mask) {
  return __shfl_sync(mask, mask, static_cast<int>(lane_id()));
}
}  // namespace detail
#endif

/// Some set of lanes that contains the caller and whose members all are at this call. Lanes that
/// diverged may get different masks; nothing promises the largest one.
GROSR_DEVICE inline std::uint32_t active_mask(site where = site::here()) {
#if GROSR_ON_GPU
  (void)where;
  return detail::per_lane(__activemask());
#else
  return host::active_mask(where);
#endif
}

/// Whether all lanes of the warp are at this call. May be false though they are.
GROSR_DEVICE inline bool is_whole_warp(site where = site::here()) {
#if GROSR_ON_GPU
  (void)where;
  return __activemask() == full_mask;
#else
  return host::active_mask(where) == full_mask;
#endif
}

/// Whole warp: what was loaded before is all under way before anything else is done; without, GPU
/// compilers put loads off until shortly before their use. Orders nothing.
GROSR_DEVICE inline void fetch_together() {
#if GROSR_ON_GPU
  __syncwarp();
#endif
}

/// Waits for all lanes in `mask`; orders memory among them.
GROSR_DEVICE inline void sync_warp(std::uint32_t mask, site where = site::here()) {
#if GROSR_ON_GPU
  (void)where;
  __syncwarp(mask);
#else
  host::sync_warp(mask, where);
#endif
}

/// The same for the whole warp, whose lanes run together again from here on. Lanes that wait where
/// they should meet are let go when another one yields, which every loop may do, and nothing but
/// this brings them together again: until then a GPU runs everything once for each group.
GROSR_DEVICE inline void sync_warp(site where = site::here()) {
#if GROSR_ON_GPU
  (void)where;
  __syncwarp();
  // An aligned instruction, for which the assembler really converges; its result is dropped.
  asm volatile("{ .reg .b32 dropped; movmatrix.sync.aligned.m8n8.trans.b16 dropped, %0; }" ::"r"(0u)
               : "memory");
#else
  host::sync_warp(full_mask, where);
#endif
}

/// Calls f(): lanes that call it together go on together after it. For a branch, or a turn of a
/// loop, in which some of them do what may wait, as a send or a spawn: see sync_warp().
template <class F>
GROSR_DEVICE void stay_together(const F& f, site where = site::here()) {
  const std::uint32_t mask = active_mask(where);
  f();
  if (mask == full_mask)
    sync_warp(where);
  else
    sync_warp(mask, where);
}

/// The same between lanes of one task: on the host it does not pair with sync_warp(), so that a
/// lane that has left its task is not taken for one that has come.
GROSR_DEVICE inline void sync_task(site where = site::here()) {
#if GROSR_ON_GPU
  sync_warp(where);
#else
  host::sync_task(where);
#endif
}

/// Bit i is set when lane i of `mask` passed true.
GROSR_DEVICE inline std::uint32_t ballot(std::uint32_t mask, bool predicate,
                                         site where = site::here()) {
#if GROSR_ON_GPU
  (void)where;
  return __ballot_sync(mask, predicate);
#else
  return host::ballot(mask, predicate, where);
#endif
}

/// Whether any lane of `mask` passed true.
GROSR_DEVICE inline bool any(std::uint32_t mask, bool predicate, site where = site::here()) {
  return ballot(mask, predicate, where) != 0;
}

GROSR_DEVICE inline bool all(std::uint32_t mask, bool predicate, site where = site::here()) {
  return ballot(mask, predicate, where) == mask;
}

/// The value that `source` (a lane in `mask`) passed. T is trivially copyable, at most 8 bytes.
template <class T>
GROSR_DEVICE inline T shuffle(std::uint32_t mask, T value, unsigned source,
                              site where = site::here()) {
  static_assert(sizeof(T) <= 8, "shuffle moves at most 8 bytes");
#if GROSR_ON_GPU
  (void)where;
  if constexpr (sizeof(T) <= 4) {
    std::uint32_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = __shfl_sync(mask, bits, static_cast<int>(source));
    __builtin_memcpy(&value, &bits, sizeof(T));
  } else {
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = __shfl_sync(mask, bits, static_cast<int>(source));
    __builtin_memcpy(&value, &bits, sizeof(T));
  }
  return value;
#else
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = host::shuffle(mask, bits, source, where);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
#endif
}

/// The lanes of `mask` that passed the same value, a whole number.
template <class T>
GROSR_DEVICE inline std::uint32_t match_any(std::uint32_t mask, T value,
                                            site where = site::here()) {
#if GROSR_ON_GPU
  (void)where;
  if constexpr (sizeof(T) <= 4)
    return __match_any_sync(mask, static_cast<unsigned>(value));
  else
    return __match_any_sync(mask, static_cast<unsigned long long>(value));
#else
  return host::match_any(mask, static_cast<std::uint64_t>(value), where);
#endif
}

/// Like active_mask(), of lanes that pass the same key. `uniform`: the caller knows that all lanes
/// which can be at this call together have the same one. On the host it is looked at all the same:
/// there, lanes in different instances of one template are at the same call.
template <class Key>
GROSR_DEVICE inline std::uint32_t active_mask_by(Key key, bool uniform, site where = site::here()) {
  std::uint32_t mask = active_mask(where);
#if GROSR_ON_GPU
  if (uniform) return mask;
#else
  (void)uniform;
#endif
  return match_any(mask, key, where);
}

/// As active_mask_by(), for lanes that may as well act alone. On the host each does, unless a seed
/// chooses the schedule: to wait for lanes that may come, and then in each collective of theirs,
/// takes longer than what a group saves. So nobody else runs meanwhile: who waits pauses.
template <class Key>
GROSR_DEVICE inline std::uint32_t own_or_active_mask_by(Key key, bool uniform,
                                                        site where = site::here()) {
#if GROSR_ON_GPU
  return active_mask_by(key, uniform, where);
#else
  (void)uniform;
  return match_any(host::own_or_active_mask(where), key, where);
#endif
}

/// Waits for every thread of the block; orders memory among them.
GROSR_DEVICE inline void sync_block(site where = site::here()) {
#if GROSR_ON_GPU
  (void)where;
  __syncthreads();
#else
  host::sync_block(where);
#endif
}

}  // namespace grosr::simt
