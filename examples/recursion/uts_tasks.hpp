// Unbalanced tree search: a node's digest says how many children it has, so nobody knows the tree's
// shape before it is walked.
#pragma once

#include <cerrno>

#include "grosr/run/runtime.hpp"
#include "recursion/joined.hpp"
#include "recursion/sha1.hpp"
#include "recursion/uts_count.hpp"

namespace grosr::recursion {

/// A node's random number, 31 bits.
GROSR_DEVICE inline std::uint32_t random_of(const digest& node) {
  return node.word[4] & 0x7fffffffu;
}

GROSR_DEVICE inline digest root_of(std::uint32_t seed) { return sha1<5>({0, 0, 0, 0, seed}); }

GROSR_DEVICE inline digest child_of(const digest& n, std::uint32_t i) {
  return sha1<6>({n.word[0], n.word[1], n.word[2], n.word[3], n.word[4], i});
}

/// A tree as tasks see it, and what they have counted; in device memory. Integers only, so that all
/// devices agree.
struct uts_tree_on_device {
  std::uint32_t depth;   ///< nodes there have no children
  std::uint32_t mirror;  ///< xor of random numbers: more children come with larger ones
  std::uint32_t least[uts_most_children + 2];  ///< of 1 child, 2 children ...; then 2^32 - 1
  std::uint64_t nodes, leaves, random;
  std::uint32_t deepest;

  GROSR_DEVICE std::uint32_t children(const digest& node, std::uint32_t at_depth) const {
    const std::uint32_t r = random_of(node) ^ mirror;
    std::uint32_t n = 0;
    GROSR_NO_UNROLL
    while (r >= least[n]) ++n;
    return at_depth < depth ? n : 0;
  }
};

/// A node of whose children some are still to be visited.
struct uts_node {
  digest id;
  std::uint16_t depth, from, to;
};

/// Walks below a node: a warp with a stack in block-shared memory, a child a lane. While others
/// wait for work, and when the stack is full, the older half of the stack goes to tasks of its own.
struct uts_walk {
  using result = void;
  static constexpr grosr::width width = grosr::width::warp;
  static constexpr std::uint32_t room = 96, given_at_once = 16;

  uts_tree_on_device* tree;
  uts_node top;

  GROSR_DEVICE int operator()(auto& context) const;

 private:
  using stack = uts_node[room + simt::warp_size];
  struct stacks {
    stack of_warp[4];
  };
  struct tally {
    std::uint64_t nodes, leaves, random;
    std::uint32_t deepest;
  };

