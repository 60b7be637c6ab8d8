// What runs dataflow graphs: processing units, the memory of their blocks, and the policy by which
// nodes get them. Resources belong to no graph; graphs share an executor.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grosr/flow/datablock.hpp"

namespace grosr::flow {

class executor_core;

struct executor_options {
  /// Devices that run kernels. Host functions run on the executor's threads.
  std::vector<device> devices = {device::best()};
  /// Threads, which run host functions and start kernels. 0: none; step() does one thing at a time.
  unsigned threads = 2;
  /// Invocations that may be under way on a device at a time, put ahead of what it runs.
  unsigned depth = 16;
  /// By name: "first_available", "fifo", "priority", "data_aware".
  std::string policy = "fifo";
  /// Nanoseconds since any moment, for tests that hold time. None: the steady clock.
  std::function<std::int64_t()> clock = {};
};

/// Thread-safe. Must outlive its graphs.
class executor {
 public:
  /// Throws error(invalid_option) for a policy that there is not, naming those there are; error
  /// (out_of_memory) when threads cannot be started; as block_memory.
  explicit executor(const executor_options& options = {});
  ~executor();
  executor(const executor&) = delete;

  block_memory& memory();

  /// With no threads of its own: does the next thing there is to do, and says whether there was
  /// any. Throws error(misuse) where there are threads.
  bool step();

  /// Names of policies.
  static std::vector<std::string> policies();

 private:
  friend class graph;
  std::shared_ptr<executor_core> core_;
};

}  // namespace grosr::flow
