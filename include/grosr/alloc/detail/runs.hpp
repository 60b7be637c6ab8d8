// Blocks of more than a slab: runs of whole slabs.
#pragma once

#include "grosr/alloc/detail/locate.hpp"
#include "grosr/alloc/detail/slab_source.hpp"

namespace grosr::alloc {

/// Runs are taken one at a time, under the heap's run lock; they are given back without it.
class runs {
 public:
  static constexpr std::uint32_t none = ~0u;

  GROSR_DEVICE explicit runs(const heap_view& v) : v_(v) {}

  /// One lane: `length` slabs side by side, at least 2; the first one's number, or none.
  GROSR_DEVICE std::uint32_t take(std::uint64_t length) const {
    if (length > v_.count) return none;
    auto n = static_cast<std::uint32_t>(length);
    word lock(v_.words->run_lock);
    std::uint32_t first = none;
    for (unsigned tries = 0; tries < 4 && first == none && !is_exhausted(n); ++tries) {
      // A5: pairs with R5.
      simt::wait_until(
          [&] { return lock.load(simt::relaxed) == 0 && lock.exchange(1, simt::acquire) == 0; },
          simt::forever, nullptr, "the lane that looks for a run of slabs");
      std::uint32_t now = moment();
      bool overtaken = false;
      if (!is_exhausted(n)) {
        if (tries == 1) slab_source::watch(v_);
        if (tries != 0) slab_source::reclaim(v_);
        first = search(n, overtaken);
        // A slab that comes into the pool from here on changes the moment.
        if (first == none && tries > 1 && !overtaken) {
          word(v_.words->exhausted_length).store(n, simt::relaxed);
          word(v_.words->exhausted[run_class]).store(now | 1, simt::relaxed);
        }
      }
      lock.store(0, simt::release);  // R5: pairs with A5
    }
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
    simt::atomic_ref<std::uint64_t> word = v_.state_of(slab);
    std::uint64_t s = word.load(simt::relaxed);
    std::uint32_t n = run_length(v_, slab);
    do {
      if (!state::is_class(s, run_class)) return false;
      // Reservations that others have not taken back yet stay.
    } while (!word.compare_exchange(s, state::seen | (state::count(s) - 1), simt::relaxed));
    put(slab, n);
    slabs(v_).tell();
    return true;
  }

 private:
  using word = simt::atomic_ref<std::uint32_t>;

  // Whether nothing came free since there was no run of `n` slabs, or of fewer. Under the lock
  // exact; else both words may be of different moments, and the answer late.
  GROSR_DEVICE bool is_exhausted(std::uint32_t n) const {
    return n >= word(v_.words->exhausted_length).load(simt::relaxed) &&
           word(v_.words->exhausted[run_class]).load(simt::relaxed) == (moment() | 1);
  }

  // Grows with every slab that comes into the pool.
  GROSR_DEVICE std::uint32_t moment() const {
    return word(v_.words->epoch).load(simt::relaxed) + word(v_.words->returned).load(simt::relaxed);
  }

  // From the end downwards, so that runs and slabs of slots meet late.
  GROSR_DEVICE std::uint32_t search(std::uint32_t n, bool& overtaken) const {
    slab_set pool = v_.pool();
    std::uint32_t found = 0;  // free slabs seen, down to where we are
    for (std::uint32_t leaf = pool.leaves(); leaf-- > 0;) {
      std::uint64_t bits = pool.leaf_bits(leaf);
      for (unsigned at = 64; at > 0;) {
        // The free slabs right below `at`, then the taken ones below them.
        std::uint64_t below = at == 64 ? bits : bits & ((std::uint64_t{1} << at) - 1);
        std::uint64_t shifted = below << (64 - at);
        unsigned ones = leading_zeros(~shifted);
        ones = ones < at ? ones : at;
        found += ones;
        at -= ones;
        if (found >= n) {
          std::uint32_t first = leaf * 64 + at + (found - n);
          if (claim(first, n)) return first;
          overtaken = true;
          found = 0;
          bits = pool.leaf_bits(leaf);
          continue;
        }
        if (at == 0) break;
        found = 0;
        unsigned zeros = leading_zeros(below << (64 - at));
        at -= zeros < at ? zeros : at;
      }
    }
    return none;
  }

  // All or nothing.
  GROSR_DEVICE bool claim(std::uint32_t first, std::uint32_t n) const {
    for (std::uint32_t at = first; at < first + n;) {
      std::uint64_t wanted = part(at, first + n);
      std::uint64_t got = v_.pool().take_bits(at / 64, wanted);
      if (got != wanted) {
        if (got != 0) v_.pool().insert_bits(at / 64, got);
        put(first, at - first);
        slabs(v_).tell();  // others may not have found them meanwhile
        return false;
      }
      at += static_cast<std::uint32_t>(simt::popcount64(wanted));
    }
    return true;
  }

  GROSR_DEVICE void put(std::uint32_t first, std::uint32_t n) const {
    for (std::uint32_t at = first; at < first + n;) {
      std::uint64_t bits = part(at, first + n);
      v_.pool().insert_bits(at / 64, bits);
      at += static_cast<std::uint32_t>(simt::popcount64(bits));
    }
  }

  // The bits from slab `at` to the end of its leaf word or to slab `end`.
  GROSR_DEVICE static std::uint64_t part(std::uint32_t at, std::uint32_t end) {
    std::uint64_t bits = ~std::uint64_t{0} << (at % 64);
    std::uint32_t left = end - at / 64 * 64;
    return left < 64 ? bits & ((std::uint64_t{1} << left) - 1) : bits;
  }

  GROSR_DEVICE static unsigned leading_zeros(std::uint64_t x) {
    return x == 0 ? 64 : 63 - simt::highest_bit64(x);
  }

  const heap_view& v_;
};

}  // namespace grosr::alloc
