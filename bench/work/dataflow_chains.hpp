// A dataflow graph that is one chain: each node adds 1 to the number in a block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "grosr/flow/graph.hpp"

namespace grosr::tool {

enum class chain_nodes : std::uint8_t { host, kernel, resident };

class dataflow_chain {
 public:
  dataflow_chain(const device& d, chain_nodes kind, unsigned nodes, unsigned threads);
  dataflow_chain(const dataflow_chain&) = delete;
  ~dataflow_chain();

  /// Pushes so many blocks, of which at most `in_flight` have not been pulled, and pulls them.
  void stream(unsigned blocks, unsigned in_flight);
  /// Pushes one and waits until it was pulled.
  void one() { stream(1, 1); }
  /// Bytes that are held for blocks, and that the plan has.
  std::size_t held_bytes() const;
  std::size_t planned_bytes() const { return planned_; }
  /// The first block that was not what it should be; else empty.
  const std::string& wrong() const { return wrong_; }

 private:
  unsigned nodes_;
  std::size_t planned_ = 0;
  std::string wrong_;
  mutable flow::executor executor_;
  flow::graph graph_;
  std::unique_ptr<flow::source<std::uint32_t>> in_;
  std::unique_ptr<flow::sink<std::uint32_t>> out_;
};

/// By hand: the function of a kernel node, launched on one stream, over a number that is copied
/// there and back in the same stream. Microseconds in all; negative where the result is wrong.
double launch_increments(const device& d, unsigned kernels);

}  // namespace grosr::tool
