// runtime<Tasks...>: hand it tasks, and it runs them on a kernel that stays on the device.
//
//   struct square {
//     float* x;
//     std::uint32_t i;
//     GROSR_DEVICE void operator()(auto& context) const { x[i] *= x[i]; }
//   };
//   grosr::runtime<square> runtime;
//   auto ticket = runtime.submit(square{x, 3});
//   ticket.wait();
//
// It orders tasks with streams (submit_after, ticket::record), not with each other, and moves no
// data; tasks write where their members point, or bring a result: join.hpp.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "grosr/run/detail/host_engine.hpp"
#include "grosr/run/detail/worker.hpp"
#include "grosr/run/options.hpp"
#include "grosr/run/ticket.hpp"
#include "grosr/simt/owner.hpp"

namespace grosr {

/// A resident scheduler for tasks of the types named, by a policy (run/detail/policy.hpp): runtime
/// is the one for users. Every member may be called from any number of host threads, except
/// construction and destruction. Not movable: tickets point to it.
template <class Policy, class... Tasks>
class basic_runtime {
 public:
  using types = run::type_list<Tasks...>;
  using policy = Policy;

  /// Takes memory and starts the monitor; the kernel is launched by the first submit. Throws
  /// error(invalid_option, out_of_memory, not_built, device_lost).
  explicit basic_runtime(device d = device::best(), const runtime_options& options = {})
      : basic_runtime(d, options, {}) {}

  /// For a graph: the same, whose task types have a collector (run/task.hpp) for `c`.
  basic_runtime(device d, const runtime_options& options, run::collection c)
      : engine_(run::make_engine(d, options,
                                 {types_, fit, launch, c,
                                  (run::brings_result<Tasks> || ...) ||
                                      run::may_spawn<Policy, run::record_of<Tasks>...>(),
                                  run::has_block_memory<Tasks...>})) {
    static_assert(types::checked);
  }

  /// Finishes what was accepted, as stop() without a deadline, but does not throw: call stop() to
  /// learn of errors. In a forked child it does nothing.
  ~basic_runtime() = default;

  /// Hands over one task. Waits while queues are full, or a wait_all() holds it back. Throws
  /// error(stopped) after stop(), and error(device_lost, watchdog) when the runtime has ended so;
  /// so do the others.
  template <class Task>
  ticket submit(const Task& task, priority p = priority::normal) {
    return submit(std::span<const Task>(&task, 1), p);
  }

  /// Hands over many tasks of one type; one ticket for all of them. The array may be reused at
  /// once.
  template <class Task>
  ticket submit(std::span<const Task> tasks, priority p = priority::normal) {
    if (tasks.empty()) return {};
    return {engine_.get(), *submit_records(tasks, submits(p, false))};
  }
  template <class Task>
  ticket submit(const std::vector<Task>& tasks, priority p = priority::normal) {
    return submit(std::span<const Task>(tasks), p);
  }
  template <class Task, std::size_t N>
  ticket submit(std::span<Task, N> tasks, priority p = priority::normal) {
    return submit(std::span<const Task>(tasks), p);
  }
  template <class Task, std::size_t N>
  ticket submit(const Task (&tasks)[N], priority p = priority::normal) {
    return submit(std::span<const Task>(tasks), p);
  }

  /// Hands over the tasks if there is room for at least the first of them now and no wait_all()
  /// holds submitters back; else nullopt, and nothing was taken. Throws as submit().
  template <class Task>
  std::optional<ticket> try_submit(std::span<const Task> tasks, priority p = priority::normal) {
    if (tasks.empty()) return ticket{};
    auto id = submit_records(tasks, submits(p, true));
    if (!id) return std::nullopt;
    return ticket(engine_.get(), *id);
  }
  template <class Task>
  std::optional<ticket> try_submit(const Task& task, priority p = priority::normal) {
    return try_submit(std::span<const Task>(&task, 1), p);
  }

  /// Hands over tasks that run when a stream (a simt::stream, or a cudaStream_t of the runtime's
  /// device) has done what it holds now, or when a cudaEvent_t, as it is recorded now, has
  /// happened. The tasks are copied, and see what was written before. Never waits for room: throws
  /// error(out_of_memory) when 256 such submissions wait, or all runtime_options::slots tickets are
  /// in use. Throws error(misuse, invalid_option) for a stream or event that tasks cannot wait for,
  /// error(not_built) if the driver cannot do it, and as submit(). See docs/guide/living-beside.md.
  template <class Task>
  ticket submit_after(const simt::moment& when, std::span<const Task> tasks,
                      priority p = priority::normal) {
    if (tasks.empty()) return {};
    return {engine_.get(), *submit_records(tasks,
                                           [&](unsigned type, const void* data,
                                               std::size_t n) -> std::optional<run::ticket_id> {
                                             return engine_->submit_after(when, type, data, n,
                                                                          static_cast<unsigned>(p));
                                           })};
  }
  template <class Task>
  ticket submit_after(const simt::moment& when, const Task& task, priority p = priority::normal) {
    return submit_after(when, std::span<const Task>(&task, 1), p);
  }
  template <class Task>
  ticket submit_after(const simt::moment& when, const std::vector<Task>& tasks,
                      priority p = priority::normal) {
    return submit_after(when, std::span<const Task>(tasks), p);
  }

