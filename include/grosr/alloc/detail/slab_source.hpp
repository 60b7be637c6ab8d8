// Where slots come from: an SM's active slabs, and how it gets the next one.
#pragma once

#include "grosr/alloc/detail/slab.hpp"

namespace grosr::alloc {

/// The source of slabs of one class for lanes of one SM.
class slab_source {
  using word = simt::atomic_ref<std::uint32_t>;

 public:
  GROSR_DEVICE slab_source(const heap_view& v, std::uint32_t c)
      : v_(v),
        class_(c),
        cache_(v.cache_of_caller()),
        active_(v.active_at(c, cache_, simt::warp_slot() & (v.ways(slots_of(c)) - 1))) {}

  /// One lane: reserves up to n slots of its active slab. Tells the word of that.
  GROSR_DEVICE reservation try_take(std::uint32_t n, std::uint32_t& d) const {
    d = word(active_).load(simt::relaxed);
    return try_active(d, n);
  }

  /// One lane, after try_take() gave nothing: reserves up to n slots of one slab for it; none when
  /// there is no memory. Where a slab is large against a group's need, one lane brings the next
  /// one and others wait for it.
  GROSR_DEVICE GROSR_NOINLINE reservation refill(std::uint32_t n, std::uint32_t d) const {
    // There was an active slab before memory ran out.
    if (active_word::slab_plus_one(d) == 0 && is_exhausted()) return {};
    bool alone = slots_of(class_) >= 128;
    if (n <= 8) {
      reservation p = from_near_active(n);
      if (p.count != 0) return p;
    }
    for (;;) {
      bool locked = (d & active_word::locked) != 0;
      if (locked) {
        d = wait_for_active(active_, d);
        if (is_exhausted()) return {};
      }
      // A7: pairs with R7: the slab that is let go was initialised.
      if (locked ||
          (alone && !word(active_).compare_exchange(d, d | active_word::locked, simt::acquire))) {
        reservation p = try_active(d, n);
        if (p.count != 0) return p;
        continue;
      }
      reservation p = next_slab(n);
      if (p.count != 0) {
        make_active(d, p, alone);
        end_move();
        return p;
      }
      cancel_move();
      if (alone)
        word(active_).store(active_word::unlocked_with(d, active_word::slab_plus_one(d)),
                            simt::relaxed);
      return look_everywhere(n);
    }
  }

  /// One lane: takes up to `count` free slabs out of the pool; they have one leaf word.
  GROSR_DEVICE slab_pick take_slabs(unsigned count) const {
    slab_set pool = v_.pool();
    // Two loads at a time. Of two words the one with more slabs: others take from them too.
    std::uint32_t first = home(), second = first + v_.sm_cache_count * v_.home_words;
    second = second < pool.leaves() ? second : first;
    std::uint64_t in_first = pool.leaf_bits(first), in_second = pool.leaf_bits(second);
    bool later = simt::popcount64(in_first) < simt::popcount64(in_second);
    std::uint32_t near = later ? second : first;
    std::uint64_t has = later ? in_second : in_first;
    if (simt::popcount64(has) >= count) {
      std::uint64_t got = pool.take_some(near, has, spread(), count);
      if (got != 0) return {near * 64, got};
    }
    word hint(v_.sm_caches[cache_].pool_leaf);
    std::uint32_t before = hint.load(simt::relaxed), leaf = before;
    if (pool.seems_empty()) return {};
    slab_pick got = pool.take(leaf, spread(), count, v_.sm_cache_count);
    if (leaf != before && leaf != slab_set::none) hint.store(leaf, simt::relaxed);
    return got;
  }

  /// From the first time on that memory runs out, who frees lists slabs with any free slot and
  /// changes the epoch. Slabs that came to have one before are listed here.
  GROSR_DEVICE GROSR_NOINLINE static void watch(const heap_view& v) {
    word watched(v.words->watched);
    std::uint32_t before = watched.load(simt::relaxed);
    if (before == 0 && watched.compare_exchange(before, 1, simt::relaxed)) {
      simt::fence(simt::seq_cst);                                // E2
      constexpr unsigned together = heap_view::states_multiple;  // loads under way
      for (std::uint32_t first = 0; first < v.count; first += together) {
        std::uint64_t s[together];
        for (unsigned k = 0; k < together; ++k) s[k] = v.state_of(first + k).load(simt::relaxed);
        for (unsigned k = 0; k < together; ++k) list_if_not_full(v, first + k, s[k]);
      }
      watched.store(2, simt::release);  // R8
    } else {
      simt::wait_until([&] { return watched.load(simt::acquire) == 2; }, simt::forever, nullptr,
                       "the lane that looks through all slabs");  // A8
    }
  }

