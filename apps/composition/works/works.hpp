// The works that there are.
#pragma once

#include "grosr/simt/config.hpp"
#include "work.hpp"

namespace grosr::composition {

/// `depth` levels of an operation on matrices, of which the lowest has 2^(depth - 1):
/// ((A op B) op (C op D)).
work tree(operation what, std::uint32_t side, unsigned depth);
/// `width` columns of `depth` operations each, beside each other: ((A op B) op C).
work columns(operation what, std::uint32_t side, unsigned width, unsigned depth);
/// What an element of a product is multiplied by.
float product_scale(std::uint32_t side);

/// Elements in ascending order; their number is a power of two.
work bitonic_sort(std::uint32_t elements);
/// What a block of threads sorts without others, a power of two.
inline constexpr std::uint32_t bitonic_block = 1024;

/// Finite differences in the time domain: an electric field across a square cavity and the magnetic
/// field in its plane (TM), with conducting walls. Ez is on `side` x `side` points between the
/// walls; Hx has a row more, Hy a column more.
work fdtd(std::uint32_t side, unsigned time_steps);
/// Light goes so many points in a time step. Products with it are exact.
inline constexpr float courant_number = 0.5f;

/// The first three principal components of a square matrix by NIPALS, with so many iterations each:
/// scores and loadings of each. `side` is at least 4.
work pca(std::uint32_t side, unsigned iterations);

/// Records by key: the sizes of groups, the records with those of a group side by side, and the sum
/// of each group. `records` is a multiple of group_tile.
work group_by(std::uint32_t records, std::uint32_t groups);
/// Records that one block of threads reads.
inline constexpr std::uint32_t group_tile = 1024;
/// A record is a multiple of 2^-24, from -0.5 up. Its key is how many, modulo `groups`.
GROSR_DEVICE constexpr std::uint32_t group_key(float record, std::uint32_t groups) {
  return static_cast<std::uint32_t>((record + 0.5f) * static_cast<float>(1 << 24)) % groups;
}

}  // namespace grosr::composition
