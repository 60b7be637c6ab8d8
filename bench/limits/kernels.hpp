// The same work as `pairs` and `throughput` without a runtime: launches, graphs, one bulk kernel.
#pragma once

#include <cstdint>
#include <memory>

#include "grosr/simt/device.hpp"

namespace grosr::tool {

/// Launches on one stream. Every call returns at once except wait().
class launcher {
 public:
  explicit launcher(const device& d);
  ~launcher();
  void store_one(std::uint32_t* results, std::uint32_t i);  ///< results[i] = 2 * i
  void store_all(std::uint32_t* results, std::uint32_t n);  ///< the same for all i < n
  void first_stage(std::uint32_t* data, std::uint32_t i);   ///< data[i] = 2 * i
  void second_stage(std::uint32_t* data, std::uint32_t i);  ///< data[i] += 1
  void wait();
  void* native() const;  ///< cudaStream_t, or null

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Kernels recorded once and replayed with one call: a CUDA graph.
class kernel_graph {
 public:
  ~kernel_graph();
  void replay();  ///< and waits

 private:
  friend std::unique_ptr<kernel_graph> store_graph(const device&, std::uint32_t*, std::uint32_t);
  kernel_graph() = default;
  struct state;
  std::unique_ptr<state> state_;
};

/// A graph of n nodes in a row, node i doing store_one(results, i). Null where there are no graphs.
std::unique_ptr<kernel_graph> store_graph(const device& d, std::uint32_t* results, std::uint32_t n);

}  // namespace grosr::tool