  /// Takes active slabs that are empty back to the pool; true if there was one.
  GROSR_DEVICE static bool reclaim(const heap_view& v) {
    std::uint32_t leaf = slab_set::none;
    for (bool found = false;;) {
      if (v.idle().seems_empty()) return found;
      begin_claim(v);
      slab_pick one = v.idle().take(leaf, 0, 1, 0);
      if (one.mask == 0) {
        cancel_claim(v);
        return found;
      }
      std::uint32_t slab = one.first + simt::lowest_bit64(one.mask);
      v.state_of(slab).fetch_and(~state::idle, simt::relaxed);
      if (slabs(v).release(slab, 0)) {
        v.pool().insert(slab);
        found = true;
      }
      end_claim(v);
    }
  }

  /// Slabs are out of the pool from when this returns on, and may come back: a look for memory that
  /// meets it may miss them.
  GROSR_DEVICE static void begin_claim(const heap_view& v) {
    simt::await(word(v.words->of_runs.claims_begun).fetch_add(1, simt::in_turn()));
  }
  /// They are back.
  GROSR_DEVICE static void end_claim(const heap_view& v) {
    word(v.words->of_runs.claims_ended).fetch_add(1, simt::in_turn());
  }
  /// None were taken, or for good.
  GROSR_DEVICE static void cancel_claim(const heap_view& v) {
    word(v.words->of_runs.claims_begun).fetch_sub(1, simt::in_turn());
  }

 private:
  // The leaf word of the pool that the caller's warp takes from first.
  GROSR_DEVICE std::uint32_t home() const {
    std::uint32_t leaf = cache_ + v_.sm_cache_count * (simt::warp_slot() & (v_.home_words - 1));
    return leaf < v_.pool().leaves() ? leaf : leaf % v_.pool().leaves();
  }

  GROSR_DEVICE std::uint32_t spread() const { return cache_ * 5 + simt::warp_slot() * 4; }

  // While a lane moves a slab from where all find it to where all find it, it is in between. The
  // move may go on when the answer has come.
  GROSR_DEVICE std::uint32_t begin_move() const {
    return word(v_.sm_caches[cache_].begun).fetch_add(1, simt::in_turn());
  }
  GROSR_DEVICE void end_move() const {
    word(v_.sm_caches[cache_].ended).fetch_add(1, simt::in_turn());
  }
  GROSR_DEVICE void cancel_move() const {
    word(v_.sm_caches[cache_].begun).fetch_sub(1, simt::in_turn());
  }
  GROSR_DEVICE std::uint32_t moves_begun() const {
    std::uint32_t sum = word(v_.words->of_runs.claims_begun).load(simt::acquire);
    for (std::uint32_t i = 0; i < v_.sm_cache_count; ++i)
      sum += word(v_.sm_caches[i].begun).load(simt::acquire);
    return sum;
  }
  GROSR_DEVICE std::uint32_t moves_ended() const {
    std::uint32_t sum = word(v_.words->of_runs.claims_ended).load(simt::acquire);
    for (std::uint32_t i = 0; i < v_.sm_cache_count; ++i)
      sum += word(v_.sm_caches[i].ended).load(simt::acquire);
    return sum;
  }

  GROSR_DEVICE bool is_exhausted() const {
    return word(v_.words->exhausted[class_]).load(simt::relaxed) ==
           (word(v_.words->epoch).load(simt::relaxed) | 1);
  }

