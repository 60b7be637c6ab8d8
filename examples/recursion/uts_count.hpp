// What a walk of a tree brings.
#pragma once

#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::recursion {

inline constexpr std::uint32_t uts_most_children = 100;  ///< of a geometric tree's node

struct uts_count {
  std::uint64_t nodes : 48, depth : 16;
  std::uint64_t leaves : 48;
  std::uint64_t random : 16;  ///< sum of all random numbers but the root's

  GROSR_DEVICE void add(const uts_count& o) {
    nodes += o.nodes;
    leaves += o.leaves;
    random += o.random;
    if (o.depth > depth) depth = o.depth;
  }
  bool operator==(const uts_count&) const = default;
};

}  // namespace grosr::recursion
