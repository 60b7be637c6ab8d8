// Binary trees of tasks: every task above the leaves starts two more.
#pragma once

#include <cstdint>
#include <memory>

#include "work/any_runtime.hpp"

namespace grosr::tool {

enum class tree_kind { small, large, block };  ///< 16 bytes, 32 bytes, 16 bytes and a block wide

/// A runtime for trees of one kind.
class forest {
 public:
  forest(const device& d, tree_kind kind, const runtime_options& options);

  /// Starts a tree of 2^(depth + 1) - 1 tasks. Leaves count themselves into one of `count_words`
  /// words behind `leaves` unless that is null.
  ticket plant(std::uint32_t depth, std::uint32_t* leaves = nullptr);

  any_runtime& runtime() { return *runtime_; }

  static constexpr unsigned count_words = 1024;
  static std::uint64_t tasks(std::uint32_t depth) { return (std::uint64_t{2} << depth) - 1; }
  static std::uint64_t leaves(std::uint32_t depth) { return std::uint64_t{1} << depth; }

 private:
  tree_kind kind_;
  std::unique_ptr<any_runtime> runtime_;
};

}  // namespace grosr::tool