  /// Hands over a task that brings a result: a future for that, which comes when all that it joins
  /// has ended. Waits while there are as many futures as `futures` says. Throws as submit().
  template <class Task>
  auto fork(const Task& task, priority p = priority::normal) {
    static_assert(run::brings_result<Task>,
                  "grosr: a task that is forked brings a result: it says `using result = R;`");
    if constexpr (run::brings_result<Task>) return fork_task(task, p);
  }

  /// Waits for a moment at which nothing submitted before this call, and nothing spawned by it, is
  /// left to run. Other threads may go on submitting; after 16 ms they are held back now and then,
  /// 4 to 512 ms at a time, so that the device comes to rest; urgent tasks are not. Throws
  /// error(device_lost, watchdog or stopped) if that cannot happen; and, after it did,
  /// error(out_of_memory) once if a spawn found no place since that was last said.
  void wait_all() { engine_->wait_all({}); }
  /// The same with a time limit: false when it passed first.
  bool wait_all_for(std::chrono::nanoseconds limit) { return engine_->wait_all(run::in(limit)); }

  /// Gives the device back until the next submit or wait, or until tasks of submit_after() are due;
  /// returns when the kernel has ended. Call it before cudaFree and other calls that wait for the
  /// whole device. A task that runs is waited for. Throws error(device_lost or watchdog), and
  /// error(misuse) while a stream waits for a ticket (ticket::record).
  void park() { static_cast<void>(engine_->park({})); }
  /// The same with a time limit: false when it passed first. The kernel then leaves later, when the
  /// tasks that it waits for have ended.
  bool park_for(std::chrono::nanoseconds limit) { return engine_->park(run::in(limit)); }

  /// Whether the kernel is on the device and not about to leave it.
  bool resident() const { return engine_->resident(); }

  /// Waits for everything accepted, then ends; later submits throw. Past the deadline it aborts and
  /// throws error(timed_out) that says how much was not run. Without one it waits as long as it
  /// takes. Throws as wait_all(); the runtime has ended then all the same.
  void stop() { engine_->stop({}); }
  void stop(std::chrono::nanoseconds limit) { engine_->stop(run::in(limit)); }
  /// Ends now, as stop() does past its deadline: tasks that have not begun are dropped, and those
  /// that run learn it from context.aborted(). Waits no longer than seconds for these.
  void abort() { engine_->abort(); }

  /// Counters so far, see options.hpp. Costs a copy from the device, some 10 us. Of a runtime that
  /// was lost only what the host counts.
  runtime_stats stats() const { return engine_->stats(); }

  /// The first tasks that returned errors, at most 64, in no order; stats().failed counts all.
  std::vector<task_error> errors() const { return engine_->errors(); }

  /// The device that it runs on.
  const device& where() const { return engine_->where(); }

 private:
  using kernel = run::resident<Policy, run::record_of<Tasks>...>;
  static constexpr unsigned min_blocks =
      Policy::least_blocks((run::brings_result<Tasks> || ...) || run::has_block_memory<Tasks...>);

  static constexpr run::task_type types_[] = {
      {run::task_name<Tasks>::text(), sizeof(run::record_of<Tasks>),
       run::stride_of<run::record_of<Tasks>>, run::width_of<Tasks>(),
       run::brings_result<Tasks> ? run::frame_header_bytes + run::stride_of<Tasks> : 0,
       run::completes<Tasks>}...};

  static simt::kernel_fit fit(const device& d) {
    return simt::fit<run::block_threads, min_blocks, kernel>(d, run::block_threads);
  }
  static void launch(simt::stream& s, simt::shape grid, const run::view& v) {
    simt::launch<run::block_threads, min_blocks>(s, grid, kernel{v});
  }

  template <class Task>
  future<typename Task::result> fork_task(const Task& task, priority p) {
    const std::uint32_t promise = engine_->take_promise();
    const run::forked<Task> record{task, engine_->destination_of_promise(promise)};
    try {
      engine_->submit(types::template index_of<Task>(), &record, 1, static_cast<unsigned>(p), {},
                      false);
    } catch (...) {
      engine_->give_promise_back(promise);
      throw;
    }
    return future<typename Task::result>(engine_.get(), promise);
  }

  /// Hands over records of one type at once.
  auto submits(priority p, bool attempt) {
    return [this, level = static_cast<unsigned>(p), attempt](unsigned type, const void* data,
                                                             std::size_t n) {
      return engine_->submit(type, data, n, level, {}, attempt);
    };
  }

  template <class Task, class Submit>
  std::optional<run::ticket_id> submit_records(std::span<const Task> tasks, const Submit& submit) {
    constexpr unsigned type = types::template index_of<Task>();
    if constexpr (run::brings_result<Task>) {
      std::vector<run::forked<Task>> records;
      records.reserve(tasks.size());
      for (const Task& t : tasks) records.push_back({t, 0});
      return submit(type, records.data(), records.size());
    } else {
      return submit(type, tasks.data(), tasks.size());
    }
  }

  simt::owner<run::host_engine, simt::not_in_a_fork> engine_;
};

/// A resident scheduler by the policy that was tuned. Its members are basic_runtime's.
template <class... Tasks>
class runtime : public basic_runtime<run::default_policy, Tasks...> {
 public:
  using basic_runtime<run::default_policy, Tasks...>::basic_runtime;
};

}  // namespace grosr
