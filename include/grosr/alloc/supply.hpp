// Where slots come from: the desk of an SM, and how it gets its next slab.
#pragma once

#include "grosr/alloc/slab.hpp"

namespace grosr::alloc {

/// The supply of one class for lanes of one SM.
class supply {
 public:
  GROSR_DEVICE supply(const heap_view& v, std::uint32_t c)
      : v_(v),
        class_(c),
        column_(simt::sm_id() % v.column_count),
        desk_(v.desks[(c * v.column_count + column_) * max_ways +
                      (simt::warp_slot() & (v.ways(slots_of(c)) - 1))]) {}

  /// One lane: promises it up to n slots of one slab; none when there is no memory.
  GROSR_DEVICE promise take(std::uint32_t n) const {
    std::uint32_t d = word(desk_).load(simt::relaxed);
    if (desk::slab_plus_one(d) != 0 && (d & desk::locked) == 0) {
      promise p = slabs(v_).reserve(desk::slab_plus_one(d) - 1, class_, n);
      if (p.count != 0) return p;
    }
    return refill(n, d);
  }

  /// One lane: takes up to `count` free slabs out of the pool; they have one leaf word.
  GROSR_DEVICE slab_pick take_slabs(unsigned count) const {
    word hint(v_.columns[column_].pool_leaf);
    std::uint32_t before = hint.load(simt::relaxed), leaf = before;
    slab_pick got = v_.pool().take(leaf, spread(), count);
    if (leaf != before && leaf != slab_set::none) hint.store(leaf, simt::relaxed);
    return got;
  }

  /// Takes the empty slabs that desks hold back to the pool; true if there was one.
  GROSR_DEVICE static bool reclaim(const heap_view& v) {
    std::uint32_t leaf = slab_set::none;
    for (bool found = false;;) {
      slab_pick one = v.idle().take(leaf, 0, 1);
      if (one.mask == 0) return found;
      std::uint32_t slab = one.first + simt::lowest_bit64(one.mask);
      if (!slabs(v).kill(slab, 0)) continue;
      v.pool().insert(slab);
      found = true;
    }
  }

 private:
  using word = simt::atomic_ref<std::uint32_t>;

  GROSR_DEVICE std::uint32_t spread() const {
    return (column_ * 64 + simt::warp_slot()) * 2654435769u >> 26;
  }

  // One lane: the desk has no slab, a full one, or is locked. `d`: what its word said.
  GROSR_DEVICE GROSR_NOINLINE promise refill(std::uint32_t n, std::uint32_t d) const {
    for (unsigned tries = 0;;) {
      if ((d & desk::locked) != 0) {
        d = wait_for_desk(desk_, d);
        promise p = try_desk(d, n);
        if (p.count != 0) return p;
      }
      // A7: pairs with R7: the slab that is let go was born.
      if (!word(desk_).compare_exchange(d, d | desk::locked, simt::acquire)) {
        promise p = try_desk(d, n);
        if (p.count != 0) return p;
        continue;
      }
      std::uint32_t old = desk::slab_plus_one(d);
      if (old != 0) slabs(v_).let_go(old - 1);
      promise p = next_slab(n);
      word(desk_).store(desk::unlocked_with(d, p.count != 0 ? p.slab + 1 : 0), simt::release);  // R7
      if (p.count != 0) return p;
      d = word(desk_).load(simt::relaxed);
      if (reclaim(v_)) continue;
      p = from_any_desk(n);
      // Slabs on their way between two owners are in no set for a moment.
      if (p.count != 0 || ++tries == 4) return p;
      simt::pause(tries, "another look for memory");
    }
  }

  GROSR_DEVICE promise next_slab(std::uint32_t n) const {
    slabs s(v_);
    for (std::uint32_t leaf = slab_set::none;;) {
      slab_pick one = v_.partial(class_).take(leaf, spread(), 1);
      if (one.mask == 0) break;
      promise p = s.try_reserve(one.first + simt::lowest_bit64(one.mask), class_, n, true);
      if (p.count != 0) return p;
    }
    slab_pick one = take_slabs(1);
    if (one.mask == 0) return {};
    return s.give_birth(one.first + simt::lowest_bit64(one.mask), class_,
                        n < slots_of(class_) ? n : slots_of(class_), true);
  }

  GROSR_DEVICE promise try_desk(std::uint32_t d, std::uint32_t n) const {
    if (desk::slab_plus_one(d) == 0 || (d & desk::locked) != 0) return {};
    return slabs(v_).reserve(desk::slab_plus_one(d) - 1, class_, n);
  }

  // Slots that are left on other SMs' desks.
  GROSR_DEVICE promise from_any_desk(std::uint32_t n) const {
    std::uint32_t ways = v_.ways(slots_of(class_));
    for (std::uint32_t i = 0; i < v_.column_count * ways; ++i) {
      std::uint32_t& other =
          v_.desks[(class_ * v_.column_count + i / ways) * max_ways + i % ways];
      std::uint32_t d = word(other).load(simt::relaxed);
      if ((d & desk::locked) != 0) d = wait_for_desk(other, d);
      if (desk::slab_plus_one(d) == 0) continue;
      promise p = slabs(v_).try_reserve(desk::slab_plus_one(d) - 1, class_, n, false);
      if (p.count != 0) return p;
    }
    return {};
  }

  // Until a locked desk was unlocked at least once; returns its word. Its holder waits for nobody.
  GROSR_DEVICE static std::uint32_t wait_for_desk(std::uint32_t& which, std::uint32_t locked) {
    std::uint32_t d = locked;
    simt::wait_until([&] { return (d = word(which).load(simt::relaxed)) != locked; },
                     simt::forever, nullptr, "the lane that brings an SM its next slab");
    return d;
  }

  const heap_view& v_;
  std::uint32_t class_, column_;
  std::uint32_t& desk_;
};

}  // namespace grosr::alloc
