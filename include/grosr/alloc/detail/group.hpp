// What the lanes of a warp do together: getting slots and freeing them.
//
// Lanes that call together are the callers; those of them that want the same class, or free slots
// of one word of bits, are a group, whose lowest lane leads. A function that calls out of line from
// code that becomes part of users' kernels passes a copy of the view: a pointer to the view itself
// would put it on the stack of every caller for good, and loads from there before the atomics that
// need them.
#pragma once

#include "grosr/alloc/detail/locate.hpp"
#include "grosr/alloc/detail/runs.hpp"

namespace grosr::alloc {

/// Slots of a slab mostly are a power of two where they are few.
GROSR_DEVICE inline std::uint32_t divide(std::uint32_t n, std::uint32_t slots) {
  return (slots & (slots - 1)) == 0 ? n >> simt::lowest_bit(slots) : n / slots;
}

/// Whole slabs for groups that fill at least one; lanes that got a slot of one leave their group.
GROSR_DEVICE inline void* get_slabs(const heap_view& v, const slab_source& from, std::uint32_t c,
                                    std::uint32_t slots, std::uint32_t callers,
                                    std::uint32_t& group) {
  unsigned leader = simt::lowest_bit(group), rank = simt::rank_in(group, simt::lane_id());
  slab_pick got;
  if (simt::lane_id() == leader && simt::popcount(group) >= slots)
    got = from.take_slabs(divide(simt::popcount(group), slots));
  got.first = simt::shuffle(callers, got.first, leader);
  got.mask = simt::shuffle(callers, got.mask, leader);
  std::uint32_t served = simt::popcount64(got.mask) * slots, which = divide(rank, slots);
  void* mine = nullptr;
  if (rank < served) {
    std::uint32_t slab = got.first + simt::nth_bit64(got.mask, which), slot = rank - which * slots;
    if (slot == 0) slabs(v).init_full(slab, c, slots);
    mine = v.address(slab, slot * slot_bytes(c));
  }
  group &= ~simt::lowest_bits(group, served);
  // Nobody has a pointer into a slab that is not initialised.
  simt::sync_warp(callers);
  return mine;
}

/// get_slots() with what the leaders have begun.
GROSR_DEVICE GROSR_NOINLINE inline void* get_slots_slowly(const heap_view& v, std::uint32_t c,
                                                          std::uint32_t callers, slot_request r) {
  slab_source from(v, c);
  std::uint32_t slots = slots_of(c);
  for (;;) {
    unsigned leader = simt::lowest_bit(r.group), n = simt::popcount(r.group);
    bool leads = simt::lane_id() == leader;
    if (leads && r.reserved.count == 0) r.reserved = from.refill(n, r.active);
    r.reserved = from_lane(callers, r.reserved, leader);
    std::uint32_t got = r.reserved.count;
    if (leads && got == 0) fault_count(v.faults->failures[c]).fetch_add(n, simt::relaxed);
    if (!simt::any(callers, got != 0)) return nullptr;
    std::uint32_t slot = slabs(v).find_slots(r, slots, callers);
    bool served = simt::rank_in(r.group, simt::lane_id()) < got;
    callers = simt::ballot(callers, !served && got != 0);
    if (served) return v.address(r.reserved.slab, slot * slot_bytes(c));
    if (got == 0) return nullptr;
    r.group &= ~simt::lowest_bits(r.group, got);
    r.found = {};
    r.reserved = {};
    if (simt::lane_id() == simt::lowest_bit(r.group))
      r.reserved = from.try_take(simt::popcount(r.group), r.active);
  }
}

/// Lanes of `callers` each get a slot of their class c; those of one class are a group, whose
/// lowest lane leads. All stay together: collectives of smaller masks would break the warp up.
/// Straight on where the active slab has enough and the first word looked at has it; loops would
/// break it up too. `InUsersKernel`: the call becomes part of one.
template <bool InUsersKernel>
GROSR_DEVICE inline void* get_slots(const heap_view& v, std::uint32_t c, std::uint32_t callers,
                                    std::uint32_t group) {
  slab_source from(v, c);
  slot_request r{group, 0, {}, {}};
  std::uint32_t slots = slots_of(c);
  void* mine = nullptr;
  if (simt::any(callers, simt::popcount(group) >= slots)) {
    mine = get_slabs(v, from, c, slots, callers, r.group);
    bool served = mine != nullptr;
    callers = simt::ballot(callers, !served);
    if (served) return mine;
  }
  unsigned leader = simt::lowest_bit(r.group), n = simt::popcount(r.group);
  if (simt::lane_id() == leader) {
    r.reserved = from.try_take(n, r.active);
    if (r.reserved.count == n) r.found = slabs(v).find_first(r.reserved, slots);
  }
  std::uint64_t both =
      std::uint64_t{r.reserved.slab * words_a_slab + r.found.word} << 32 | r.found.bits;
  both = simt::shuffle(callers, both, leader);
  auto bits = static_cast<std::uint32_t>(both), at = static_cast<std::uint32_t>(both >> 32);
  bool served = simt::popcount(bits) == n;
  callers = simt::ballot(callers, !served);
  if (!served) [[unlikely]] {
    if constexpr (InUsersKernel) return get_slots_slowly(heap_view(v), c, callers, r);
    return get_slots_slowly(v, c, callers, r);
  }
  std::uint32_t slot =
      at % words_a_slab * 32 + simt::nth_bit(bits, simt::rank_in(r.group, simt::lane_id()));
  return v.address(at / words_a_slab, slot * slot_bytes(c));
}

/// get_slots() of lanes that are not their whole warp. Apart, so that the masks of whole warps'
/// collectives are constants: the compiler guards others by some ten instructions each.
GROSR_DEVICE GROSR_NOINLINE inline void* get_slots_of_some(const heap_view& v, std::uint32_t c) {
  std::uint32_t callers = simt::active_mask();
  void* p = get_slots<false>(v, c, callers, simt::match_any(callers, c));
  simt::sync_warp(callers);
  return p;
}

/// The bits of the caller's group `same`, each lane of `callers` having one. Most groups free slots
/// in a row; else every lane tells all others, for a collective of one group would break the warp
/// up.
GROSR_DEVICE inline std::uint32_t bits_of_group(std::uint32_t callers, std::uint32_t same,
                                                std::uint32_t bit) {
  std::uint32_t first = simt::shuffle(callers, bit, simt::lowest_bit(same));
  bool in_row = bit == first + simt::rank_in(same, simt::lane_id());
  if (simt::all(callers, in_row)) return simt::first_bits(simt::popcount(same)) << first;
  std::uint32_t bits = 0;
  for (std::uint32_t rest = callers; rest != 0; rest &= rest - 1) {
    std::uint32_t other = simt::shuffle(callers, bit, simt::lowest_bit(rest));
    bits |= (same >> simt::lowest_bit(rest) & 1) << other;
  }
  return bits;
}

/// Lanes of `callers` free a slot each.
GROSR_DEVICE inline void free_slots(const heap_view& v, location at, std::uint32_t callers) {
  std::uint32_t word = at.slab * words_a_slab + at.slot / 32;
  std::uint32_t same = simt::match_any(callers, word);
  std::uint32_t bits = bits_of_group(callers, same, at.slot % 32);
  if (simt::lane_id() == simt::lowest_bit(same)) {
    std::uint32_t freed = slabs(v).free_slots(at.slab, at.slot / 32, bits, at.state);
    std::uint32_t asked = simt::popcount(same);
    if (freed != asked) [[unlikely]]
      fault_count(v.faults->double_frees).fetch_add(asked - freed, simt::relaxed);
  }
}

/// Frees blocks of any kind, by lanes that need not be their whole warp. `state`: of p's slab.
GROSR_DEVICE GROSR_NOINLINE inline void free_some(const heap_view& v, void* p,
                                                  std::uint64_t state) {
  std::uint32_t callers = simt::active_mask();
  simt::sync_warp(callers);
  simt::fence(simt::release);  // R1
  location at = locate(v, p, state);
  bool in_slab = at.kind < run_class;
  callers = simt::ballot(callers, in_slab);
  if (in_slab) return free_slots(v, at, callers);
  if (at.kind == run_class && runs(v).give_back(at.slab)) return;
  if (v.count == 0) return;
  fault_count(at.kind == no_block ? v.faults->foreign : v.faults->double_frees)
      .fetch_add(1, simt::relaxed);
}

}  // namespace grosr::alloc
