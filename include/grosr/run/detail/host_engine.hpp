// The host's side of the resident scheduler as runtime.hpp sees it, without task types and without
// its state, which src/run/engine.hpp has.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "grosr/run/detail/view.hpp"
#include "grosr/run/options.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/stream_order.hpp"

namespace grosr::run {

/// The deadline that is `limit` from now; none when that is beyond the clock.
deadline in(std::chrono::nanoseconds limit);

/// The time that is left, and no less than `least`.
std::chrono::nanoseconds left_until(std::chrono::steady_clock::time_point until,
                                    std::chrono::nanoseconds least = {});

/// One task type as the host knows it.
struct task_type {
  const char* name;
  std::uint32_t bytes;
  std::uint32_t stride;
  width how_wide;
  std::uint32_t frame_bytes;  ///< of one that waits for results; 0: it brings none
  bool completes = false;     ///< see run/task.hpp
};

[[noreturn]] void throw_task_failed(int status);
[[noreturn]] void throw_empty_future();

/// The kernel of one set of task types.
struct program {
  std::span<const task_type> types;        ///< not owned
  simt::kernel_fit (*fit)(const device&);  ///< loads the kernel
  void (*launch)(simt::stream&, simt::shape, const view&);
  run::collection collected;  ///< of a graph
  bool starts_tasks;          ///< some of the types may spawn, or bring results
  bool calls_apart;           ///< tasks are called by address
};

/// Names a submission: complete when the slot's word has reached the generation.
struct ticket_id {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
};

/// Thread-safe, all of it, but construction and destruction.
class host_engine {
 public:
  virtual ~host_engine() = default;

  /// Accepts n tasks of one type, `data` being an array of them. Waits for room until `until`;
  /// with `attempt` it does not wait. Without room: nothing is accepted and nullopt is returned,
  /// but a span that has begun to be accepted is accepted whole.
  virtual std::optional<ticket_id> submit(unsigned type, const void* data, std::size_t n,
                                          unsigned level, deadline until, bool attempt) = 0;

  /// The same, but the tasks wait for the moment; whatever there is no room for is refused.
  virtual ticket_id submit_after(const simt::moment& when, unsigned type, const void* data,
                                 std::size_t n, unsigned level) = 0;
  /// Has the stream wait for the ticket, at the place that it has come to.
  virtual void record(ticket_id t, const simt::any_stream& s) = 0;

  /// Whether the ticket's tasks have run. Never blocks, never throws.
  virtual bool done(ticket_id t) const = 0;
  /// Whether one of them returned an error, as far as that is still known (the newest 65,536).
  virtual bool failed(ticket_id t) const = 0;
  /// Wait for a ticket, or until nothing submitted before is left; false when the deadline passed.
  /// Bring the kernel back if it left. Throw the reason when the runtime is lost.
  virtual bool wait(ticket_id t, deadline until) = 0;
  virtual bool wait_all(deadline until) = 0;

  // Results that the host waits for.
  virtual std::uint32_t take_promise() = 0;
  virtual void give_promise_back(std::uint32_t promise) = 0;  ///< nothing will be brought there
  virtual void drop_promise(std::uint32_t promise) = 0;
  static std::uint64_t destination_of_promise(std::uint32_t promise) {
    return destination::of_host(promise).bits;
  }
  virtual bool promise_ready(std::uint32_t promise) const = 0;
  virtual bool wait_for_promise(std::uint32_t promise, deadline until) = 0;
  virtual const run::promise& promise_at(std::uint32_t promise) const = 0;

  /// Leaves the device at the workers' next step, and returns when the kernel has ended. Work that
  /// is left goes on with the next submit or wait. False when the deadline passed before.
  virtual bool park(deadline until) = 0;
  virtual bool resident() const = 0;

  /// Waits for all, leaves the device and ends. Throws error(timed_out) past the deadline, after an
  /// abort, and the reason when the runtime is lost.
  virtual void stop(deadline until) = 0;
  /// Ends as stop() does past its deadline, but throws nothing.
  virtual void abort() = 0;
  virtual runtime_stats stats() const = 0;
  virtual std::vector<task_error> errors() const = 0;
  virtual const device& where() const = 0;

 protected:
  host_engine() = default;
  host_engine(const host_engine&) = delete;
};

/// The caller owns it. Throws error(invalid_option, out_of_memory, device_lost).
host_engine* make_engine(device d, const runtime_options& options, const program& p);

}  // namespace grosr::run
