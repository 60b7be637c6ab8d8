// Strassen's multiplication: ten sums, seven products of half the size, and their sums. The tasks.
#pragma once

#include "recursion/for_each_tile.hpp"
#include "recursion/strassen_tiles.hpp"

namespace grosr::recursion {

/// Floats that a product needs for its sums and products and theirs: seven products run at a time,
/// each in memory of its own.
GROSR_DEVICE constexpr std::uint64_t strassen_arena(std::uint64_t n, std::uint64_t leaf) {
  std::uint64_t floats = 0;
  for (std::uint64_t products = 1; n > leaf; products *= 7, n /= 2)
    floats += products * 17 * (n / 2) * (n / 2);
  return floats;
}

/// c = a b, n x n. Joins twice: as what goes on when the sums are there, and the products.
struct strassen_product {
  using result = void;
  enum : std::uint32_t { sums, products, ends };
  const float *a, *b;
  float *c, *arena;
  std::uint32_t stride_a, stride_b, stride_c, n, leaf, phase;

  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    const std::uint32_t half = n / 2;
    if (n <= leaf) {
      context.pass(
          for_each_tile<multiply>{{a, b, c, stride_a, stride_b, stride_c, n}, 0, tiles_of(n)});
    } else if (phase == sums) {
      context.join(later(products));
      context.fork(
          for_each_tile<add_quarters>{{a, b, arena, stride_a, stride_b, half}, 0, tiles_of(half)});
    } else if (phase == products) {
      context.join(later(ends));
      fork_products(context, half);
    } else {
      context.pass(for_each_tile<add_products>{{plane(10), c, stride_c, half}, 0, tiles_of(half)});
    }
    return 0;
  }

 private:
  GROSR_DEVICE strassen_product later(std::uint32_t next) const {
    strassen_product p = *this;
    p.phase = next;
    return p;
  }
  /// The arena: planes 0 to 9 are the sums, 10 to 16 the products; then come the products' arenas.
  GROSR_DEVICE float* plane(std::uint64_t i) const { return arena + i * (n / 2) * (n / 2); }

  /// Five of the left factors are planes 0 to 4, five of the right ones planes 5 to 9.
  GROSR_DEVICE void fork_products(auto& context, std::uint32_t half) const {
    const float* a22 = a + std::size_t{half} * stride_a + half;
    const float* b22 = b + std::size_t{half} * stride_b + half;
    const std::uint64_t each = strassen_arena(half, leaf);
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < 7; ++i) {
      strassen_product p = later(sums);
      p.n = p.stride_a = p.stride_b = p.stride_c = half;
      p.a = plane(i < 2 ? i : i - 2);
      p.b = plane(i < 1 ? 5 : i < 4 ? i + 4 : i + 3);
      p.c = plane(10 + i);
      p.arena = plane(17) + i * each;
      if (i == 2 || i == 3) {
        p.a = i == 2 ? a : a22;
        p.stride_a = stride_a;
      }
      if (i == 1 || i == 4) {
        p.b = i == 1 ? b : b22;
        p.stride_b = stride_b;
      }
      context.fork(p);
    }
  }
};

}  // namespace grosr::recursion