  GROSR_DEVICE static std::uint32_t visit(const uts_tree_on_device& tree, uts_node* nodes,
                                          std::uint32_t size, tally& mine);
  GROSR_DEVICE void add(tally mine) const;
};

GROSR_DEVICE int uts_walk::operator()(auto& context) const {
  const unsigned lane = context.rank();
  uts_node* nodes = simt::block_shared<stacks>().of_warp[simt::warp_id()];
  if (lane == 0) nodes[0] = top;
  tally mine{};
  bool joined = false, too_deep = false;
  GROSR_NO_UNROLL
  for (std::uint32_t size = 1, turn = 0; size != 0; ++turn) {
    context.sync();
    std::uint32_t give = size > room ? size - room / 2 : 0;
    if (give == 0 && size > 1 && turn % 4 == 0 && context.others_wait())
      give = size / 2 < given_at_once ? size / 2 : given_at_once;
    give = simt::shuffle(simt::full_mask, give, 0);
    if (give != 0) {
      if (lane == 0) {
        if (!joined) context.join(recursion::joined{});
        GROSR_NO_UNROLL
        for (std::uint32_t i = 0; i < give; ++i) context.fork(uts_walk{tree, nodes[i]});
        context.publish();
      }
      joined = true;
      size -= give;
      GROSR_NO_UNROLL
      for (std::uint32_t i = 0; i < size; i += simt::warp_size) {
        const uts_node down = i + lane < size ? nodes[give + i + lane] : uts_node{};
        context.sync();
        if (i + lane < size) nodes[i + lane] = down;
        context.sync();
      }
    }
    size = visit(*tree, nodes, size, mine);
    if (mine.deepest > 0xffff) too_deep = true;
    if (simt::ballot(simt::full_mask, too_deep) != 0) return -EOVERFLOW;
  }
  add(mine);
  return 0;
}

/// Whole warp: visits up to 32 children of the newest nodes; how many nodes there are then.
GROSR_DEVICE inline std::uint32_t uts_walk::visit(const uts_tree_on_device& tree, uts_node* nodes,
                                                  std::uint32_t size, tally& mine) {
  const unsigned lane = simt::lane_id();
  const std::uint32_t newest = size - 1, n = size < simt::warp_size ? size : simt::warp_size;
  // Lane l has the l-th newest node: where its children begin among those of all.
  const std::uint32_t count = lane < n ? nodes[newest - lane].to - nodes[newest - lane].from : 0u;
  std::uint32_t end = count;
  for (unsigned d = 1; d < simt::warp_size; d *= 2) {
    const std::uint32_t below = simt::shuffle(simt::full_mask, end, (lane - d) % simt::warp_size);
    if (lane >= d) end += below;
  }
  const std::uint32_t begin = end - count;
  const std::uint32_t all = simt::shuffle(simt::full_mask, end, simt::warp_size - 1);
  const std::uint32_t units = all < simt::warp_size ? all : simt::warp_size;
  // Whose child this lane visits: the last node that begins at or before it.
  std::uint32_t begins = lane < n && begin < simt::warp_size ? 1u << begin : 0;
  for (unsigned d = 1; d < simt::warp_size; d *= 2)
    begins |= simt::shuffle(simt::full_mask, begins, lane ^ d);
  const std::uint32_t whose = simt::popcount(begins & (0xffffffffu >> (31 - lane))) - 1;
  const std::uint32_t first = simt::shuffle(simt::full_mask, begin, whose);
  uts_node child{};
  if (lane < units) {
    const uts_node& parent = nodes[newest - whose];
    child.id = child_of(parent.id, parent.from + (lane - first));
    const std::uint32_t depth = parent.depth + 1u;
    child.depth = static_cast<std::uint16_t>(depth);
    child.to = static_cast<std::uint16_t>(tree.children(child.id, depth));
    ++mine.nodes;
    mine.leaves += child.to == 0 ? 1 : 0;
    mine.random += random_of(child.id);
    if (depth > mine.deepest) mine.deepest = depth;
  }
  // Nodes all of whose children were visited go; of one more some were.
  const std::uint32_t done =
      simt::popcount(simt::ballot(simt::full_mask, lane < n && end <= units));
  if (lane == done && lane < n && begin < units)
    nodes[newest - lane].from =
        static_cast<std::uint16_t>(nodes[newest - lane].from + units - begin);
  const std::uint32_t inner = simt::ballot(simt::full_mask, child.to != 0);
  simt::sync_warp();
  if (child.to != 0) nodes[size - done + simt::rank_in(inner, lane)] = child;
  return size - done + simt::popcount(inner);
}

/// Whole warp: adds what its lanes have counted to what all have.
GROSR_DEVICE inline void uts_walk::add(tally mine) const {
  for (unsigned d = 1; d < simt::warp_size; d *= 2) {
    const unsigned other = simt::lane_id() ^ d;
    mine.nodes += simt::shuffle(simt::full_mask, mine.nodes, other);
    mine.leaves += simt::shuffle(simt::full_mask, mine.leaves, other);
    mine.random += simt::shuffle(simt::full_mask, mine.random, other);
    const std::uint32_t deepest = simt::shuffle(simt::full_mask, mine.deepest, other);
    if (deepest > mine.deepest) mine.deepest = deepest;
  }
  if (simt::lane_id() != 0) return;
  simt::atomic_ref(tree->nodes).fetch_add(mine.nodes, simt::relaxed);
  simt::atomic_ref(tree->leaves).fetch_add(mine.leaves, simt::relaxed);
  simt::atomic_ref(tree->random).fetch_add(mine.random, simt::relaxed);
  simt::atomic_ref<std::uint32_t> deepest(tree->deepest);
  std::uint32_t now = deepest.load(simt::relaxed);
  while (now < mine.deepest && !deepest.compare_exchange(now, mine.deepest, simt::relaxed)) {
  }
}

}  // namespace grosr::recursion
