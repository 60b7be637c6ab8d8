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

/// Bytes of a slot; a multiple of `unit`.
GROSR_DEVICE constexpr std::uint32_t slot_bytes(std::uint32_t c) {
  if (c < 4) return unit * (c + 1);
  if (c < 32) return (5 + (c & 3)) << (c >> 2) << 3;
  return slab_bytes / (39 - c) / unit * unit;
}

/// Slots of a slab.
GROSR_DEVICE constexpr std::uint32_t slots_of(std::uint32_t c) {
  return slab_bytes / slot_bytes(c);
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
