// Blocks of more than a slab: runs of whole slabs. See docs/internals/memory.md, "Runs".
#pragma once

#include "grosr/alloc/detail/locate.hpp"
#include "grosr/alloc/detail/slab_source.hpp"

namespace grosr::alloc {

/// Bits of leaf words.
namespace bits {
/// The n lowest, n up to 64.
GROSR_DEVICE constexpr std::uint64_t first(unsigned n) {
  return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}
/// Ones in a row from bit 63 downwards.
GROSR_DEVICE inline unsigned leading_ones(std::uint64_t x) {
  return ~x == 0 ? 64 : 63 - simt::highest_bit64(~x);
}
/// Ones in a row from bit 0 upwards.
GROSR_DEVICE inline unsigned trailing_ones(std::uint64_t x) {
  return ~x == 0 ? 64 : simt::lowest_bit64(~x);
}
/// Where n ones in a row begin, n from 1 to 64: bit i is set if bits i to i + n - 1 of `x` are.
GROSR_DEVICE constexpr std::uint64_t beginnings(std::uint64_t x, unsigned n) {
  for (unsigned have = 1; have < n;) {
    unsigned more = have < n - have ? have : n - have;
    x &= x >> more;
    have += more;
  }
  return x;
}
}  // namespace bits

/// Where a short run lies that begins in a leaf word: these bits of it, and the lowest bits of the
/// word above.
struct run_place {
  std::uint64_t mask = 0;  ///< 0: there is none
  unsigned above = 0;      ///< slabs in the word above
};

/// The highest run of n slabs, n from 2 to 64, that begins in a leaf word, the next one being
/// `above`, if none is inside that.
GROSR_DEVICE inline run_place highest_run(std::uint64_t word, std::uint64_t above, unsigned n) {
  unsigned upper = bits::trailing_ones(above);
  if (upper != 0 && upper < n && bits::leading_ones(word) >= n - upper)
    return {~bits::first(64 - (n - upper)), upper};
  std::uint64_t begins = bits::beginnings(word, n);
  if (begins == 0) return {};
  return {bits::first(n) << simt::highest_bit64(begins), 0};
}

/// Runs up to `short_run` are taken without a lock as long as lanes do not meet all the time,
/// longer ones one at a time; all are given back without one.
class runs {
 public:
  static constexpr std::uint32_t none = ~0u;

  GROSR_DEVICE explicit runs(const heap_view& v) : v_(v) {}

  /// One lane: `length` slabs side by side, at least 2; the first one's number, or none.
  GROSR_DEVICE std::uint32_t take(std::uint64_t length) const {
    if (length > v_.count) return none;
    auto n = static_cast<std::uint32_t>(length);
    if (is_exhausted(n)) return none;
    std::uint32_t first = n <= short_run ? look_from_hint(n) : none;
    if (first == none) first = look_everywhere(n);
    if (first == none) return none;
    for (std::uint32_t at = first; at < first + n; at = (at / 64 + 1) * 64)
      simt::atomic_ref<std::uint64_t>(v_.ever_in_runs()[at / 64])
          .fetch_or(part(at, first + n), simt::relaxed);
    word(v_.run_lengths[first]).store(n, simt::relaxed);
    v_.state_of(first).fetch_add(state::of_class(run_class) + 1, simt::relaxed);
    return first;
  }

  /// One lane: gives back the run that begins at `slab`; false if none does.
  GROSR_DEVICE bool give_back(std::uint32_t slab) const {
    long_word state = v_.state_of(slab);
    std::uint64_t s = state.load(simt::relaxed);
    std::uint32_t n = run_length(v_, slab);
    do {
      if (!state::is_class(s, run_class)) return false;
      // Reservations that others have not taken back yet stay.
    } while (!state.compare_exchange(s, state::seen | (state::count(s) - 1), simt::relaxed));
    put(slab, n);
    raise_hints((slab + n - 1) / 64);
    slabs(v_).tell_of_slabs();
    return true;
  }

 private:
  // Longer runs would leave large gaps.
  static constexpr std::uint32_t jumping_run = 16;
  using word = simt::atomic_ref<std::uint32_t>;
  using long_word = simt::atomic_ref<std::uint64_t>;

  // How looking for a short run goes.
  struct way {
    std::uint32_t n;
    unsigned jumps;      // how far a lane may jump, in leaf words; 0: it does not
    bool met = false;    // other lanes were in the way
    std::uint32_t at{};  // the leaf word that the run begins in
  };

  GROSR_DEVICE run_words& shared() const { return v_.words->of_runs; }

  GROSR_DEVICE std::uint64_t moment() const {
    return long_word(shared().moment).load(simt::acquire);
  }

  // Whether no whole slab came free since there was no run of `n` slabs, or of fewer.
  GROSR_DEVICE bool is_exhausted(std::uint32_t n) const {
    std::uint64_t mark = long_word(shared().exhausted).load(simt::relaxed);
    auto least = static_cast<std::uint32_t>(mark & (bits::first(length_bits)));
    return least != 0 && n >= least && mark >> length_bits == moment_bits(moment());
  }

