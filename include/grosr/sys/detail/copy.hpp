// Copies of a group of threads between their memory and a chunk of the arena.
#pragma once

#include "grosr/simt/lanes.hpp"
#include "grosr/sys/detail/layout.hpp"

struct iovec;  // of <sys/uio.h>

namespace grosr::sys {

/// An iovec's members, without the header of Linux that has it.
struct memory_piece {
  void* base;
  std::size_t bytes;
};

/// vectors + n, and vectors[n].
GROSR_DEVICE inline const iovec* vectors_from(const iovec* vectors, std::size_t n) {
  return reinterpret_cast<const iovec*>(reinterpret_cast<const unsigned char*>(vectors) +
                                        n * sizeof(memory_piece));
}
GROSR_DEVICE inline memory_piece vector_at(const iovec* vectors, std::size_t n) {
  memory_piece v;
  __builtin_memcpy(&v, __builtin_assume_aligned(vectors_from(vectors, n), alignof(memory_piece)),
                   sizeof v);
  return v;
}

/// 16 bytes of the caller's own memory.
struct alignas(16) sixteen {
  std::uint32_t w[4];
};

/// The part of a group's copying that thread `rank` of `size` does: `bytes` from `from` to `to`,
/// which lie alike within 16 bytes. Loads of `FromChunk` go past the caches, across the bus.
template <bool FromChunk>
GROSR_DEVICE inline void copy_part(unsigned rank, unsigned size, unsigned char* to,
                                   const unsigned char* from, std::size_t bytes) {
  const auto load_byte = [](const unsigned char* p) {
    return *static_cast<const volatile unsigned char*>(p);
  };
  std::size_t head = (16 - (reinterpret_cast<std::uintptr_t>(to) & 15)) & 15;
  if (head > bytes) head = bytes;
  for (std::size_t i = rank; i < head; i += size) to[i] = load_byte(from + i);
  to += head;
  from += head;
  bytes -= head;
  const std::size_t pieces = bytes / 16;
  auto* wide_to = reinterpret_cast<sixteen*>(to);
  constexpr unsigned at_once = 4;
  GROSR_NO_UNROLL
  for (std::size_t i = rank; i < pieces; i += std::size_t{at_once} * size) {
    sixteen held[at_once];
    for (unsigned k = 0; k < at_once; ++k) {
      const std::size_t at = i + std::size_t{k} * size;
      if (at >= pieces) continue;
      if constexpr (FromChunk) {
        const simt::bus_word w = simt::bus_load_16(from + at * 16);
        held[k] = {{w.w[0], w.w[1], w.w[2], w.w[3]}};
      } else {
        held[k] = reinterpret_cast<const sixteen*>(from)[at];
      }
    }
    for (unsigned k = 0; k < at_once; ++k) {
      const std::size_t at = i + std::size_t{k} * size;
      if (at < pieces) wide_to[at] = held[k];
    }
  }
  for (std::size_t i = pieces * 16 + rank; i < bytes; i += size) to[i] = load_byte(from + i);
}

/// As copy_part(), between a chunk and the memory of vectors: their first `bytes` bytes. What lies
/// on the leader's stack, it copies alone.
template <bool FromChunk>
GROSR_DEVICE inline void copy_vectors(unsigned rank, unsigned size, unsigned char* chunk,
                                      const iovec* vectors, std::size_t bytes) {
  GROSR_NO_UNROLL
  for (std::size_t at = 0, i = 0; at < bytes; ++i) {
    const memory_piece v = vector_at(vectors, i);
    auto* const own = static_cast<unsigned char*>(v.base);
    const std::size_t n = v.bytes < bytes - at ? v.bytes : bytes - at;
    unsigned char* const to = FromChunk ? own : chunk + at;
    const unsigned char* const from = FromChunk ? chunk + at : own;
    at += n;
    const bool alone = n != 0 && simt::is_private(own);
    if (n == 0 || (alone && rank != 0)) continue;
    const unsigned first = alone ? 0 : rank, all = alone ? 1 : size;
    const auto apart =
        reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
    if (apart % 16 == 0) {
      copy_part<FromChunk>(first, all, to, from, n);
      continue;
    }
    if constexpr (FromChunk) {
      // Whole words cross the bus, though they lie otherwise than where they go.
      const std::size_t lead = reinterpret_cast<std::uintptr_t>(from) & 15;
      GROSR_NO_UNROLL
      for (std::size_t word = first * std::size_t{16}; word < lead + n;
           word += all * std::size_t{16}) {
        const simt::bus_word w = simt::bus_load_16(from - lead + word);
        for (unsigned k = 0; k < 16; ++k)
          if (const std::size_t i = word + k - lead; i < n)
            to[i] = static_cast<unsigned char>(w.w[k / 4] >> k % 4 * 8);
      }
    } else {
      GROSR_NO_UNROLL
      for (std::size_t i = first; i < n; i += all) to[i] = from[i];
    }
  }
}

}  // namespace grosr::sys
