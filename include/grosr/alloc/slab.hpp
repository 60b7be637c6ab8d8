// One slab: promising slots, finding them, giving them back; its birth and death.
#pragma once

#include "grosr/alloc/layout.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::alloc {

/// Slots of one slab that are promised to a group of lanes.
struct promise {
  std::uint32_t slab = 0;
  std::uint32_t count = 0;
  std::uint32_t cursor = 0;  ///< where to look for them first
};

/// What one lane may do with slabs. Cheap to make.
class slabs {
 public:
  GROSR_DEVICE explicit slabs(const heap_view& v) : v_(v) {}

  /// Promises the caller up to n slots of a slab that should be of class c.
  GROSR_DEVICE promise reserve(std::uint32_t slab, std::uint32_t c, std::uint32_t n) const {
    // A6: pairs with R6 in give_birth(): who freed the slab's blocks in an earlier life was seen.
    std::uint64_t before = v_.state_of(slab).fetch_add(state::promise(n), simt::acquire);
    std::uint32_t got = 0;
    if (state::is_class(before, c)) {
      std::uint32_t used = state::count(before), slots = slots_of(c);
      std::uint32_t left = used < slots ? slots - used : 0;
      got = n < left ? n : left;
    }
    if (got < n) take_back(slab, n - got);
    return {slab, got, state::cursor(before)};
  }

  /// Takes n promises of a slab back: what was freed, or not had. Tells who may want the slab.
  GROSR_DEVICE void take_back(std::uint32_t slab, std::uint32_t n) const {
    std::uint64_t before = v_.state_of(slab).fetch_sub(n, simt::relaxed);
    if (!state::is_alive(before) || state::class_in(before) >= slot_classes) return;
    std::uint32_t slots = slots_of(state::class_in(before)), count = state::count(before);
    if (count == n || (count >= slots && count - n < slots)) settle(slab, before - n);
  }

  /// Puts a slab that was taken from the pool to use: class c, n slots promised.
  GROSR_DEVICE promise give_birth(std::uint32_t slab, std::uint32_t c, std::uint32_t n,
                                  bool held) const {
    // R6: pairs with A6.
    std::uint64_t before = v_.state_of(slab).fetch_add(
        state::of_class(c) | (held ? state::held : 0) | state::promise(n), simt::release);
    return {slab, n, state::cursor(before)};
  }

  /// Promises up to n slots of a slab if it is of class c and has some, without ever promising more
  /// than there are. With `hold`: only if nobody holds it, and then the caller does.
  GROSR_DEVICE promise try_reserve(std::uint32_t slab, std::uint32_t c, std::uint32_t n,
                                   bool hold) const {
    simt::atomic_ref<std::uint64_t> word = v_.state_of(slab);
    std::uint32_t slots = slots_of(c);
    std::uint64_t s = word.load(simt::relaxed);
    while (state::is_class(s, c) && !(hold && state::is_held(s)) && state::count(s) < slots) {
      std::uint32_t left = slots - state::count(s), got = n < left ? n : left;
      std::uint64_t taken = (s | (hold ? state::held : 0)) + state::promise(got);
      if (word.compare_exchange(s, taken, simt::acquire))  // A6
        return {slab, got, state::cursor(s)};
    }
    return {};
  }

  /// Ends the holding.
  GROSR_DEVICE void let_go(std::uint32_t slab) const {
    std::uint64_t before = v_.state_of(slab).fetch_and(~state::held, simt::relaxed);
    if (!state::is_alive(before) || !state::is_held(before)) return;  // died meanwhile
    if (state::count(before) < slots_of(state::class_in(before)))
      settle(slab, before & ~state::held);
  }

  /// Kills the slab if it is alive, has no slot promised and nothing of `unless` in its word; true
  /// if it was this call that did. The slab is then the caller's, to put into the pool.
  GROSR_DEVICE bool kill(std::uint32_t slab, std::uint64_t unless) const {
    simt::atomic_ref<std::uint64_t> word = v_.state_of(slab);
    std::uint64_t s = word.load(simt::relaxed);
    while (state::is_alive(s) && state::class_in(s) < slot_classes && state::count(s) == 0 &&
           (s & unless) == 0) {
      // A3: pairs with R1 of all who freed: their subtractions, or later ones, are what it reads.
      if (word.compare_exchange(s, 0, simt::acquire)) {
        v_.partial(state::class_in(s)).remove(slab);
        return true;
      }
    }
    return false;
  }

