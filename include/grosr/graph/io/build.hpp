// Lists of edges, and the graph they make.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "grosr/graph/csr_graph.hpp"
#include "grosr/graph/host_work.hpp"
#include "grosr/graph/huge_vector.hpp"

namespace grosr::graphs {

struct edge {
  vertex from, to;
};

/// Edges in blocks, with a weight each or without any.
class edge_list {
 public:
  struct block {
    huge_vector<edge> edges;
    huge_vector<float> weights;  ///< as many, or none
  };

  void add(edge e) { room().edges.push_back(e); }
  void add(edge e, float weight) {
    block& b = room();
    b.edges.push_back(e);
    if (b.weights.capacity() == 0) b.weights.reserve(b.edges.capacity());
    b.weights.push_back(weight);
  }
  void add(block b) { blocks_.push_back(std::move(b)); }
  void take(edge_list other) {
    for (block& b : other.blocks_) blocks_.push_back(std::move(b));
  }

  const std::vector<block>& blocks() const { return blocks_; }
  std::uint64_t size() const {
    std::uint64_t n = 0;
    for (const block& b : blocks_) n += b.edges.size();
    return n;
  }

 private:
  static constexpr std::size_t smallest = 1 << 10, largest = 1 << 19;  // edges of a block

  block& room() {
    if (blocks_.empty() || blocks_.back().edges.size() == blocks_.back().edges.capacity()) {
      const std::size_t before = blocks_.empty() ? 0 : blocks_.back().edges.capacity();
      blocks_.emplace_back();
      blocks_.back().edges.reserve(std::clamp(before * 2, smallest, largest));
    }
    return blocks_.back();
  }

  std::vector<block> blocks_;
};

/// The graph of these edges, whose ends are less than `vertices`; directed or every edge both ways.
/// Loops and duplicates are left out and added to `dropped`. At most most_entries entries, those
/// left out included.
csr_graph build(edge_list edges, vertex vertices, bool directed, left_out& dropped,
                const host_work& how = {});

/// Weights uniform in (0, 1] for a graph without any, the same for both directions of an edge.
void give_random_weights(csr_graph& g, std::uint64_t seed, const host_work& how = {});

}  // namespace grosr::graphs
