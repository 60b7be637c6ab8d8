// One slab: reserving slots, finding them, giving them back; how it is initialised and released.
#pragma once

#include "grosr/alloc/detail/heap_view.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::alloc {

/// Slots of one slab that are reserved for a group of lanes.
struct reservation {
  std::uint32_t slab = 0;
  std::uint32_t count = 0;
  std::uint32_t cursor = 0;  ///< where to look for them first
  bool held = false;         ///< the slab is the caller's to make active or let go
};

/// Slots found in one word of bits.
struct found_slots {
  std::uint32_t word = 0;
  std::uint32_t bits = 0;
};

/// What a group of lanes wants, and has of it so far; reserved and found are the leader's.
struct slot_request {
  std::uint32_t group;   ///< the lanes
  std::uint32_t active;  ///< the word of the active slab
  reservation reserved;
  found_slots found;
};

/// The reservation that `source`, a lane of `mask`, passed.
GROSR_DEVICE inline reservation from_lane(std::uint32_t mask, reservation p, unsigned source) {
  p.slab = simt::shuffle(mask, p.slab, source);
  p.count = simt::shuffle(mask, p.count, source);
  p.cursor = simt::shuffle(mask, p.cursor, source);
  return p;  // what is held is its leader's business
}

/// What one lane may do with slabs. Cheap to make.
class slabs {
 public:
  GROSR_DEVICE explicit slabs(const heap_view& v) : v_(v) {}

  /// Reserves up to n slots for the caller, of a slab that should be of class c.
  GROSR_DEVICE reservation reserve(std::uint32_t slab, std::uint32_t c, std::uint32_t n) const {
    // A6: pairs with R6 in init(): who freed the slab's blocks in an earlier life was seen.
    std::uint64_t before = v_.state_of(slab).fetch_add(state::reservation(n), simt::acquire);
    std::uint32_t got = 0;
    if (state::is_class(before, c)) {
      std::uint32_t used = state::count(before), slots = slots_of(c);
      std::uint32_t left = used < slots ? slots - used : 0;
      got = n < left ? n : left;
    }
    if (got < n) [[unlikely]]
      take_back(slab, n - got);
    return {slab, got, state::cursor(before)};
  }

  /// Takes n reservations of a slab back: what was freed, or not had. Tells who may want the slab.
  GROSR_DEVICE void take_back(std::uint32_t slab, std::uint32_t n) const {
    std::uint64_t before = v_.state_of(slab).fetch_sub(n, simt::relaxed);
    if (!state::is_alive(before) || state::class_in(before) >= slot_classes) return;
    std::uint32_t slots = slots_of(state::class_in(before)), count = state::count(before);
    std::uint32_t below = heap_view::partial_below(slots), now = count - n;
    constexpr std::uint64_t listed = state::held | state::idle;
    if ((now == 0 && (before & listed) != listed) || (count >= slots && now < slots) ||
        (count >= below && now < below))
      settle(v_, slab, before - n);
  }

  /// Puts a slab that was taken from the pool to use: class c, up to n slots reserved. Held, unless
  /// these are all.
  GROSR_DEVICE reservation init(std::uint32_t slab, std::uint32_t c, std::uint32_t n) const {
    std::uint32_t slots = slots_of(c), got = n < slots ? n : slots;
    bool held = got < slots;
    // R6: pairs with A6.
    std::uint64_t before = v_.state_of(slab).fetch_add(
        state::of_class(c) | (held ? state::held : 0) | state::reservation(got),
        simt::after_result());
    if (state::is_alive(before)) return {};  // never; to ask makes the caller wait for the answer
    return {slab, got, state::cursor(before), held};
  }

  /// The same with all slots reserved, and nobody to hold it. Before anybody frees one, nobody can
  /// get one, so nothing is released here.
  GROSR_DEVICE void init_full(std::uint32_t slab, std::uint32_t c, std::uint32_t slots) const {
    v_.bits_of(slab, 0).store(simt::first_bits(slots), simt::relaxed);
    v_.state_of(slab).fetch_add(state::of_class(c) | state::reservation(slots), simt::relaxed);
  }

