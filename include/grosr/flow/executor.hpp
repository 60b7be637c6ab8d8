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
  /// Threads, which run host functions and start kernels. 0: none; then step(), and push(), pull()
  /// and wait() while they wait, do the work in the calling thread.
  unsigned threads = 2;
  /// Invocations that may be queued or running on a device at a time; at least 1.
  unsigned depth = 16;
  /// Which queued node runs next, and where: "fifo", the one that has waited longest; "priority",
  /// graph_options::priority, raised by long waits and short runs; "data_aware", where most of its
  /// input bytes lie; "first_available", in turn.
  std::string policy = "fifo";
  /// Nanoseconds since any moment, for tests that hold time. None: the steady clock.
  std::function<std::int64_t()> clock = {};
};

/// Thread-safe. Must outlive its graphs.
class executor {
 public:
  /// Throws error(invalid_option) for depth 0 and for an unknown policy, with the known names;
  /// error (out_of_memory) when threads cannot be started; as block_memory.
  explicit executor(const executor_options& options = {});
  ~executor();
  executor(const executor&) = delete;

  /// The memory that blocks of its graphs come from. Valid as long as the executor.
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
