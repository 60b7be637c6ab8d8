// What a runtime can be told, and what it tells.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace grosr {

class heap;

namespace run {
/// When a wait ends; none: never.
using deadline = std::optional<std::chrono::steady_clock::time_point>;
}  // namespace run

/// Options of a runtime. 0 means "choose for me" where it says so.
struct runtime_options {
  unsigned sms = 0;            ///< multiprocessors to use; 0: all
  unsigned blocks_per_sm = 0;  ///< blocks of 128 threads on each; 0: one less than fit; host: 1
  /// Submission rings a level, at most 8; 0: all, 4 on few multiprocessors, 1 on a host.
  unsigned rings_per_level = 0;
  std::uint32_t ring_capacity = 1024;  ///< packets of a ring; a power of two, 8 to 8192
  std::uint32_t slots = 16384;  ///< single tasks in flight, and as many tickets of several packets
  /// Buffers of 512 tasks for other packets in flight, pinned; from 2. One in 32 is for what comes
  /// back: tasks that were swapped out, completions.
  std::uint32_t staging_buffers = 512;
  std::uint32_t deque_capacity = 128;  ///< refs a worker's deque holds; a power of two
  /// Device memory for tasks, in bytes, queues included. Never exceeded; all of it is taken where
  /// tasks spawn or bring results, else what the queues need.
  std::size_t memory_limit = std::size_t{256} << 20;
  /// Pinned host memory for tasks that find that full, in bytes: wide ones, and those too deep to
  /// run inside their parents. None is taken where no task spawns.
  std::size_t overflow_limit = std::size_t{16} << 20;
  /// Ordinary host memory for tasks that find that full too, in bytes. It is taken when needed.
  std::size_t swap_limit = std::size_t{1} << 30;
  std::uint32_t futures = 1024;  ///< results that the host waits for at a time; see runtime::fork()
  unsigned inline_depth = 4;  ///< how deep lane tasks run in their parents when memory is full, if
                              ///< their stack is small: docs/limits.md
  /// Idle for so long, the kernel leaves the GPU; the next submit brings it back. 0: never.
  std::chrono::microseconds idle_timeout{20'000};
  /// No worker began or ended a run, or said that a long one goes on (context::progressed), for so
  /// long while work is outstanding: the runtime aborts. On host:N time in which its threads had no
  /// processor does not count, up to 16 times this. 0: never; else at least 50 ms.
  std::chrono::milliseconds watchdog{10'000};
  /// What tasks get memory from (context.heap()); none: they get null. The runtime keeps the memory
  /// alive, also when the heap object is gone.
  const grosr::heap* heap = nullptr;
  /// Nobody freed memory of the heap that others can take for so long: context.retry() says no.
  std::chrono::microseconds memory_wait{1'000'000};
  /// Where a Perfetto trace is written at stop; empty: the environment's GROSR_TRACE, else none.
  /// Tried at the start. Later runtimes of the process write
  /// "x.PROGRAM.PID.DEVICE.2.json" for "x.json", and so on.
  std::string trace = {};
};

/// Counters since the runtime began. Taken while it runs, they may lag by some 640 runs a worker.
struct runtime_stats {
  std::uint64_t submitted = 0;  ///< tasks accepted from the host
  std::uint64_t tasks = 0;      ///< tasks run
  std::uint64_t spawned = 0;    ///< tasks started by tasks
  std::uint64_t batches = 0;    ///< runs of up to 32 tasks
  std::uint64_t stolen = 0;     ///< batches taken from another worker
  std::uint64_t inlined =
      0;  ///< tasks run inside another: memory was full, or they came as messages
  std::uint64_t spilled = 0;      ///< batches that went to a spill ring: a deque was full
  std::uint64_t failed = 0;       ///< tasks that returned an error
  std::uint64_t joined = 0;       ///< continuations run where their last result came
  std::uint64_t swapped = 0;      ///< tasks that went by the host's memory: all other was full
  std::uint64_t awaited = 0;      ///< calls that tasks awaited (context.await)
  std::uint64_t rejected = 0;     ///< spawns for which nobody could make room: they were not run
  std::uint64_t busy_ns = 0;      ///< for how long workers had something to run, all together
  std::uint64_t requests = 0;     ///< requests that servers of mailboxes have answered
  std::uint64_t residencies = 0;  ///< how often the kernel was launched
  std::size_t memory = 0;         ///< device memory held for tasks and queues, bytes
  std::size_t host_memory = 0;    ///< pinned host memory held, bytes
  std::size_t stack_memory = 0;   ///< device memory that CUDA held for the stacks of all kernels of
                                  ///< the process when this runtime began, bytes
  unsigned workers = 0;           ///< warps
};

/// A task that failed.
struct task_error {
  std::string type;
  int code = 0;                      ///< negative errno
  std::vector<std::byte> arguments;  ///< the task's bytes
  std::string did;                   ///< what it did: "returned an error", "joined twice"

  /// One line: "search joined twice: -22 (Invalid argument)".
  std::string text() const;
};

}  // namespace grosr
