#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "recursion/uts.hpp"

namespace grosr::recursion {
namespace {

using digest_bytes = std::array<std::uint8_t, 20>;

/// SHA-1 as FIPS 180-4 has it, of a message that fits in one block.
digest_bytes sha1_of(const std::uint8_t* message, std::size_t size) {
  std::array<std::uint8_t, 64> block{};
  std::copy_n(message, size, block.begin());
  block[size] = 0x80;
  block[63] = static_cast<std::uint8_t>(size * 8);
  const auto rotate = [](std::uint32_t x, unsigned n) { return x << n | x >> (32 - n); };
  std::array<std::uint32_t, 80> w{};
  for (unsigned i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | block[i];
  for (unsigned i = 16; i < 80; ++i) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  std::array<std::uint32_t, 5> h{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  auto [a, b, c, d, e] = h;
  const auto round = [&](unsigned i, std::uint32_t f) {
    const std::uint32_t next = rotate(a, 5) + f + e + w[i];
    e = d, d = c, c = rotate(b, 30), b = a, a = next;
  };
  for (unsigned i = 0; i < 20; ++i) round(i, ((b & c) ^ (~b & d)) + 0x5a827999);
  for (unsigned i = 20; i < 40; ++i) round(i, (b ^ c ^ d) + 0x6ed9eba1);
  for (unsigned i = 40; i < 60; ++i) round(i, ((b & c) ^ (b & d) ^ (c & d)) + 0x8f1bbcdc);
  for (unsigned i = 60; i < 80; ++i) round(i, (b ^ c ^ d) + 0xca62c1d6);
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  digest_bytes digest;
  for (unsigned i = 0; i < 20; ++i)
    digest[i] = static_cast<std::uint8_t>(h[i / 4] >> (24 - i % 4 * 8));
  return digest;
}

/// The digest of the given bytes and a number behind them, the highest byte first.
template <std::size_t N>
digest_bytes sha1_with(const std::array<std::uint8_t, N>& first, std::uint32_t number) {
  std::array<std::uint8_t, N + 4> message{};
  std::copy(first.begin(), first.end(), message.begin());
  for (unsigned i = 0; i < 4; ++i)
    message[N + i] = static_cast<std::uint8_t>(number >> (24 - i * 8));
  return sha1_of(message.data(), message.size());
}

std::uint32_t random_of(const digest_bytes& digest) {
  std::uint32_t n = 0;
  for (unsigned i = 16; i < 20; ++i) n = n << 8 | digest[i];
  return n & 0x7fffffffu;
}

struct open_node {
  digest_bytes digest;
  std::uint32_t depth;
};

}  // namespace

std::uint32_t uts_children_by_formula(const uts_tree& tree, std::uint32_t random) {
  const double u = random / 2147483648.0;
  if (tree.shape == uts_tree::kind::binomial) return u < tree.q ? tree.m : 0;
  const double p = 1 / (1 + tree.branch);
  return static_cast<std::uint32_t>(
      std::min(std::floor(std::log(1 - u) / std::log(1 - p)), double{uts_most_children}));
}

uts_count uts_on_host(const uts_tree& tree) {
  const bool binomial = tree.shape == uts_tree::kind::binomial;
  std::vector<open_node> open{{sha1_with(std::array<std::uint8_t, 16>{}, tree.seed), 0}};
  uts_count all{};
  while (!open.empty()) {
    const open_node node = open.back();
    open.pop_back();
    std::uint32_t children = uts_children_by_formula(tree, random_of(node.digest));
    if (binomial && node.depth == 0) children = static_cast<std::uint32_t>(tree.branch);
    if (!binomial && node.depth >= tree.depth) children = 0;
    const std::uint32_t random = node.depth == 0 ? 0 : random_of(node.digest);
    all.add({1, node.depth & 0xffff, children == 0 ? 1u : 0u, random & 0xffff});
    for (std::uint32_t i = 0; i < children; ++i)
      open.push_back({sha1_with(node.digest, i), node.depth + 1});
  }
  return all;
}

}  // namespace grosr::recursion
