// A set of slab numbers that any lane inserts into and takes from: three levels of bits.
//
//   leaf    bit i of word w: slab 64 w + i is in the set
//   middle  bit i of word w: leaf word 64 w + i may not be zero
//   top     bit i of word w: middle word 64 w + i may not be zero
//
// A bit above may be set though what it stands for is zero. It is never clear for longer than an
// operation under way while what it stands for is not zero: who clears it looks again, who sets a
// leaf's first bit sets it afterwards, and both by read-modify-writes, one of which sees the other.
#pragma once

#include <cstdint>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"

namespace grosr::alloc {

/// Slabs taken together: bit i stands for slab `first` + i.
struct slab_pick {
  std::uint32_t first = 0;
  std::uint64_t mask = 0;
};

class slab_set {
 public:
  using word = simt::atomic_ref<std::uint64_t>;
  static constexpr std::uint32_t none = ~0u;

  /// Words of 64 bits that a set of `slabs` slabs takes.
  GROSR_DEVICE static constexpr std::uint32_t leaves_of(std::uint32_t slabs) {
    return (slabs + 63) / 64;
  }
  GROSR_DEVICE static constexpr std::uint32_t words_of(std::uint32_t slabs) {
    std::uint32_t leaves = leaves_of(slabs), middles = leaves_of(leaves);
    return leaves + middles + leaves_of(middles);
  }

  /// Over zeroed words, words_of(slabs) of them.
  GROSR_DEVICE slab_set(std::uint64_t* words, std::uint32_t slabs)
      : leaf_(words),
        leaves_(leaves_of(slabs)),
        middle_(words + leaves_),
        top_(middle_ + leaves_of(leaves_)),
        tops_(leaves_of(leaves_of(leaves_))) {}

  GROSR_DEVICE std::uint32_t leaves() const { return leaves_; }

  GROSR_DEVICE bool contains(std::uint32_t slab) const {
    return leaf_bits(slab / 64) >> (slab % 64) & 1;
  }

  GROSR_DEVICE void insert(std::uint32_t slab) const {
    insert_bits(slab / 64, std::uint64_t{1} << (slab % 64));
  }

  /// Inserts the slabs of one leaf word. The effects of atomics whose results the caller had before
  /// are seen by who takes them.
  GROSR_DEVICE void insert_bits(std::uint32_t leaf, std::uint64_t bits) const {
    // R4: pairs with A4 in take_bits().
    if (word(leaf_[leaf]).fetch_or(bits, simt::in_turn()) == 0) announce(leaf);
  }

  /// Takes `slab` out; false if it was not in.
  GROSR_DEVICE bool remove(std::uint32_t slab) const {
    return contains(slab) && take_bits(slab / 64, std::uint64_t{1} << (slab % 64)) != 0;
  }

  /// Takes those of `bits` that are in the leaf word; returns them.
  GROSR_DEVICE std::uint64_t take_bits(std::uint32_t leaf, std::uint64_t bits) const {
    std::uint64_t before = word(leaf_[leaf]).fetch_and(~bits, simt::acquire);  // A4
    if (before != 0 && (before & ~bits) == 0) withdraw(*this, leaf);
    return before & bits;
  }

  /// Takes all of `bits` out of a leaf word that was `seen`, or none if it is no longer that;
  /// `seen` is then what it is now.
  GROSR_DEVICE bool take_all(std::uint32_t leaf, std::uint64_t& seen, std::uint64_t bits) const {
    if (!word(leaf_[leaf]).compare_exchange(seen, seen & ~bits, simt::acquire)) return false;  // A4
    if (seen == bits) withdraw(*this, leaf);
    return true;
  }

  /// Whether no slab is announced. Those of an operation under way may be there.
  GROSR_DEVICE bool seems_empty() const {
    std::uint64_t any = 0;
    for (std::uint32_t t = 0; t < tops_; ++t) any |= word(top_[t]).load(simt::relaxed);
    return any == 0;
  }

  /// Takes up to `count` slabs, all of one leaf word; an empty pick when the set is empty. `leaf`
  /// is where to look first, and is told where they were. Callers with different `spread` choose
  /// differently, and look at the leaf words `stride` apart from `leaf` before all others.
  GROSR_DEVICE slab_pick take(std::uint32_t& leaf, std::uint32_t spread, unsigned count,
                              std::uint32_t stride) const {
    unsigned least = count;  // slabs a leaf word must have at first
    for (std::uint64_t present = leaf < leaves_ ? leaf_bits(leaf) : 0;;) {
      if (simt::popcount64(present) >= least) {
        std::uint64_t got = take_some(leaf, present, spread, count);
        if (got != 0) return {leaf * 64, got};
      }
      leaf = find(*this, leaf, spread, stride, least);
      if (leaf == none) return {};
      least = 1;
      present = leaf_bits(leaf);
    }
  }

