// SHA-1 of short messages, as the trees' random numbers need it: one block, in registers.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "grosr/simt/config.hpp"

namespace grosr::recursion {

/// A digest: five words, the first byte the highest of the first.
struct digest {
  std::uint32_t word[5];
};

/// The digest of `Words` big-endian words, up to 13.
template <unsigned Words>
GROSR_DEVICE inline digest sha1(const std::uint32_t (&message)[Words]) {
  static_assert(Words <= 13);
  const auto rotate = [](std::uint32_t x, unsigned n) { return x << n | x >> (32 - n); };
  std::uint32_t w[16] = {};
  for (unsigned i = 0; i < Words; ++i) w[i] = message[i];
  w[Words] = 0x80000000u;
  w[15] = Words * 32;
  std::uint32_t a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476, e = 0xc3d2e1f0;
  const auto round = [&]<unsigned I>(std::integral_constant<unsigned, I>) {
    if constexpr (I >= 16)
      w[I % 16] = rotate(w[(I + 13) % 16] ^ w[(I + 8) % 16] ^ w[(I + 2) % 16] ^ w[I % 16], 1);
    std::uint32_t next = rotate(a, 5) + e + w[I % 16];
    if constexpr (I < 20)
      next += ((b & c) | (~b & d)) + 0x5a827999;
    else if constexpr (I < 40)
      next += (b ^ c ^ d) + 0x6ed9eba1;
    else if constexpr (I < 60)
      next += ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    else
      next += (b ^ c ^ d) + 0xca62c1d6;
    e = d;
    d = c;
    c = rotate(b, 30);
    b = a;
    a = next;
  };
  [&]<unsigned... I>(std::integer_sequence<unsigned, I...>) {
    (round(std::integral_constant<unsigned, I>{}), ...);
  }
  (std::make_integer_sequence<unsigned, 80>{});  // straight-line code: w stays in registers
  return {{a + 0x67452301, b + 0xefcdab89, c + 0x98badcfe, d + 0x10325476, e + 0xc3d2e1f0}};
}

}  // namespace grosr::recursion
