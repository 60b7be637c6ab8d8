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
  /// Runs that may be queued or running on a device at a time; at least 1.
  unsigned depth = 16;
  /// Which queued node runs next, and where: "fifo", the one that has waited longest; "priority",
  /// so that graphs share units by graph_options::priority; "data_aware", where most of its input
  /// bytes lie; "first_available", in turn.
  std::string policy = "fifo";
  /// Where a trace of all that its graphs do is written when it ends, for Perfetto: a track for
  /// each node, for the copies to and from each device, and for each thread that pushes and pulls;
  /// arrows from who made a block to who takes it; why each run and each copy was made. Empty: the
  /// environment's GROSR_TRACE, else none. The newest 200,000 of each are kept. Copies are not put
  /// together while it is recorded, so many small ones take longer. Tried at the start; a file
  /// that was written in this process already gets "PROGRAM.PID.DEVICE.2" into its name.
  std::string trace = {};
  /// Nanoseconds since any moment, for tests that hold time. None: the steady clock.
  std::function<std::int64_t()> clock = {};
};

/// Thread-safe. Must outlive its graphs.
class executor {
 public:
  /// Throws error(invalid_option) for depth 0, for an unknown policy, with the known names, and for
  /// a trace that cannot be written;
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