  GROSR_DEVICE void mark_exhausted(std::uint32_t n, std::uint64_t now) const {
    if (is_exhausted(n)) return;
    long_word(shared().exhausted).store(moment_bits(now) << length_bits | n, simt::relaxed);
  }

  static constexpr unsigned length_bits = 24;
  static_assert(active_word::max_slabs < 1u << length_bits);
  GROSR_DEVICE static constexpr std::uint64_t moment_bits(std::uint64_t moment) {
    return moment & bits::first(64 - length_bits);
  }

  GROSR_DEVICE std::uint32_t& hint_for(std::uint32_t n) const {
    return shared().hints[simt::highest_bit(n - 1)];
  }

  // There is, or was, room for a run at `leaf`.
  GROSR_DEVICE void raise_hints(std::uint32_t leaf) const {
    std::uint32_t below_end = v_.pool().leaves() - 1 - leaf;
    for (std::uint32_t& h : shared().hints)
      if (word(h).load(simt::relaxed) > below_end) word(h).fetch_min(below_end, simt::relaxed);
  }

  GROSR_DEVICE std::uint32_t look_from_hint(std::uint32_t n) const {
    std::uint32_t last = v_.pool().leaves() - 1;
    std::uint32_t hint = word(hint_for(n)).load(simt::relaxed);
    std::uint32_t from = hint < last ? last - hint : 0;
    way w{n, n <= jumping_run ? v_.pool().leaves() / 16 : 0};
    std::uint32_t first = look(from, w);
    if (first != none && !w.met && w.at < from)
      word(hint_for(n)).compare_exchange(hint, last - w.at, simt::relaxed);
    return first;
  }

  // All looks at the whole pool. There is no run when four found none and nothing came or went
  // meanwhile, which others are then told. After many that something interfered with: none as well.
  GROSR_DEVICE GROSR_NOINLINE std::uint32_t look_everywhere(std::uint32_t n) const {
    word lock(shared().lock);
    std::uint32_t first = none;
    bool is_short = n <= short_run, locked = false, met = false;
    for (unsigned looks = 0, vain = 0; looks < 64 && !is_exhausted(n); ++looks) {
      if (!locked && (met || !is_short)) {
        // A5: pairs with R5.
        locked = true;
        simt::wait_until(
            [&] { return lock.load(simt::relaxed) == 0 && lock.exchange(1, simt::acquire) == 0; },
            simt::forever, nullptr, "the lane that looks for a run of slabs");
      }
      if (looks == 1) slab_source::watch(v_);
      std::uint64_t now = moment();
      std::uint32_t ended = word(shared().claims_ended).load(simt::acquire);
      std::uint32_t begun = word(shared().claims_begun).load(simt::acquire);
      way w{n, 0};
      first = is_short ? look(v_.pool().leaves() - 1, w) : search(n, w.met);
      if (first != none) {
        if (is_short) raise_hints(w.at);
        break;
      }
      met = w.met;
      if (looks == 0 || slab_source::reclaim(v_)) continue;
      simt::fence(simt::seq_cst);  // what was read is older than what is read now
      bool alone = !met && begun == ended && moment() == now &&
                   word(shared().claims_begun).load(simt::acquire) == begun;
      vain = alone ? vain + 1 : 0;
      if (vain == 4) {
        mark_exhausted(n, now);
        break;
      }
      simt::pause(looks, "another look for a run of slabs");
    }
    if (locked) lock.store(0, simt::release);  // R5: pairs with A5
    return first;
  }

  // A short run that begins in leaf word `from` or below.
  GROSR_DEVICE GROSR_NOINLINE std::uint32_t look(std::uint32_t from, way& w) const {
    constexpr unsigned together = 8;  // loads under way
    slab_set pool = v_.pool();
    std::uint32_t window = 1,
                  seed = simt::lane_id() + 32 * (simt::warp_slot() + 64 * simt::sm_id());
    std::uint64_t above = word_above(from);
    for (std::uint32_t top = from;;) {
      std::uint64_t leaf[together];
      for (unsigned i = 0; i < together; ++i) leaf[i] = i <= top ? pool.leaf_bits(top - i) : 0;
      bool jumped = false;
      for (unsigned i = 0; i < together && i <= top && !jumped; ++i) {
        if (highest_run(leaf[i], above, w.n).mask != 0) {
          std::uint32_t first = take_in(top - i, w);
          if (first != none) return first;
          if (w.jumps > 1 && w.met) {
            window = window * 4 < w.jumps ? window * 4 : w.jumps;
            seed = (seed ^ seed >> 15) * 0x2c1b3c6du;
            seed ^= seed >> 12;
            std::uint32_t far = i + seed % window;
            top = far < top ? top - far : 0;
            above = word_above(top);
            jumped = true;
          }
        }
        if (!jumped) above = leaf[i];
      }
      if (jumped) continue;
      if (top < together) return none;
      top -= together;
    }
  }