  /// Reserves up to n slots of a slab if it is of class c and has some, without ever reserving more
  /// than there are. With `hold`: only if nobody holds it, and then the caller does, unless it got
  /// the last slots.
  GROSR_DEVICE reservation try_reserve(std::uint32_t slab, std::uint32_t c, std::uint32_t n,
                                       bool hold) const {
    simt::atomic_ref<std::uint64_t> word = v_.state_of(slab);
    std::uint32_t slots = slots_of(c);
    std::uint64_t s = word.load(simt::relaxed);
    while (state::is_class(s, c) && !(hold && state::is_held(s)) && state::count(s) < slots) {
      std::uint32_t left = slots - state::count(s), got = n < left ? n : left;
      bool held = hold && got < left;
      std::uint64_t taken = (s | (held ? state::held : 0)) + state::reservation(got);
      if (word.compare_exchange(s, taken, simt::acquire))  // A6
        return {slab, got, state::cursor(s), held};
    }
    return {};
  }

  /// Frees slots of one word of bits of a slab, whose state was `seen` before. How many were taken.
  GROSR_DEVICE std::uint32_t free_slots(std::uint32_t slab, std::uint32_t w, std::uint32_t bits,
                                        std::uint64_t seen) const {
    std::uint32_t before = v_.bits_of(slab, w).fetch_and(~bits, simt::relaxed);
    std::uint32_t freed = simt::popcount(before & bits);
    // After the bits: what is counted free can be found, and was the caller's. A3: the caller's are
    // the last slots of a slab that nobody holds. In turn: others freed before, and what they
    // released has to reach who takes the slab from the pool.
    bool dead = freed != 0 && state::count(seen) == freed && !state::is_held(seen) &&
                v_.state_of(slab).compare_exchange(seen, state::seen, simt::in_turn());
    if (dead) {
      v_.pool().insert(slab);
      tell_of_slabs();
    } else if (freed != 0) {
      take_back(slab, freed);
    }
    return freed;
  }

  /// Ends the holding.
  GROSR_DEVICE void let_go(std::uint32_t slab) const {
    std::uint64_t before = v_.state_of(slab).fetch_and(~state::held, simt::relaxed);
    if (!state::is_alive(before) || !state::is_held(before)) return;  // released meanwhile
    if (state::count(before) < slots_of(state::class_in(before)))
      settle(v_, slab, before & ~state::held);
  }

  /// Releases the slab if it is alive, has no slot reserved and nothing of `unless` in its word;
  /// true if it was this call that did. The slab is then the caller's, to put into the pool.
  GROSR_DEVICE bool release(std::uint32_t slab, std::uint64_t unless) const {
    simt::atomic_ref<std::uint64_t> word = v_.state_of(slab);
    std::uint64_t s = word.load(simt::relaxed);
    while (state::is_alive(s) && state::class_in(s) < slot_classes && state::count(s) == 0 &&
           (s & unless) == 0) {
      // A3: pairs with R1 of all who freed: their subtractions, or later ones, are what it reads.
      if (word.compare_exchange(s, state::seen, simt::acquire)) {
        v_.partial(state::class_in(s)).remove(slab);
        v_.nearly_full(state::class_in(s)).remove(slab);
        return true;
      }
    }
    return false;
  }

  /// One lane: those of the reserved slots that are in the word which the cursor names, or in the
  /// next one if they would not fit there.
  GROSR_DEVICE found_slots find_first(const reservation& p, std::uint32_t slots) const {
    std::uint32_t at = fold(p.cursor, slots), w = at / 32;
    if (at % 32 + p.count > 32) {
      w = (w + 1) * 32 < slots ? w + 1 : 0;
      at = 0;
    }
    std::uint32_t wanted = simt::lowest_bits(valid_bits(w, slots) & ~0u << (at % 32), p.count);
    // A1: pairs with R1 of who freed the slots.
    std::uint32_t before = v_.bits_of(p.slab, w).fetch_or(wanted, simt::acquire);
    return {w, wanted & ~before};
  }

