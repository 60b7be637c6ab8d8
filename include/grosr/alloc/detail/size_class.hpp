// Sizes of blocks: which class serves how many bytes.
//
//   class  0..3    16, 32, 48, 64 bytes
//          4..31   four an octave: 80, 96, 112, 128; 160, 192, 224, 256; ... 8192
//         32..38   7 to 1 slots a slab: 9360, 10912, 13104, 16384, 21840, 32768, 65536
//         39       runs: more than a slab, whole slabs side by side
#pragma once

#include <cstddef>
#include <cstdint>

#include "grosr/simt/lanes.hpp"

namespace grosr::alloc {

inline constexpr std::uint32_t slab_bytes = 1u << 16;
inline constexpr std::uint32_t unit = 16;  ///< the least alignment, and the least block
inline constexpr std::uint32_t max_slots = slab_bytes / unit;
inline constexpr std::uint32_t words_a_slab = max_slots / 32;
inline constexpr std::uint32_t slot_classes = 39;  ///< classes with slots in slabs
inline constexpr std::uint32_t run_class = 39;     ///< runs of slabs
inline constexpr std::uint32_t classes = 40;

/// The class of blocks of `bytes`, from 1; run_class above a slab.
GROSR_DEVICE inline std::uint32_t class_of(std::uint64_t bytes) {
  if (bytes <= 4 * unit) return static_cast<std::uint32_t>(bytes - 1) / unit;
  if (bytes > slab_bytes) return run_class;
  const auto last = static_cast<std::uint32_t>(bytes - 1);
  if (bytes <= 8192) {
    const auto octave = simt::highest_bit(last);
    return 4 + (octave - 6) * 4 + (last >> (octave - 2) & 3);
  }
  return 39 - slab_bytes / (last / unit * unit + unit);
}

// A GPU divides by some thirty instructions that wait for each other, so the rest does without.

/// 65536 / n, rounded up, n from 1 to 8. To multiply by it and shift by 16 divides what is below
/// 4096 by n.
GROSR_DEVICE constexpr std::uint32_t inverse_of(std::uint32_t n) {
  constexpr std::uint64_t to_4 = 0x3fff'5555'7fff'ffff, to_8 = 0x1fff'2492'2aaa'3333;
  return (static_cast<std::uint32_t>((n <= 4 ? to_4 : to_8) >> ((n - 1) % 4 * 16)) & 0xffff) + 1;
}

/// Units of a slot are this many << octave_of(c), below class 32.
GROSR_DEVICE constexpr std::uint32_t step_of(std::uint32_t c) {
  return c < 4 ? c + 1 : 5 + (c & 3);
}
GROSR_DEVICE constexpr std::uint32_t octave_of(std::uint32_t c) { return c < 4 ? 0 : (c >> 2) - 1; }

/// Bytes of a slot; a multiple of `unit`.
GROSR_DEVICE constexpr std::uint32_t slot_bytes(std::uint32_t c) {
  return c < 32 ? unit * step_of(c) << octave_of(c) : inverse_of(39 - c) / unit * unit;
}

/// Slots of a slab.
GROSR_DEVICE constexpr std::uint32_t slots_of(std::uint32_t c) {
  return c < 32 ? inverse_of(step_of(c)) / unit >> octave_of(c) : 39 - c;
}

/// The slot that begins `offset` bytes into a slab of class c; slots_of(c) or more if none does.
GROSR_DEVICE constexpr std::uint32_t slot_at(std::uint32_t c, std::uint32_t offset) {
  std::uint32_t units = offset / unit, slot = 0;
  if (c < 32) {
    slot = (units >> octave_of(c)) * inverse_of(step_of(c)) >> 16;
  } else {
    slot = (units * (39 - c) + 63) / max_slots;
  }
  return slot * slot_bytes(c) == offset ? slot : max_slots;
}

/// The least class from class_of(bytes) on whose slots all are aligned to `alignment`, a power of
/// two up to a slab.
GROSR_DEVICE inline std::uint32_t aligned_class_of(std::uint64_t bytes, std::size_t alignment) {
  std::uint32_t c = class_of(bytes < alignment ? alignment : bytes);
  if (alignment <= unit) return c;
  while (c < slot_classes && slot_bytes(c) % alignment != 0) ++c;
  return c;
}

}  // namespace grosr::alloc