  GROSR_DEVICE std::uint64_t word_above(std::uint32_t leaf) const {
    return leaf + 1 < v_.pool().leaves() ? v_.pool().leaf_bits(leaf + 1) : 0;
  }

  // Takes the highest run that begins in `leaf`.
  GROSR_DEVICE std::uint32_t take_in(std::uint32_t leaf, way& w) const {
    for (unsigned turn = w.jumps > 1 ? 1 : 8; turn != 0; --turn) {
      std::uint64_t seen = v_.pool().leaf_bits(leaf), above = word_above(leaf);
      if (w.jumps <= 1 && bits::trailing_ones(above) >= w.n) {
        ++leaf;  // a run came free there that is higher: what is below may begin inside of another
        continue;
      }
      run_place at = highest_run(seen, above, w.n);
      if (at.mask == 0) return none;
      bool got =
          at.above == 0 ? take_inside(leaf, seen, at.mask) : take_both(leaf, seen, above, at);
      if (got) {
        w.at = leaf;
        return leaf * 64 + simt::lowest_bit64(at.mask);
      }
      w.met = true;
    }
    return none;
  }

  // A run in one word. Where that has no more then, what comes back to it may be announced late, as
  // after a claim.
  GROSR_DEVICE bool take_inside(std::uint32_t leaf, std::uint64_t& seen, std::uint64_t mask) const {
    bool last = seen == mask;
    if (last) slab_source::begin_claim(v_);
    bool got = v_.pool().take_all(leaf, seen, mask);
    if (last) slab_source::cancel_claim(v_);
    return got;
  }

  // A run in two words: its lower part, then its upper part, or none.
  GROSR_DEVICE bool take_both(std::uint32_t leaf, std::uint64_t seen, std::uint64_t above,
                              run_place at) const {
    slab_set pool = v_.pool();
    slab_source::begin_claim(v_);
    bool lower = pool.take_all(leaf, seen, at.mask);
    if (lower && !pool.take_all(leaf + 1, above, bits::first(at.above))) {
      pool.insert_bits(leaf, at.mask);
      slab_source::end_claim(v_);
      return false;
    }
    slab_source::cancel_claim(v_);
    return lower;
  }

  // A run of any length: from the end downwards; again from there if another lane was faster.
  GROSR_DEVICE std::uint32_t search(std::uint32_t n, bool& met) const {
    for (unsigned turn = 0; turn < 8; ++turn) {
      std::uint32_t first = highest_of_any_length(n);
      if (first == none) return none;
      // What ends where a slab is free by now began inside of a run that was being freed.
      bool cut = first + n < v_.count && v_.pool().contains(first + n);
      if (!cut && claim(first, n)) return first;
      met = true;
    }
    return none;
  }

  GROSR_DEVICE std::uint32_t highest_of_any_length(std::uint32_t n) const {
    slab_set pool = v_.pool();
    std::uint32_t found = 0;  // free slabs seen, down to where we are
    for (std::uint32_t leaf = pool.leaves(); leaf-- > 0;) {
      std::uint64_t free = pool.leaf_bits(leaf);
      for (unsigned at = 64; at > 0;) {
        // The free slabs right below `at`, then the taken ones below them.
        unsigned ones = bits::leading_ones(free << (64 - at));
        ones = ones < at ? ones : at;
        found += ones;
        at -= ones;
        if (found >= n) return leaf * 64 + at + (found - n);
        if (at == 0) break;
        found = 0;
        unsigned zeros = bits::leading_ones(~free << (64 - at));
        at -= zeros < at ? zeros : at;
      }
    }
    return none;
  }

  // All or nothing.
  GROSR_DEVICE bool claim(std::uint32_t first, std::uint32_t n) const {
    slab_source::begin_claim(v_);
    for (std::uint32_t at = first; at < first + n;) {
      std::uint64_t wanted = part(at, first + n);
      std::uint64_t got = v_.pool().take_bits(at / 64, wanted);
      if (got != wanted) {
        if (got != 0) v_.pool().insert_bits(at / 64, got);
        put(first, at - first);
        slab_source::end_claim(v_);
        return false;
      }
      at += static_cast<std::uint32_t>(simt::popcount64(wanted));
    }
    slab_source::cancel_claim(v_);
    return true;
  }

  // From the end downwards: what a lane finds that takes from the upper end of free slabs then
  // begins where a run began, and equal runs leave no gaps.
  GROSR_DEVICE void put(std::uint32_t first, std::uint32_t n) const {
    for (std::uint32_t end = first + n; end > first;) {
      std::uint32_t at = (end - 1) / 64 * 64;
      at = at > first ? at : first;
      v_.pool().insert_bits(at / 64, part(at, end));
      end = at;
    }
  }

  // The bits from slab `at` to the end of its leaf word or to slab `end`.
  GROSR_DEVICE static std::uint64_t part(std::uint32_t at, std::uint32_t end) {
    return ~std::uint64_t{0} << (at % 64) & bits::first(end - at / 64 * 64);
  }

  const heap_view& v_;
};

}  // namespace grosr::alloc
