// What GPUs do to the four bytes of a word in one instruction.
#pragma once

#include "grosr/simt/config.hpp"

namespace grosr::simt {

/// c plus the products of each byte of a with the byte of b in the same place (CUDA's __dp4a).
GROSR_DEVICE inline std::uint32_t dot_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if GROSR_ON_GPU
  return __dp4a(a, b, c);
#else
  for (unsigned i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
#endif
}

/// Four of the eight bytes of a (0 to 3, from the lowest on) and b (4 to 7): digit i of `which`, in
/// hexadecimal, from the lowest on, says which becomes byte i. Digits are 0 to 7 (CUDA's
/// __byte_perm).
GROSR_DEVICE inline std::uint32_t pick_bytes(std::uint32_t a, std::uint32_t b,
                                             std::uint32_t which) {
#if GROSR_ON_GPU
  return __byte_perm(a, b, which);
#else
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  std::uint32_t picked = 0;
  for (unsigned i = 0; i < 4; ++i)
    picked |= static_cast<std::uint32_t>(both >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
  return picked;
#endif
}

}  // namespace grosr::simt
