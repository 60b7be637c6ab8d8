// AES as tables and round keys (FIPS 197), made on the host. Words hold a column of the state, its
// first row in the lowest byte.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace grosr::cryptfs {

inline constexpr unsigned aes_block_bytes = 16;
inline constexpr unsigned most_rounds = 14;

/// A round's lookups: what a byte of the first row contributes to its column. For the other rows it
/// is turned left by 8, 16 and 24 bits.
struct aes_tables {
  /// 2 S, S, S, 3 S, from the lowest byte on.
  std::array<std::uint32_t, 256> encrypt;
  /// 14, 9, 13 and 11 times the inverse of S.
  std::array<std::uint32_t, 256> decrypt;
};
const aes_tables& tables();

/// Round keys, those of the equivalent inverse cipher for decryption.
struct round_keys {
  unsigned rounds = 0;  ///< 10 for 16 bytes of key, 14 for 32
  std::uint32_t words[4 * (most_rounds + 1)] = {};
};
/// `key`: 16 or 32 bytes.
round_keys keys_to_encrypt(std::span<const std::uint8_t> key);
round_keys keys_to_decrypt(std::span<const std::uint8_t> key);

}  // namespace grosr::cryptfs
