// Words of k bases, 2 bits each, the first base highest: A 0, C 1, G 2, T 3, so that 3 - b is the
// complement of b. And what is known of one after reads were gone through.
#pragma once

#include <cstdint>

#include "grosr/simt/lanes.hpp"

namespace grosr::genome {

inline constexpr unsigned most_k = 31;

/// What goes with all k-mers of a run. k is odd: no k-mer is its own reverse complement.
struct kmer_size {
  std::uint32_t k;

  GROSR_DEVICE constexpr std::uint64_t mask() const { return (std::uint64_t{1} << 2 * k) - 1; }
  /// The k-mer one base further, to the right or to the left.
  GROSR_DEVICE constexpr std::uint64_t append(std::uint64_t x, std::uint32_t base) const {
    return (x << 2 | base) & mask();
  }
  GROSR_DEVICE constexpr std::uint64_t prepend(std::uint64_t x, std::uint32_t base) const {
    return x >> 2 | std::uint64_t{base} << 2 * (k - 1);
  }
  GROSR_DEVICE constexpr std::uint32_t first_of(std::uint64_t x) const {
    return static_cast<std::uint32_t>(x >> 2 * (k - 1));
  }
  GROSR_DEVICE constexpr std::uint64_t reverse_complement(std::uint64_t x) const {
    x = ~x;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    x = (x >> 8 & 0x00ff00ff00ff00ffu) | (x & 0x00ff00ff00ff00ffu) << 8;
    x = (x >> 16 & 0x0000ffff0000ffffu) | (x & 0x0000ffff0000ffffu) << 16;
    x = x >> 32 | x << 32;
    return x >> (64 - 2 * k);
  }
};

/// Bases that were seen beside a k-mer: bit b on its left, bit 4 + b on its right.
struct extensions {
  std::uint32_t bits = 0;

  GROSR_DEVICE static constexpr extensions left(std::uint32_t base) { return {1u << base}; }
  GROSR_DEVICE static constexpr extensions right(std::uint32_t base) { return {16u << base}; }
  /// Those of the reverse complement: all eight bits the other way round.
  GROSR_DEVICE constexpr extensions reversed() const {
    std::uint32_t r = (bits & 0x55) << 1 | (bits & 0xaa) >> 1;
    r = (r & 0x33) << 2 | (r & 0xcc) >> 2;
    return {(r & 0x0f) << 4 | (r & 0xf0) >> 4};
  }
  /// Whether there is one on each side.
  GROSR_DEVICE constexpr bool unique() const {
    const std::uint32_t l = bits & 15, r = bits >> 4;
    return l != 0 && r != 0 && (l & (l - 1)) == 0 && (r & (r - 1)) == 0;
  }
  /// Where unique.
  GROSR_DEVICE std::uint32_t left_base() const { return simt::lowest_bit(bits & 15); }
  GROSR_DEVICE std::uint32_t right_base() const { return simt::lowest_bit(bits >> 4); }
};

/// How often a k-mer was seen, either way round, and what beside it.
struct kmer_seen {
  std::uint32_t count;
  extensions beside;
};

/// The lesser of a k-mer and its reverse complement names both.
struct canonical_kmer {
  std::uint64_t kmer;
  bool reversed;

  GROSR_DEVICE constexpr canonical_kmer(kmer_size size, std::uint64_t x)
      : canonical_kmer(x, size.reverse_complement(x)) {}
  /// Of a k-mer whose reverse complement is known.
  GROSR_DEVICE constexpr canonical_kmer(std::uint64_t x, std::uint64_t reverse)
      : kmer(reverse < x ? reverse : x), reversed(reverse < x) {}
  /// Extensions of one of the two as those of the other one, if it is the other one.
  GROSR_DEVICE constexpr extensions seen_from(extensions e) const {
    return reversed ? e.reversed() : e;
  }
};

}  // namespace grosr::genome
