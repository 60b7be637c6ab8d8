// The choice of a victim to steal from. It is changed here, unless a policy has its own: steal() in
// policy.hpp.
//
// Every level has a bitmap with a bit for each worker whose deque may hold something. A thief loads
// the bitmap 32 words a step, one coalesced load. It starts at a word and a bit that its own number
// and its turn give, so that thieves spread, and tries the first few workers found.
#pragma once

#include "grosr/run/detail/view.hpp"
#include "grosr/simt/lanes.hpp"

namespace grosr::run {

/// Whole warp: calls `attempt(worker)` in every lane for candidates until it returns a ref, at most
/// `attempts` times. `self` and the result of `attempt` are the same in every lane.
template <class Attempt>
GROSR_DEVICE ref choose_victim(const view& v, std::uint32_t level, bool block, std::uint32_t self,
                               std::uint32_t salt, unsigned attempts, Attempt&& attempt) {
  unsigned lane = simt::lane_id();
  const std::uint32_t* bitmap = v.bitmap(level, block);
  std::uint32_t words = block ? v.sizes.block_bitmap_words : v.sizes.warp_bitmap_words;
  std::uint32_t begin = (self / 32 + salt * 7) % words;
  unsigned tried = 0;
  for (std::uint32_t step = 0; step < words; step += simt::warp_size) {
    std::uint32_t i = step + lane, at = (begin + i) % words, mine = 0;
    if (i < words)
      mine = simt::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(bitmap[at]))
                 .load(simt::relaxed);
    for (std::uint32_t some; (some = simt::ballot(simt::full_mask, mine != 0)) != 0;) {
      unsigned source = simt::lowest_bit(some);
      // Thieves that look at the same word prefer different bits of it.
      std::uint32_t turn = (self + salt) % 32;
      std::uint32_t rotated = mine >> turn | (turn ? mine << (32 - turn) : 0);
      std::uint32_t bit = mine ? (simt::lowest_bit(rotated) + turn) % 32 : 0;
      std::uint32_t victim = simt::shuffle(simt::full_mask, at * 32 + bit, source);
      if (lane == source) mine &= ~(1u << bit);
      if (victim == self) continue;
      if (ref r = attempt(victim)) return r;
      if (++tried == attempts) return {};
    }
  }
  return {};
}

}  // namespace grosr::run