  /// Takes up to `count` slabs of a leaf word, of which `present` were there when looked.
  GROSR_DEVICE std::uint64_t take_some(std::uint32_t leaf, std::uint64_t present,
                                       std::uint32_t spread, unsigned count) const {
    return take_bits(leaf, choose(present, spread % 64, count));
  }

  GROSR_DEVICE std::uint64_t leaf_bits(std::uint32_t leaf) const {
    return word(leaf_[leaf]).load(simt::relaxed);
  }

 private:
  // A leaf word of those `stride` apart from `from` with `least` slabs in it, else one with any, of
  // the lowest middle word that has one; none if there is none.
  GROSR_DEVICE GROSR_NOINLINE static std::uint32_t find(slab_set s, std::uint32_t from,
                                                        std::uint32_t spread, std::uint32_t stride,
                                                        unsigned least) {
    if (stride != 0 && from < s.leaves_ && !s.seems_empty()) {
      for (std::uint32_t at = from + stride; at != from;) {
        if (at >= s.leaves_) at %= stride;
        if (simt::popcount64(s.leaf_bits(at)) >= least) return at;
        if (at == from) break;
        at += stride;
      }
    }
    for (std::uint32_t t = 0; t < s.tops_; ++t) {
      std::uint64_t tops = word(s.top_[t]).load(simt::relaxed);
      for (; tops != 0; tops &= tops - 1) {
        std::uint32_t m = t * 64 + simt::lowest_bit64(tops);
        std::uint64_t middles = word(s.middle_[m]).load(simt::relaxed);
        while (middles != 0) {
          std::uint32_t bit = simt::lowest_bit64(choose(middles, spread % 64, 1));
          if (s.leaf_bits(m * 64 + bit) != 0) return m * 64 + bit;
          withdraw(s, m * 64 + bit);  // announced late
          middles &= ~(std::uint64_t{1} << bit);
        }
      }
    }
    return none;
  }

  // Up to `count` set bits of `from`, the first at or after `start`, then from 0.
  GROSR_DEVICE static std::uint64_t choose(std::uint64_t from, unsigned start, unsigned count) {
    std::uint64_t turned = from >> start | from << (-start & 63), got = turned & (~turned + 1);
    if (count == 2) {
      std::uint64_t rest = turned ^ got;
      got |= rest & (~rest + 1);
    } else if (count > 2) {
      got = simt::lowest_bits64(turned, count);
    }
    return got << start | got >> (-start & 63);
  }

  GROSR_DEVICE void announce(std::uint32_t leaf) const {
    std::uint32_t m = leaf / 64;
    constexpr simt::order o = simt::in_turn();
    if (word(middle_[m]).fetch_or(std::uint64_t{1} << (leaf % 64), o) == 0)
      word(top_[m / 64]).fetch_or(std::uint64_t{1} << (m % 64), o);
  }

  // The leaf word was seen to become zero.
  GROSR_DEVICE GROSR_NOINLINE static void withdraw(slab_set s, std::uint32_t leaf) {
    constexpr simt::order o = simt::in_turn();
    std::uint32_t m = leaf / 64;
    std::uint64_t bit = std::uint64_t{1} << (leaf % 64), top_bit = std::uint64_t{1} << (m % 64);
    std::uint64_t before = word(s.middle_[m]).fetch_and(~bit, o);
    if ((before & bit) == 0) return;  // who cleared it looks again, or who sets it has yet to
    if (word(s.leaf_[leaf]).fetch_or(0, o) != 0) return s.announce(leaf);
    if (before != bit) return;
    before = word(s.top_[m / 64]).fetch_and(~top_bit, o);
    if ((before & top_bit) != 0 && word(s.middle_[m]).fetch_or(0, o) != 0)
      word(s.top_[m / 64]).fetch_or(top_bit, o);
  }

  std::uint64_t* leaf_;
  std::uint32_t leaves_;
  std::uint64_t* middle_;
  std::uint64_t* top_;
  std::uint32_t tops_;
};

}  // namespace grosr::alloc