  /// Lanes of `callers`, a whole number of groups: each group finds the slots that were reserved
  /// for its first lanes. The caller's slot, if it is one of them.
  GROSR_DEVICE std::uint32_t find_slots(const slot_request& r, std::uint32_t slots,
                                        std::uint32_t callers) const {
    const reservation& p = r.reserved;
    std::uint32_t words = (slots + 31) / 32, mine = 0, served = 0;
    unsigned leader = simt::lowest_bit(r.group), rank = simt::rank_in(r.group, simt::lane_id());
    std::uint32_t bits = simt::shuffle(callers, r.found.bits, leader);
    std::uint32_t w = simt::shuffle(callers, r.found.word, leader);
    if (bits == 0) w = fold(p.cursor, slots) / 32;
    for (unsigned turn = 0;; ++turn) {
      std::uint32_t n = simt::popcount(bits);
      if (rank >= served && rank - served < n) mine = w * 32 + simt::nth_bit(bits, rank - served);
      served += n;
      callers = simt::ballot(callers, served < p.count);
      if (served >= p.count) return mine;
      // The next word that is not full, of as many as there are lanes to look.
      std::uint32_t next = (w + rank) % words, valid = valid_bits(next, slots);
      std::uint32_t taken = v_.bits_of(p.slab, next).load(simt::relaxed);
      std::uint32_t open = simt::ballot(callers, (taken & valid) != valid) & r.group;
      unsigned who = open != 0 ? simt::lowest_bit(open) : leader;
      std::uint32_t found = simt::shuffle(callers, next, who);
      taken = simt::shuffle(callers, taken, who);
      w = open != 0 ? found : (w + simt::popcount(r.group)) % words;
      bits = 0;
      if (open != 0 && simt::lane_id() == leader) {
        std::uint32_t wanted = simt::lowest_bits(valid_bits(w, slots) & ~taken, p.count - served);
        bits = wanted & ~v_.bits_of(p.slab, w).fetch_or(wanted, simt::acquire);  // A1
      }
      bits = simt::shuffle(callers, bits, leader);
      simt::pause_if_host(turn / words, "a reserved slot");
    }
  }

  /// E1: what the caller did before is found by who looks after E2, or this is true.
  GROSR_DEVICE bool is_watched() const {
    simt::fence_after_answer();
    return simt::atomic_ref<std::uint32_t>(v_.words->watched).load(simt::relaxed) != 0;
  }

  /// Slots came free, and are where others find them.
  GROSR_DEVICE void tell() const {
    if (is_watched()) simt::atomic_ref<std::uint32_t>(v_.words->epoch).fetch_add(2, simt::relaxed);
  }

  /// The same of whole slabs, which are in the pool or the idle set.
  GROSR_DEVICE void tell_of_slabs() const {
    if (!is_watched()) return;
    simt::atomic_ref<std::uint64_t>(v_.words->of_runs.moment).fetch_add(1, simt::relaxed);
    simt::atomic_ref<std::uint32_t>(v_.words->epoch).fetch_add(2, simt::relaxed);
  }

 private:
  GROSR_DEVICE static std::uint32_t valid_bits(std::uint32_t w, std::uint32_t slots) {
    std::uint32_t left = slots - w * 32;
    return simt::first_bits(left);
  }

  // A place in a slab for a cursor: the slots in turn while the slab is new, later any.
  GROSR_DEVICE static std::uint32_t fold(std::uint32_t cursor, std::uint32_t slots) {
    std::uint32_t power = 2u << simt::highest_bit((slots - 1) | 1u);
    std::uint32_t at = cursor & (power - 1);
    return at < slots ? at : at - power / 2;
  }

  // The slab came to have a free slot, or many, or only free ones, or is held no more: it goes
  // where others find it. `now`: its word.
  GROSR_DEVICE GROSR_NOINLINE static void settle(heap_view v, std::uint32_t slab,
                                                 std::uint64_t now) {
    slabs all(v);
    if (state::count(now) == 0) {
      if (!state::is_held(now)) {
        if (!all.release(slab, state::held)) return;
        v.pool().insert(slab);
      } else {
        std::uint64_t before = v.state_of(slab).fetch_or(state::idle, simt::relaxed);
        if ((before & state::idle) != 0) return;
        v.idle().insert(slab);
      }
      return all.tell_of_slabs();
    }
    if (!state::is_held(now)) {
      std::uint32_t c = state::class_in(now);
      if (state::count(now) < heap_view::partial_below(slots_of(c))) {
        if (!all.put_in_partial_cache(slab, c)) v.partial(c).insert(slab);
      } else {
        if (!all.is_watched()) return;  // E2 finds it
        v.nearly_full(c).insert(slab);
      }
    }
    all.tell();
  }

  GROSR_DEVICE bool put_in_partial_cache(std::uint32_t slab, std::uint32_t c) const {
    using word = simt::atomic_ref<std::uint32_t>;
    sm_cache& here = v_.sm_caches[v_.cache_of_caller()];
    for (unsigned i = 0; i < 4; ++i) {
      word slot(here.partial_slot(c, (slab + i) % partial_cache_size));
      std::uint32_t found = 0;
      if (slot.compare_exchange(found, slab + 1, simt::after_result())) return true;  // R9
      if (found == slab + 1) return true;
    }
    return false;
  }

  const heap_view& v_;
};

}  // namespace grosr::alloc
