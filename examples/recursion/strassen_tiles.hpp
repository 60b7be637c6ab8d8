// What a block does with one tile of square matrices, whose rows lie `stride` floats apart: the
// product, the sums that Strassen multiplies, and what becomes of the products. Not inlined: each
// needs all registers.
#pragma once

#include "grosr/run/task.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "recursion/unrolled.hpp"

namespace grosr::recursion {

/// Rows and columns of a tile of a matrix.
inline constexpr std::uint32_t tile_side = 64;

GROSR_DEVICE constexpr std::uint32_t tiles_of(std::uint32_t n) {
  return (n / tile_side) * (n / tile_side);
}

/// Four neighbours, moved by one instruction.
struct alignas(16) quad {
  float v[4];
  GROSR_DEVICE friend quad operator+(const quad& x, const quad& y) {
    return {{x.v[0] + y.v[0], x.v[1] + y.v[1], x.v[2] + y.v[2], x.v[3] + y.v[3]}};
  }
  GROSR_DEVICE friend quad operator-(const quad& x, const quad& y) {
    return {{x.v[0] - y.v[0], x.v[1] - y.v[1], x.v[2] - y.v[2], x.v[3] - y.v[3]}};
  }
};
GROSR_DEVICE inline const quad& quad_at(const float* p) {
  return *reinterpret_cast<const quad*>(p);
}
GROSR_DEVICE inline quad& quad_at(float* p) { return *reinterpret_cast<quad*>(p); }

/// Calls f(row, column) for each quad of a tile of an n x n matrix; each thread takes some.
GROSR_DEVICE inline void for_each_quad(std::uint32_t number, std::uint32_t n, unsigned rank,
                                       const auto& f) {
  constexpr unsigned quads = tile_side / 4, rows = run::block_threads / quads;
  const std::uint32_t across = n / tile_side, row = number / across * tile_side,
                      column = number % across * tile_side;
  GROSR_NO_UNROLL
  for (unsigned i = rank / quads; i < tile_side; i += rows) f(row + i, column + rank % quads * 4);
}

/// c = a b, n x n: each thread has 8 x 4 sums in registers.
struct multiply {
  static constexpr unsigned depth = 8, high = 8, wide = 4;  ///< depth: columns of a at a time
  const float *a, *b;
  float* c;
  std::uint32_t stride_a, stride_b, stride_c, n;

  /// Two stages: one is read while the other is filled. Columns of a lie in rows.
  struct stages {
    alignas(16) float a[2][depth][tile_side + 4];
    alignas(16) float b[2][depth][tile_side];
  };
  /// What a thread brings to the next stage.
  struct on_the_way {
    quad a, b;
  };

  GROSR_DEVICE on_the_way fetch(const float* pa, const float* pb, unsigned rank) const {
    constexpr unsigned in_a = depth / 4, in_b = tile_side / 4;  // quads in a row
    return {quad_at(pa + std::size_t{rank / in_a} * stride_a + rank % in_a * 4),
            quad_at(pb + std::size_t{rank / in_b} * stride_b + rank % in_b * 4)};
  }
  GROSR_DEVICE static void put(stages& s, unsigned stage, const on_the_way& w, unsigned rank) {
    constexpr unsigned in_a = depth / 4, in_b = tile_side / 4;
    unrolled<4>(
        [&](auto j) { s.a[stage][rank % in_a * 4 + j.value][rank / in_a] = w.a.v[j.value]; });
    quad_at(&s.b[stage][rank / in_b][rank % in_b * 4]) = w.b;
  }

  /// Adds what column k of a and row k of b make of each other.
  GROSR_DEVICE static void add_column(float (&sum)[high][wide], const stages& s, unsigned stage,
                                      unsigned k, unsigned i0, unsigned j0) {
    const quad y = quad_at(&s.b[stage][k][j0]);
    unrolled<high / 4>([&](auto h) {
      const quad x = quad_at(&s.a[stage][k][i0 + 4 * h.value]);
      unrolled<4>([&](auto i) {
        unrolled<wide>(
            [&](auto j) { sum[4 * h.value + i.value][j.value] += x.v[i.value] * y.v[j.value]; });
      });
    });
  }