  // There was no slab where one is looked for first. There is no memory when four looks through all
  // places find none and no slab was moved meanwhile, which others are then told. After many looks
  // in vain that something interfered with: none as well.
  GROSR_DEVICE GROSR_NOINLINE reservation look_everywhere(std::uint32_t n) const {
    watch(v_);
    for (unsigned look = 0, vain = 0; look < 64 && !is_exhausted(); ++look) {
      std::uint32_t now = word(v_.words->epoch).load(simt::relaxed);
      std::uint32_t ended = moves_ended(), begun = moves_begun();
      reservation p = next_slab(n);
      if (p.count == 0) p = from_any_partial_cache(n);
      if (p.count != 0) {
        make_active(word(active_).load(simt::relaxed), p, false);
        end_move();
        return p;
      }
      cancel_move();
      if (reclaim(v_)) continue;
      p = from_any_active(n);
      if (p.count != 0) return p;
      if (begun == ended && moves_begun() == begun &&
          word(v_.words->epoch).load(simt::relaxed) == now) {
        // More than once, for reservations that are about to be taken back hide empty slabs.
        if (++vain == 4) {
          word(v_.words->exhausted[class_]).store(now | 1, simt::relaxed);
          break;
        }
      } else {
        vain = 0;
      }
      simt::pause(look, "another look for memory");
    }
    if (is_exhausted()) drop_active();
    return {};
  }

  // The way's slab is full: without one, who asks next need not take a reservation back.
  GROSR_DEVICE void drop_active() const {
    std::uint32_t d = word(active_).load(simt::relaxed), slab = active_word::slab_plus_one(d);
    if (slab == 0 || (d & active_word::locked) != 0) return;
    if (word(active_).compare_exchange(d, active_word::unlocked_with(d, 0), simt::acquire))  // A7
      slabs(v_).let_go(slab - 1);
  }

  // Makes the slab active that slots are reserved of, if it has more. Of two lanes that
  // bring one, the second's goes to the partial cache.
  GROSR_DEVICE void make_active(std::uint32_t d, const reservation& p, bool locked) const {
    std::uint32_t other = active_word::slab_plus_one(d),
                  with = active_word::unlocked_with(d, p.slab + 1);
    if (!p.held) {
      if (locked) word(active_).store(active_word::unlocked_with(d, other), simt::relaxed);
      return;
    }
    if (locked)
      simt::await(word(active_).exchange(with, simt::after_result()));  // R7
    else if ((d & active_word::locked) != 0 ||
             !word(active_).compare_exchange(d, with, simt::after_result()))  // R7
      other = p.slab + 1;
    if (other != 0) slabs(v_).let_go(other - 1);
  }

  // Begins a move: slots of a slab that the caller then holds: from the partial cache, from the
  // pool, and when that is empty from the sets of the class.
  GROSR_DEVICE reservation next_slab(std::uint32_t n) const {
    sm_cache& here = v_.sm_caches[cache_];
    std::uint32_t begun = begin_move();
    slab_set pool = v_.pool();
    std::uint32_t near = home(), in_partial_cache = partial_cache_used(here);
    std::uint64_t at_home = pool.leaf_bits(near);
    simt::await(begun);
    reservation p;
    if (in_partial_cache != 0) p = from_partial_cache(here, in_partial_cache, n, 3);
    if (p.count != 0) return p;
    std::uint64_t got = at_home != 0 ? pool.take_some(near, at_home, spread(), 1) : 0;
    slab_pick one = got != 0 ? slab_pick{near * 64, got} : take_slabs(1);
    if (one.mask != 0) return slabs(v_).init(one.first + simt::lowest_bit64(one.mask), class_, n);
    p = some_of(v_.partial(class_), n);
    if (p.count != 0 || !slabs(v_).is_watched()) return p;
    return some_of(v_.nearly_full(class_), n);
  }

  GROSR_DEVICE std::uint32_t partial_cache_used(const sm_cache& c) const {
    std::uint32_t used = 0;
    for (unsigned i = 0; i < partial_cache_size / 4; ++i) {
      simt::bus_word four = simt::bus_load(&c.partial_cache[class_][i]);
      for (unsigned k = 0; k < 4; ++k) used |= (four.w[k] != 0 ? 1u : 0u) << (i * 4 + k);
    }
    return used;
  }

  GROSR_DEVICE reservation from_partial_cache(sm_cache& c, std::uint32_t used, std::uint32_t n,
                                              unsigned looks) const {
    std::uint32_t first = simt::warp_slot() % partial_cache_size;
    for (; used != 0 && looks != 0; --looks) {
      std::uint32_t after = used >> first << first;
      unsigned i = simt::lowest_bit(after != 0 ? after : used);
      used &= ~(1u << i);
      std::uint32_t slab = word(c.partial_slot(class_, i)).exchange(0, simt::acquire);  // A9
      if (slab == 0) continue;
      reservation p = slabs(v_).try_reserve(slab - 1, class_, n, true);
      if (p.count != 0) return p;
    }
    return {};
  }

