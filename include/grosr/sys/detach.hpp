// Calls that nobody waits for: who needs a slot or a chunk frees theirs when they have ended.
//
//   detached words    a bit a slot, beside the words of slots; set while the call's slot is to be
//   freed detached calls    by slot: serial and chunk, written before the bit is set
//
// Whoever clears the bit owns the slot: it looks for the reply, and frees slot and chunk, or puts
// the bit back.
#pragma once

#include "grosr/sys/issue.hpp"

namespace grosr::sys {

/// One lane: nobody will wait for this call.
GROSR_DEVICE inline void detach(const view& v, const pending& p, std::uint32_t chunk) {
  v.detached_calls[p.slot] = {p.serial, chunk};
  simt::atomic_ref<std::uint32_t>(v.detached[p.slot / 32])
      .fetch_or(1u << p.slot % 32, simt::release);  // R1: pairs with A1
}

/// One lane frees what ended calls hold, of the slots of one word. How many.
GROSR_DEVICE inline unsigned reclaim(const view& v, std::uint32_t word) {
  simt::atomic_ref<std::uint32_t> detached(v.detached[word]);
  unsigned freed = 0;
  for (std::uint32_t bits = detached.load(simt::relaxed); bits != 0; bits &= bits - 1) {
    const std::uint32_t bit = bits & (~bits + 1);
    if ((detached.fetch_and(~bit, simt::acquire) & bit) == 0) continue;  // A1; somebody else has it
    pending p;
    p.slot = word * 32 + simt::lowest_bit(bit);
    const detached_call d = v.detached_calls[p.slot];
    p.serial = d.serial;
    long result = 0;
    if (!has_reply(v, p, result)) {
      detached.fetch_or(bit, simt::release);
      continue;
    }
    if (d.chunk != no_place) v.chunks[d.chunk % 4].free(d.chunk / 4);
    v.slots.free(p.slot);
    ++freed;
  }
  return freed;
}

/// One lane frees what ended calls hold: looks at its home's word first, then at all others until
/// something was found. Whether something was.
GROSR_DEVICE GROSR_NOINLINE inline bool reclaim_any(const view& v) {
  const std::uint32_t words = v.slots.words(), home = home_word(v, words);
  for (std::uint32_t i = 0; i < words; ++i) {
    const std::uint32_t word = home + i < words ? home + i : home + i - words;
    if (simt::atomic_ref<std::uint32_t>(v.detached[word]).load(simt::relaxed) != 0 &&
        reclaim(v, word) != 0)
      return true;
  }
  return false;
}

}  // namespace grosr::sys
