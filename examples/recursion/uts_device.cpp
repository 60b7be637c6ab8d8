#include "grosr/simt/buffer.hpp"
#include "recursion/uts.hpp"
#include "recursion/uts_tasks.hpp"

namespace grosr::recursion {
namespace {

/// The least random number (mirrored) that has so many children.
std::uint32_t least_with(const uts_tree& tree, std::uint32_t mirror, std::uint32_t children) {
  std::uint64_t low = 0, high = std::uint64_t{1} << 31;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (uts_children_by_formula(tree, static_cast<std::uint32_t>(middle) ^ mirror) >= children)
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<std::uint32_t>(low);  // 2^31: none has
}

uts_tree_on_device on_device(const uts_tree& tree) {
  const bool binomial = tree.shape == uts_tree::kind::binomial;
  uts_tree_on_device s{};
  s.depth = binomial ? uts_most_depth + 1 : tree.depth;
  s.mirror = binomial ? 0x7fffffffu : 0;
  for (std::uint32_t i = 0; i < uts_most_children; ++i)
    s.least[i] = least_with(tree, s.mirror, i + 1);
  s.least[uts_most_children] = s.least[uts_most_children + 1] = ~std::uint32_t{0};
  return s;
}

}  // namespace

struct uts::state : simt::buffer<uts_tree_on_device>, runtime<uts_walk, joined> {
  state(const device& d, const runtime_options& o)
      : simt::buffer<uts_tree_on_device>(d, simt::space::device, 1), runtime(d, o) {}
};

uts::uts(const device& d, const runtime_options& o) : state_(new state(d, o)) {}
uts::~uts() = default;

uts_count uts::run(const uts_tree& tree, const progress_callback& between) {
  tree.check();
  uts_tree_on_device walked = on_device(tree);
  state_->copy_from({&walked, 1});
  const digest root = root_of(tree.seed);
  const std::uint32_t children = tree.shape == uts_tree::kind::binomial
                                     ? static_cast<std::uint32_t>(tree.branch)
                                     : walked.children(root, 0);
  if (children == 0) return {1, 0, 1, 0};
  const uts_walk all{state_->data(), {root, 0, 0, static_cast<std::uint16_t>(children)}};
  const auto found = state_->fork(all);
  try {
    await(*state_, found, between);
  } catch (const grosr::error& e) {
    if (e.code() != errc::task_failed || found.status() != -EOVERFLOW) throw;
    throw error(errc::task_failed, "walk the tree " + tree.text() + ": it is deeper than " +
                                       std::to_string(uts_most_depth) +
                                       "; choose a smaller -q or -m, or another seed");
  }
  state_->copy_to({&walked, 1});
  return {1 + walked.nodes, walked.deepest, walked.leaves, walked.random & 0xffff};
}

runtime_stats uts::stats() {
  state_->wait_all();
  return state_->stats();
}

}  // namespace grosr::recursion
