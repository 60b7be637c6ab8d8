// Calls that nobody waits for: who needs a slot or a chunk frees theirs when they have ended.
//
//   detached words   one bit per slot, beside the words of slots; set while the call's slot is
//                    to be freed
//   detached calls   by slot: serial and chunk, written before the bit is set
//
// The thread that clears the bit owns the slot: it looks for the reply, and frees slot and chunk,
// or puts the bit back.
#pragma once

#include "grosr/sys/detail/issue.hpp"

namespace grosr::sys {

/// One lane: nobody will wait for this call. The other detached calls of the slot's word.
GROSR_DEVICE inline std::uint32_t detach(const view& v, const pending& p, std::uint32_t chunk) {
  v.detached_calls[p.slot] = {p.serial, chunk};
  return simt::atomic_ref<std::uint32_t>(v.detached[p.slot / 32])
      .fetch_or(1u << p.slot % 32, simt::release);  // R1: pairs with A1
}

/// One lane frees what ended calls hold, of the slots of one word. How many.
GROSR_DEVICE inline unsigned reclaim(const view& v, std::uint32_t word) {
  constexpr unsigned at_once = 4;  // looks across the bus under way together; 8 would spill
  simt::atomic_ref<std::uint32_t> detached(v.detached[word]);
  unsigned freed = 0;
  for (std::uint32_t rest = detached.load(simt::relaxed); rest != 0;) {
    std::uint32_t bit[at_once], some = 0;
    for (unsigned i = 0; i < at_once; ++i, rest &= rest - 1) some |= bit[i] = rest & (~rest + 1);
    some &= detached.fetch_and(~some, simt::acquire);  // A1; the others somebody else has
    simt::bus_word replies[at_once] = {};
    for (unsigned i = 0; i < at_once; ++i)
      if ((some & bit[i]) != 0)
        replies[i] = simt::bus_load(v.replies + word * 32 + simt::lowest_bit(bit[i]));
    for (unsigned i = 0; i < at_once; ++i) {
      if ((some & bit[i]) == 0) continue;
      pending p;
      p.slot = word * 32 + simt::lowest_bit(bit[i]);
      const detached_call d = v.detached_calls[p.slot];
      p.serial = d.serial;
      if (!is_reply(p, replies[i])) continue;
      if (d.chunk != no_place) v.chunks[d.chunk % 4].free(d.chunk / 4);
      v.slots.free(p.slot);
      some &= ~bit[i];
      ++freed;
    }
    if (some != 0) detached.fetch_or(some, simt::release);
  }
  return freed;
}

/// One lane frees what ended calls hold: looks first at the words where its neighbours' single
/// slots are, then at all others until something was found. Whether something was.
GROSR_DEVICE GROSR_NOINLINE inline bool reclaim_any(const view& v) {
  const std::uint32_t words = v.slots.words();
  const std::uint32_t home = home_word(v, words) / single_homes * single_homes;
  for (std::uint32_t i = 0; i < words; ++i) {
    const std::uint32_t word = home + i < words ? home + i : home + i - words;
    if (simt::atomic_ref<std::uint32_t>(v.detached[word]).load(simt::relaxed) != 0 &&
        reclaim(v, word) != 0)
      return true;
  }
  return false;
}

}  // namespace grosr::sys