  /// Lanes of `pending`: finds the slots that were promised to the first p.count of them; `rank` is
  /// the caller's among them. The slot, if rank < p.count.
  GROSR_DEVICE std::uint32_t find_slots(const promise& p, std::uint32_t slots,
                                        std::uint32_t pending, std::uint32_t rank) const {
    std::uint32_t words = (slots + 31) / 32, mine = 0, served = 0;
    std::uint32_t at = fold(p.cursor, slots), seen = 0;  // bits known to be taken
    unsigned leader = simt::lowest_bit(pending);
    for (unsigned turn = 0;; ++turn) {
      std::uint32_t w = at / 32, need = p.count - served, got = 0;
      if (simt::lane_id() == leader) {
        std::uint32_t valid = w == words - 1 ? ~0u >> (32 * words - slots) : ~0u;
        std::uint32_t high = valid & ~seen & ~0u << (at % 32);
        std::uint32_t wanted = simt::lowest_bits(high, need);
        // A1: pairs with R1 of who freed the slots.
        std::uint32_t before = v_.bits_of(p.slab, w).fetch_or(wanted, simt::acquire);
        got = wanted & ~before;
        std::uint32_t more = need - simt::popcount(got);
        std::uint32_t free = valid & ~(before | wanted);
        if (more != 0 && free != 0) {
          wanted = simt::lowest_bits(free, more);
          got |= wanted & ~v_.bits_of(p.slab, w).fetch_or(wanted, simt::acquire);  // A1
        }
      }
      got = simt::shuffle(pending, got, leader);
      std::uint32_t n = simt::popcount(got);
      if (rank >= served && rank - served < n) mine = w * 32 + simt::nth_bit(got, rank - served);
      served += n;
      if (served >= p.count) return mine;
      // The next word that is not full, of as many as there are lanes to look.
      std::uint32_t lanes = simt::popcount(pending), next = (w + 1 + rank) % words;
      std::uint32_t taken = v_.bits_of(p.slab, next).load(simt::relaxed);
      std::uint32_t all = next == words - 1 ? ~0u >> (32 * words - slots) : ~0u;
      std::uint32_t open = simt::ballot(pending, (taken & all) != all);
      if (open != 0) {
        unsigned who = simt::lowest_bit(open);
        next = simt::shuffle(pending, next, who);
        seen = simt::shuffle(pending, taken, who);
        at = next * 32;
      } else {
        at = (w + lanes) % words * 32;
        seen = 0;
        simt::pause_if_host(turn / words, "a promised slot");
      }
    }
  }

  /// Somebody waits for memory, and some may have become free.
  GROSR_DEVICE void tell_waiters() const {
    using word = simt::atomic_ref<std::uint32_t>;
    if (word(v_.words->waiters).load(simt::relaxed) != 0)
      word(v_.words->freed).fetch_add(1, simt::relaxed);
  }

 private:
  // A place in a slab for a cursor: the slots in turn while the slab is new, later any.
  GROSR_DEVICE static std::uint32_t fold(std::uint32_t cursor, std::uint32_t slots) {
    std::uint32_t power = 2u << simt::highest_bit((slots - 1) | 1u);
    std::uint32_t at = cursor & (power - 1);
    return at < slots ? at : at - power / 2;
  }

  // The slab came to have a free slot, or only free ones, or is held no more: it goes where others
  // find it. `now`: its word.
  GROSR_DEVICE GROSR_NOINLINE void settle(std::uint32_t slab, std::uint64_t now) const {
    if (state::count(now) == 0) {
      if (!state::is_held(now)) {
        if (kill(slab, state::held)) v_.pool().insert(slab);
      } else {
        v_.idle().insert(slab);
      }
    } else if (!state::is_held(now)) {
      v_.partial(state::class_in(now)).insert(slab);
    }
    tell_waiters();
  }

  const heap_view& v_;
};

}  // namespace grosr::alloc
