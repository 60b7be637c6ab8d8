// A runtime without its task types in the signature: files with device code make them, files
// without use them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "cli/progress.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr::tool {

/// A grosr::runtime<Tasks...>. Task types carry their `number`, the place in that list.
class any_runtime {
 public:
  virtual ~any_runtime() = default;

  template <class Task>
  ticket submit(std::span<const Task> tasks, priority p = priority::normal) {
    return submit_bytes(Task::number, tasks.data(), tasks.size(), p);
  }
  template <class Task>
  ticket submit(const std::vector<Task>& tasks, priority p = priority::normal) {
    return submit(std::span<const Task>(tasks), p);
  }
  template <class Task>
  ticket submit(const Task& task, priority p = priority::normal) {
    return submit(std::span<const Task>(&task, 1), p);
  }

  virtual void wait_all() = 0;
  virtual bool wait_all_for(std::chrono::nanoseconds limit) = 0;
  virtual void park() = 0;
  virtual bool resident() const = 0;
  virtual void stop(std::chrono::nanoseconds limit) = 0;
  virtual runtime_stats stats() const = 0;
  virtual std::vector<task_error> errors() const = 0;
  virtual const device& where() const = 0;

 protected:
  virtual ticket submit_bytes(unsigned type, const void* tasks, std::size_t n, priority p) = 0;
};

/// Waits, and leaves on Ctrl-C by interrupt::interrupted. On a GPU the calling thread polls; on the
/// host backend it sleeps, because the lanes need the processor.
void await(any_runtime& r);
void await(const any_runtime& r, const ticket& t);
void await(const any_runtime& r, const std::vector<ticket>& all);

/// One span and one ticket up to 1M tasks (16k on the host backend); what is more goes in pieces,
/// so that Ctrl-C is noticed between them.
template <class Task>
std::vector<ticket> submit_in_pieces(any_runtime& r, const std::vector<Task>& all) {
  const std::span<const Task> tasks(all);
  const std::size_t piece = r.where().is_cuda() ? 1'000'000 : 16'384;
  std::vector<ticket> tickets;
  for (std::size_t at = 0; at < tasks.size(); at += piece) {
    tickets.push_back(r.submit(tasks.subspan(at, std::min(piece, tasks.size() - at))));
    progress::pulse();
  }
  return tickets;
}

/// Statistics that miss nothing: parks first.
runtime_stats settled_stats(any_runtime& r);

/// Why the runtime's work cannot be trusted: tasks failed or rejected, or memory over the limit.
/// Empty if nothing is wrong.
std::string trouble(const any_runtime& r, const runtime_stats& s, std::size_t memory_limit);

/// Options that suit the tool: never leaves on its own, and less memory on the host backend.
runtime_options usual_options(const device& d);

}  // namespace grosr::tool
