// Points in the memory of ranks.
#pragma once

#include <vector>

#include "clustering.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::kmeans {

/// Each rank's block.
class point_blocks {
 public:
  point_blocks(const problem& p, const sizes& size) : size_(size) {
    for (std::uint32_t r = 0; r < size.ranks; ++r) {
      const std::vector<std::int32_t> block = p.points->block_of(r, size.ranks);
      blocks_.emplace_back(p.where, simt::space::device, block.size()).copy_from(block);
    }
  }
  share of(std::uint32_t rank) const {
    return {blocks_[rank].data(), blocks_[rank].size() / size_.dimensions, size_};
  }

 private:
  sizes size_;
  std::vector<simt::buffer<std::int32_t>> blocks_;
};

}  // namespace grosr::kmeans
