// Writes what workers and submitters recorded as a trace that Perfetto opens.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "grosr/run/detail/host_engine.hpp"
#include "grosr/run/trace_file.hpp"
#include "run/device_clock.hpp"

namespace grosr::run {

/// A packet that a thread of the host submitted; times are clock_ns() of the host.
struct submit_event {
  std::uint64_t begin;  ///< the thread began to look for room
  std::uint64_t sent;   ///< it had a slot; from now on the packet can be found
  std::uint64_t end;    ///< the packet was written
  std::uint32_t type, count, level, slot;
  std::int32_t thread;  ///< Linux's number of it
};

/// The newest 65,536 of them. Any thread may call.
class submit_log {
 public:
  void add(submit_event e);
  std::vector<submit_event> all() const;

 private:
  mutable std::mutex lock_;
  std::deque<submit_event> events_;
};

/// What one runtime recorded.
struct trace_record {
  std::span<const task_type> types;
  std::vector<trace_event> events;  ///< [worker][capacity]
  std::vector<std::uint32_t> counts;
  std::uint32_t capacity;
  std::vector<submit_event> submits;
};

/// A track for each worker, named by its multiprocessor, and
/// one for each thread that submitted, in one process; a span for each run, named by its task type,
/// with the slot of what came from the host; a span for each packet that the host submitted; a
/// counter of the refs that the worker has published; an arrow from where a batch of spawned tasks
/// became ready, or from where a packet was sent, to each run of it; marks for steals and for
/// leaving the device. Times are the device's. Where its clock is not known the host has no tracks.
/// Throws error(invalid_option) when the file cannot be written.
void write_perfetto(const trace_part& part, const device& d, const trace_record& what,
                    const device_clock& clock);

}  // namespace grosr::run
