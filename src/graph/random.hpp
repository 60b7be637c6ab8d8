// Random numbers by their place in a sequence: whoever draws number i, it is the same.
#pragma once

#include <cstdint>

namespace grosr::graphs {

/// The finalizer of splitmix64: a bijection that spreads every bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class random_sequence {
 public:
  constexpr explicit random_sequence(std::uint64_t seed) : key_(mix(seed + step)) {}
  constexpr std::uint64_t operator[](std::uint64_t i) const { return mix(key_ + (i + 1) * step); }

 private:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15;
  std::uint64_t key_;
};

/// Uniform in [0, n), n < 2^32.
constexpr std::uint32_t below(std::uint64_t random, std::uint64_t n) {
  return static_cast<std::uint32_t>(((random >> 32) * n) >> 32);
}

/// Uniform in (0, 1].
constexpr float positive_unit(std::uint64_t random) {
  return static_cast<float>((random >> 40) + 1) * 0x1p-24f;
}

}  // namespace grosr::graphs
