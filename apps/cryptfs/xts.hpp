// AES-XTS (IEEE 1619) of whole sectors: what all that encrypt or decrypt are asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "aes.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::cryptfs {

/// Sectors that lie one behind the other, in a file and in memory. The tweak of a sector is a
/// number of 128 bits: its place in the file, with the file's number in the upper half.
struct sectors {
  std::uint64_t file = 0;
  std::uint64_t first = 0;
  std::size_t count = 0;
  std::uint32_t bytes = 4096;  ///< of each: a multiple of 16, at most 65,536

  std::size_t all_bytes() const { return count * bytes; }
};

enum class way : std::uint8_t { encrypt, decrypt };

/// The two keys of XTS, expanded for a device.
struct xts_keys {
  round_keys encrypt, decrypt, tweak;

  /// `key`: that of the data, then that of the tweaks; 32 bytes for AES-128, 64 for AES-256.
  explicit xts_keys(std::span<const std::uint8_t> key)
      : encrypt(keys_to_encrypt(key.first(key.size() / 2))),
        decrypt(keys_to_decrypt(key.first(key.size() / 2))),
        tweak(keys_to_encrypt(key.last(key.size() / 2))) {}
};

/// The tables in the memory of a device.
class device_tables {
 public:
  explicit device_tables(const device& d)
      : sms(d.properties().sms), words_(d, simt::space::device, 512) {
    std::uint32_t both[512];
    for (unsigned i = 0; i < 256; ++i) {
      both[i] = tables().encrypt[i];
      both[256 + i] = tables().decrypt[i];
    }
    words_.copy_from(both);
  }
  const unsigned sms;  ///< multiprocessors of the device
  const std::uint32_t* encrypt() const { return words_.data(); }
  const std::uint32_t* decrypt() const { return words_.data() + 256; }

 private:
  simt::buffer<std::uint32_t> words_;
};

/// Table lookups of one AES block, which are what takes time.
constexpr double lookups(unsigned rounds) { return 16.0 * rounds; }

/// Puts into a stream what encrypts or decrypts `what`. `in` and `out` are aligned to 16 bytes, lie
/// where the device reaches them, and may be the same.
void launch_xts(simt::stream& s, const xts_keys& keys, const device_tables& at, way how,
                const sectors& what, const void* in, void* out);

}  // namespace grosr::cryptfs
