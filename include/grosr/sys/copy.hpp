// Copies of a group of threads between their memory and a chunk of the arena.
#pragma once

#include "grosr/sys/layout.hpp"

namespace grosr::sys {

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

}  // namespace grosr::sys
