#include <memory>

#include "work/trees.hpp"

#include "work/hosted.hpp"

namespace grosr::tool {
namespace {

// Spread over many words: the count must not become what is measured.
GROSR_DEVICE inline void count_leaf(std::uint32_t* leaves) {
  if (leaves == nullptr) return;
  const unsigned word = (simt::block_id() * 32 + simt::lane_id()) % forest::count_words;
  simt::atomic_ref<std::uint32_t>(leaves[word]).fetch_add(1, simt::relaxed);
}

struct small_tree {
  static constexpr unsigned number = 0;
  std::uint32_t* leaves;
  std::uint32_t depth, reserved;
  GROSR_DEVICE void operator()(auto& context) const {
    if (depth == 0) return count_leaf(leaves);
    context.spawn(small_tree{leaves, depth - 1, 0});
    context.spawn(small_tree{leaves, depth - 1, 0});
  }
};
static_assert(sizeof(small_tree) == 16);

struct large_tree {
  static constexpr unsigned number = 0;
  std::uint32_t* leaves;
  std::uint32_t depth, payload[5];
  GROSR_DEVICE void operator()(auto& context) const {
    if (depth == 0) return count_leaf(leaves);
    large_tree child = *this;
    child.depth = depth - 1;
    context.spawn(child);
    context.spawn(child);
  }
};
static_assert(sizeof(large_tree) == 32);

struct block_tree {
  static constexpr unsigned number = 0;
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* leaves;
  std::uint32_t depth, reserved;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    if (depth == 0) return count_leaf(leaves);
    context.spawn(block_tree{leaves, depth - 1, 0});
    context.spawn(block_tree{leaves, depth - 1, 0});
  }
};

}  // namespace

forest::forest(const device& d, tree_kind kind, const runtime_options& options) : kind_(kind) {
  switch (kind) {
    case tree_kind::small:
      runtime_ = std::make_unique<hosted<small_tree>>(d, options);
      break;
    case tree_kind::large:
      runtime_ = std::make_unique<hosted<large_tree>>(d, options);
      break;
    case tree_kind::block:
      runtime_ = std::make_unique<hosted<block_tree>>(d, options);
      break;
  }
}

ticket forest::plant(std::uint32_t depth, std::uint32_t* leaves) {
  switch (kind_) {
    case tree_kind::small:
      return runtime_->submit(small_tree{leaves, depth, 0});
    case tree_kind::large:
      return runtime_->submit(large_tree{leaves, depth, {}});
    case tree_kind::block:
      return runtime_->submit(block_tree{leaves, depth, 0});
  }
  return {};
}

}  // namespace grosr::tool