  GROSR_DEVICE GROSR_NOINLINE void tile(std::uint32_t number, unsigned rank) const {
    static_assert(tile_side * depth == 4 * run::block_threads);
    static_assert(tile_side * tile_side == high * wide * run::block_threads);
    stages& s = simt::block_shared<stages>();
    const std::uint32_t across = n / tile_side, row = number / across * tile_side,
                        column = number % across * tile_side;
    const unsigned i0 = rank / (tile_side / wide) * high, j0 = rank % (tile_side / wide) * wide;
    const float* pa = a + std::size_t{row} * stride_a;
    const float* pb = b + column;
    float sum[high][wide] = {};
    on_the_way w = fetch(pa, pb, rank);
    put(s, 0, w, rank);
    simt::sync_block();
    GROSR_NO_UNROLL
    for (std::uint32_t k0 = 0, stage = 0; k0 < n; k0 += depth, stage ^= 1) {
      const bool more = k0 + depth < n;
      if (more) {
        pa += depth;
        pb += std::size_t{depth} * stride_b;
        w = fetch(pa, pb, rank);
      }
      GROSR_NO_UNROLL
      for (unsigned k = 0; k < depth; k += 2)
        unrolled<2>([&](auto odd) { add_column(sum, s, stage, k + odd.value, i0, j0); });
      if (more) put(s, stage ^ 1, w, rank);
      simt::sync_block();
    }
    unrolled<high>([&](auto i) {
      float* to = c + std::size_t{row + i0 + i.value} * stride_c + column + j0;
      quad_at(to) = {{sum[i.value][0], sum[i.value][1], sum[i.value][2], sum[i.value][3]}};
    });
  }
};

/// The quarters of a and b, added and subtracted: ten matrices, half x half, after each other.
struct add_quarters {
  const float *a, *b;
  float* sums;
  std::uint32_t stride_a, stride_b, half;

  GROSR_DEVICE GROSR_NOINLINE void tile(std::uint32_t number, unsigned rank) const {
    for_each_quad(number, half, rank, [&](std::uint32_t i, std::uint32_t j) {
      const std::size_t plane = std::size_t{half} * half;
      const float* pa = a + std::size_t{i} * stride_a + j;
      const float* pb = b + std::size_t{i} * stride_b + j;
      float* to = sums + std::size_t{i} * half + j;
      const quad a11 = quad_at(pa), a12 = quad_at(pa + half);
      const quad a21 = quad_at(pa + std::size_t{half} * stride_a);
      const quad a22 = quad_at(pa + std::size_t{half} * stride_a + half);
      quad_at(to) = a11 + a22;
      quad_at(to + plane) = a21 + a22;
      quad_at(to + 2 * plane) = a11 + a12;
      quad_at(to + 3 * plane) = a21 - a11;
      quad_at(to + 4 * plane) = a12 - a22;
      const quad b11 = quad_at(pb), b12 = quad_at(pb + half);
      const quad b21 = quad_at(pb + std::size_t{half} * stride_b);
      const quad b22 = quad_at(pb + std::size_t{half} * stride_b + half);
      quad_at(to + 5 * plane) = b11 + b22;
      quad_at(to + 6 * plane) = b12 - b22;
      quad_at(to + 7 * plane) = b21 - b11;
      quad_at(to + 8 * plane) = b11 + b12;
      quad_at(to + 9 * plane) = b21 + b22;
    });
  }
};

/// The quarters of c from the seven products, half x half, after each other.
struct add_products {
  const float* products;
  float* c;
  std::uint32_t stride_c, half;

  GROSR_DEVICE GROSR_NOINLINE void tile(std::uint32_t number, unsigned rank) const {
    for_each_quad(number, half, rank, [&](std::uint32_t i, std::uint32_t j) {
      const std::size_t plane = std::size_t{half} * half;
      const float* p = products + std::size_t{i} * half + j;
      const auto m = [&](unsigned k) { return quad_at(p + k * plane); };
      float* to = c + std::size_t{i} * stride_c + j;
      float* below = to + std::size_t{half} * stride_c;
      const quad m1 = m(0), m2 = m(1), m3 = m(2), m4 = m(3), m5 = m(4);
      quad_at(to) = m1 + m4 - m5 + m(6);
      quad_at(to + half) = m3 + m5;
      quad_at(below) = m2 + m4;
      quad_at(below + half) = m1 - m2 + m3 + m(5);
    });
  }
};

}  // namespace grosr::recursion