  GROSR_DEVICE reservation some_of(const slab_set& set, std::uint32_t n) const {
    std::uint32_t& hint = v_.sm_caches[cache_].partial_leaf[class_];
    for (;;) {
      std::uint32_t before = word(hint).load(simt::relaxed), leaf = before;
      slab_pick one = set.take(leaf, spread(), 1, 0);
      if (leaf != before && leaf != slab_set::none) word(hint).store(leaf, simt::relaxed);
      if (one.mask == 0) return {};
      reservation p =
          slabs(v_).try_reserve(one.first + simt::lowest_bit64(one.mask), class_, n, true);
      if (p.count != 0) return p;
    }
  }

  GROSR_DEVICE reservation try_active(std::uint32_t d, std::uint32_t n) const {
    if (active_word::slab_plus_one(d) == 0 || (d & active_word::locked) != 0) return {};
    return slabs(v_).reserve(active_word::slab_plus_one(d) - 1, class_, n);
  }

  GROSR_DEVICE static void list_if_not_full(const heap_view& v, std::uint32_t slab,
                                            std::uint64_t s) {
    if (!state::is_alive(s) || state::is_held(s)) return;
    std::uint32_t c = state::class_in(s);
    if (c < slot_classes && state::count(s) < slots_of(c)) v.nearly_full(c).insert(slab);
  }

  // A few slots are sooner had of another way's slab than of a new one.
  GROSR_DEVICE reservation from_near_active(std::uint32_t n) const {
    constexpr unsigned looks = 3;
    std::uint32_t ways = v_.ways(slots_of(class_)), mine = simt::warp_slot() & (ways - 1);
    std::uint32_t slab[looks], room = 0;
    for (unsigned i = 0; i < looks; ++i)
      slab[i] = active_word::slab_plus_one(
          word(v_.active_at(class_, cache_, (mine + i + 1) & (ways - 1))).load(simt::relaxed));
    for (unsigned i = 0; i < looks; ++i) {
      if (slab[i] == 0) continue;
      std::uint64_t s = v_.state_of(slab[i] - 1).load(simt::relaxed);
      if (state::is_class(s, class_) && state::count(s) < slots_of(class_)) room = slab[i];
    }
    return room != 0 ? slabs(v_).reserve(room - 1, class_, n) : reservation{};
  }

  // Slabs in any SM's partial cache.
  GROSR_DEVICE reservation from_any_partial_cache(std::uint32_t n) const {
    for (std::uint32_t i = 0; i < v_.sm_cache_count; ++i) {
      reservation p = from_partial_cache(v_.sm_caches[i], partial_cache_used(v_.sm_caches[i]), n,
                                         partial_cache_size);
      if (p.count != 0) return p;
    }
    return {};
  }

  // Slots that are left in any SM's active slabs.
  GROSR_DEVICE reservation from_any_active(std::uint32_t n) const {
    std::uint32_t ways = v_.ways(slots_of(class_));
    for (std::uint32_t i = 0; i < v_.sm_cache_count * ways; ++i) {
      std::uint32_t& other = v_.active_at(class_, i / ways, i % ways);
      std::uint32_t d = word(other).load(simt::relaxed);
      if ((d & active_word::locked) != 0) d = wait_for_active(other, d);
      if (active_word::slab_plus_one(d) == 0) continue;
      reservation p = slabs(v_).try_reserve(active_word::slab_plus_one(d) - 1, class_, n, false);
      if (p.count != 0) return p;
    }
    return {};
  }

  // Until a locked word was unlocked at least once; returns its word. Its holder waits for nobody.
  GROSR_DEVICE static std::uint32_t wait_for_active(std::uint32_t& which, std::uint32_t locked) {
    std::uint32_t d = locked;
    // Never for long: pauses do not grow.
    for (unsigned turn = 0; (d = word(which).load(simt::relaxed)) == locked; ++turn)
      simt::pause(turn < 2 ? turn : 2, "the lane that brings an SM its next slab");
    return d;
  }

  const heap_view& v_;
  std::uint32_t class_, cache_;
  std::uint32_t& active_;
};

}  // namespace grosr::alloc
