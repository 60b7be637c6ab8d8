// The threads that handle a connection: the lanes of a warp together, or one thread of the CPU. The
// code of the protocol is written once for both: all lanes run it with the same values, and share
// the copying.
#pragma once

#include <cstring>

#include "grosr/simt/lanes.hpp"

namespace grosr::store {

/// All lanes of a warp; they call its functions together.
struct together {
  GROSR_DEVICE unsigned rank() const { return simt::lane_id(); }
  GROSR_DEVICE bool leads() const { return simt::lane_id() == 0; }
  GROSR_DEVICE void sync() const { simt::sync_warp(); }
  GROSR_DEVICE bool all(bool yes) const { return simt::all(simt::full_mask, yes); }

  GROSR_DEVICE void copy(unsigned char* to, const unsigned char* from, std::uint32_t bytes) const {
    for (std::uint32_t i = simt::lane_id(); i < bytes; i += simt::warp_size) to[i] = from[i];
  }

  /// Moves bytes towards the front, where the two may overlap.
  GROSR_DEVICE void move_down(unsigned char* to, const unsigned char* from,
                              std::uint32_t bytes) const {
    for (std::uint32_t i = 0; i < bytes; i += simt::warp_size) {
      const std::uint32_t at = i + simt::lane_id();
      const unsigned char held = at < bytes ? from[at] : 0;
      simt::sync_warp(simt::full_mask);
      if (at < bytes) to[at] = held;
      simt::sync_warp(simt::full_mask);
    }
  }

  GROSR_DEVICE bool equal(const unsigned char* a, const unsigned char* b,
                          std::uint32_t bytes) const {
    bool same = true;
    for (std::uint32_t i = simt::lane_id(); i < bytes; i += simt::warp_size)
      same = same && a[i] == b[i];
    return all(same);
  }

  /// Where the first `c` is; `bytes` if nowhere.
  GROSR_DEVICE std::uint32_t find(const unsigned char* text, std::uint32_t bytes,
                                  unsigned char c) const {
    for (std::uint32_t i = 0; i < bytes; i += simt::warp_size) {
      const std::uint32_t at = i + simt::lane_id();
      const std::uint32_t hits = simt::ballot(simt::full_mask, at < bytes && text[at] == c);
      if (hits != 0) return i + simt::lowest_bit(hits);
    }
    return bytes;
  }
};

/// One thread.
struct alone {
  bool leads() const { return true; }
  void sync() const {}
  void copy(unsigned char* to, const unsigned char* from, std::uint32_t bytes) const {
    std::memcpy(to, from, bytes);
  }
  void move_down(unsigned char* to, const unsigned char* from, std::uint32_t bytes) const {
    std::memmove(to, from, bytes);
  }
  std::uint32_t find(const unsigned char* text, std::uint32_t bytes, unsigned char c) const {
    const void* at = std::memchr(text, c, bytes);
    return at == nullptr ? bytes
                         : static_cast<std::uint32_t>(static_cast<const unsigned char*>(at) - text);
  }
};

}  // namespace grosr::store
