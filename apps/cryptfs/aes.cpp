#include "aes.hpp"

#include <bit>

namespace grosr::cryptfs {
namespace {

constexpr std::uint8_t twice(std::uint8_t x) {
  return static_cast<std::uint8_t>(x << 1 ^ (x & 0x80 ? 0x1b : 0));
}

constexpr std::uint8_t product(std::uint8_t a, std::uint8_t b) {
  std::uint8_t sum = 0;
  for (; b != 0; b >>= 1, a = twice(a))
    if (b & 1) sum ^= a;
  return sum;
}

constexpr std::uint32_t word(unsigned b0, unsigned b1, unsigned b2, unsigned b3) {
  return b0 | b1 << 8 | b2 << 16 | b3 << 24;
}

/// Inverses in GF(2^8), by powers of 3, and the affine map behind them.
constexpr std::array<std::uint8_t, 256> make_s_box() {
  std::array<std::uint8_t, 256> power{}, s{};
  std::uint8_t p = 1;
  for (unsigned i = 0; i < 255; ++i) {
    power[i] = p;
    p = static_cast<std::uint8_t>(p ^ twice(p));
  }
  const auto mapped = [](std::uint8_t x) {
    return static_cast<std::uint8_t>(x ^ std::rotl(x, 1) ^ std::rotl(x, 2) ^ std::rotl(x, 3) ^
                                     std::rotl(x, 4) ^ 0x63);
  };
  s[0] = mapped(0);
  for (unsigned i = 0; i < 255; ++i) s[power[i]] = mapped(power[(255 - i) % 255]);
  return s;
}
constexpr std::array<std::uint8_t, 256> s_box = make_s_box();

constexpr std::uint32_t unmixed(std::uint8_t x) {
  return word(product(x, 14), product(x, 9), product(x, 13), product(x, 11));
}

constexpr aes_tables make_tables() {
  aes_tables t{};
  for (unsigned x = 0; x < 256; ++x) {
    const std::uint8_t s = s_box[x];
    t.encrypt[x] = word(twice(s), s, s, twice(s) ^ s);
    t.decrypt[s] = unmixed(static_cast<std::uint8_t>(x));
  }
  return t;
}
constexpr aes_tables all_tables = make_tables();

std::uint32_t substituted(std::uint32_t w) {
  return word(s_box[w & 0xff], s_box[w >> 8 & 0xff], s_box[w >> 16 & 0xff], s_box[w >> 24]);
}

/// What decryption does to a column between two rounds.
std::uint32_t unmixed_column(std::uint32_t w) {
  std::uint32_t sum = 0;
  for (int i = 0; i < 4; ++i)
    sum ^= std::rotl(unmixed(static_cast<std::uint8_t>(w >> 8 * i)), 8 * i);
  return sum;
}

}  // namespace

const aes_tables& tables() { return all_tables; }

round_keys keys_to_encrypt(std::span<const std::uint8_t> key) {
  const auto words = static_cast<unsigned>(key.size() / 4);
  round_keys k;
  k.rounds = words + 6;
  for (unsigned i = 0; i < words; ++i)
    k.words[i] = word(key[4 * i], key[4 * i + 1], key[4 * i + 2], key[4 * i + 3]);
  std::uint8_t constant = 1;
  for (unsigned i = words; i < 4 * (k.rounds + 1); ++i) {
    std::uint32_t w = k.words[i - 1];
    if (i % words == 0) {
      w = substituted(std::rotr(w, 8)) ^ constant;
      constant = twice(constant);
    } else if (words > 6 && i % words == 4) {
      w = substituted(w);
    }
    k.words[i] = k.words[i - words] ^ w;
  }
  return k;
}

round_keys keys_to_decrypt(std::span<const std::uint8_t> key) {
  const round_keys e = keys_to_encrypt(key);
  round_keys d;
  d.rounds = e.rounds;
  for (unsigned r = 0; r <= e.rounds; ++r)
    for (unsigned c = 0; c < 4; ++c) {
      const std::uint32_t w = e.words[4 * (e.rounds - r) + c];
      d.words[4 * r + c] = r == 0 || r == e.rounds ? w : unmixed_column(w);
    }
  return d;
}

}  // namespace grosr::cryptfs
