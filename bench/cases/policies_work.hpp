// Rectangular dataflow graphs of matrix operations, as PTask's figures of scheduling have: each
// node feeds the one below it, products and sums in turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grosr/flow/graph.hpp"

namespace grosr::tool {

struct rectangle_shape {
  unsigned depth, breadth;
  std::uint32_t rows;  ///< of the square matrices
};

class rectangle {
 public:
  /// A source and a sink of each column have room for so many blocks; 0: sinks keep the newest
  /// block, and sources have room for 32.
  rectangle(flow::executor& e, const std::string& name, int priority, const rectangle_shape& shape,
            unsigned room);

  unsigned breadth() const { return shape_.breadth; }
  /// A block of numbers that depend on the seed.
  flow::datablock input(std::uint32_t seed) const;
  const flow::any_source& in(unsigned column) const { return in_[column]; }
  const flow::any_sink& out(unsigned column) const { return out_[column]; }
  void wait() { graph_.wait(); }

  /// What is wrong with a block that came out of a column for one that went in; else empty. A
  /// product of matrices is wrong where it maps a random vector to another one than they do.
  std::string wrong(const flow::datablock& input, const flow::datablock& result) const;

  /// Runs of the last node of a column, on average: of the whole graph.
  double runs() const;
  struct moves {
    double inputs = 0;  ///< that nodes took of other nodes
    double moved = 0;   ///< of these, which lay on another device
    double bytes = 0;
  };
  moves moved() const;

 private:
  const rectangle_shape shape_;
  flow::graph graph_;
  flow::block_template matrix_;
  flow::datablock constant_;
  std::vector<flow::source<std::uint32_t>> in_, constants_;
  std::vector<flow::sink<std::uint32_t>> out_;
};

}  // namespace grosr::tool
