// The host's side of the resident scheduler, without the task types: memory, submission, waiting,
// residency, the monitor. runtime.hpp puts the types around it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "grosr/queue/submission_ring_owner.hpp"
#include "grosr/run/detail/frame_stack.hpp"
#include "grosr/run/detail/host_engine.hpp"
#include "grosr/run/detail/view.hpp"
#include "grosr/run/options.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/process.hpp"
#include "run/host_word.hpp"
#include "run/interop.hpp"
#include "run/memory_plan.hpp"
#include "run/time_had.hpp"
#include "run/trace.hpp"

namespace grosr::run {

class completions;
class swap_space;

/// How many tasks a packet of a submission of n should carry.
std::uint32_t tasks_a_packet(width w, std::size_t n, std::size_t staging);

/// Thread-safe, all of it, but construction and destruction.
class engine final : public host_engine {
 public:
  /// Throws error(invalid_option, out_of_memory, device_lost).
  engine(device d, const runtime_options& options, const program& p);
  ~engine() override;

  std::optional<ticket_id> submit(unsigned type, const void* data, std::size_t n, unsigned level,
                                  deadline until, bool attempt) override;
  ticket_id submit_after(const simt::moment& when, unsigned type, const void* data, std::size_t n,
                         unsigned level) override;
  void record(ticket_id t, const simt::any_stream& s) override;
  bool done(ticket_id t) const override;
  bool failed(ticket_id t) const override;
  bool wait(ticket_id t, deadline until) override;
  bool wait_all(deadline until) override;

  std::uint32_t take_promise() override;
  void give_promise_back(std::uint32_t promise) override;
  void drop_promise(std::uint32_t promise) override;
  bool promise_ready(std::uint32_t promise) const override;
  bool wait_for_promise(std::uint32_t promise, deadline until) override;
  const run::promise& promise_at(std::uint32_t promise) const override {
    return promises_[promise];
  }

  bool park(deadline until) override;
  bool resident() const override;

  void stop(deadline until) override;
  void abort() override;
  runtime_stats stats() const override;
  std::vector<task_error> errors() const override;
  const device& where() const override { return device_; }

 private:
  enum class life { running, stopping, stopped, lost };
  void use_heap(const heap& h);
  void allocate(const memory_plan& p);
  void fill_memory(const memory_plan& p);
  bool take_slot_if_free(std::uint32_t slot, std::uint32_t& generation);
  std::optional<std::uint32_t> take_slot(slot_kind k, std::uint32_t& generation);
  std::optional<std::uint32_t> claim_slot(slot_kind k, std::uint32_t& generation, deadline until,
                                          bool attempt);
  bool write_packet(unsigned level, const queue::packet& content, bool spread, deadline until,
                    bool attempt);
  std::optional<ticket_id> send_packet(unsigned type, unsigned level, const void* tasks,
                                       std::uint32_t count, const ticket_id* ticket,
                                       std::uint32_t packets, deadline until, bool attempt);
  void throw_unless_accepts(const char* what, unsigned type, std::size_t n, unsigned level) const;
  std::optional<ticket_id> submit_single(unsigned type, const void* data, unsigned level);
  queue::packet make_packet(const packet_header& h, const void* tasks);
  std::optional<ticket_id> bring_back(unsigned type, unsigned level, const void* tasks,
                                      std::uint32_t count, bool may_launch);
  void make_swap();
  void make_interop();
  bool send_deferred(interop::deferred& d);
  void call_kernel();
  void call_kernel_locked();
  void stay(bool stays);
  void release_streams();
  bool wait_for_rest(deadline until);
  void throw_if_rejected();
  void give_slot_back(std::uint32_t slot, std::uint32_t generation);
  bool held_back(unsigned level) const;
  void after_submit();
  bool goes_on_after_stop();
  void ensure_resident();
  std::uint32_t ask_to_leave();
  bool wait_until_left(std::uint32_t epoch, deadline until);
  bool outstanding() const;
  void launch_locked();
  void throw_if_ended() const;
  bool has_kernel() const;
  bool tasks_may_run() const;
  bool stream_ended();
  [[noreturn]] void throw_fault() const;
  void monitor();
  void check_progress();
  void say_fault(errc code, const std::string& text);
  void fail(errc code, const std::string& text);
  std::string in_flight() const;
  std::string running_at_abort() const;
  std::string end_by_abort(const std::string& why, const std::string& advice);
  void ask_for_abort();
  void abort_kernel();
  std::uint64_t trace_time() const;
  void trace_submit(const packet_header& h, std::uint64_t began, std::uint64_t sent);
  void write_trace();
  template <class Ready>
  bool wait_for(Ready&& condition, deadline until);

  device device_;
  runtime_options options_;  // with every default resolved
  program program_;
  unsigned blocks_ = 0;
  view view_{};
  std::size_t device_bytes_ = 0, pinned_bytes_ = 0, stack_bytes_ = 0;
  std::shared_ptr<void> faults_;      // on the host: a fault names its task
  std::shared_ptr<const void> heap_;  // the memory of the heap that tasks use

  /// A submission ring and what its submitters write: no line of it is written by those of others.
  struct alignas(128) host_ring {
    host_ring(std::shared_ptr<const queue::submission_ring_memory> memory, std::uint32_t number)
        : packets(std::move(memory), number) {}
    queue::submission_ring packets;
    slot_range slots{};  // packet slots that its submitters try first; `near` is not used
    // Both under the lock of `packets`, when they are written:
    std::uint32_t next_slot = 0;  // in `slots`
    std::atomic<std::uint32_t> written{0};
    std::atomic<std::uint64_t> submitted{0};  // tasks, by submit_single()
  };
  std::vector<std::unique_ptr<host_ring>> rings_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> generations_;  // by slot
  std::unique_ptr<std::atomic<std::uint8_t>[]> slot_types_;    // of what a slot holds
  slot_range slot_ranges_[slot_kinds] = {};
  std::atomic<std::uint32_t> next_slot_[slot_kinds] = {}, next_ring_{0};
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::int64_t> held_until_{0};  // steady clock; 0: submitters are not held back

  simt::buffer<common_memory> words_;  // one; device
  simt::buffer<slot_info> slot_infos_;
  simt::buffer<unsigned char> staging_, pool_, overflow_;
  simt::buffer<std::uint32_t> slot_words_, quiescent_, state_, running_host_, bitmaps_;
  simt::buffer<std::uint32_t> running_;
  simt::buffer<std::uint64_t> deque_words_, deque_entries_;
  simt::buffer<worker_stats> stats_;
  simt::buffer<worker_save> saves_;
  simt::buffer<unsigned char> frames_;
  queue::ring<std::uint32_t> free_frames_;
  simt::buffer<run::promise> promises_;
  std::mutex roots_lock_;
  std::vector<std::uint32_t> free_roots_, dropped_roots_;
  simt::buffer<error_record> errors_;
  simt::buffer<trace_event> trace_;
  simt::buffer<std::uint32_t> trace_counts_;
  queue::ring<std::uint32_t> free_batches_, free_overflow_;
  std::vector<queue::ring<std::uint64_t>> spill_;
  simt::buffer<room_state> room_;

  mutable std::mutex residency_lock_;
  std::unique_ptr<completions> completions_;  // if tasks await any
  std::unique_ptr<swap_space> swap_;          // before the streams, whose kernels write there
  std::shared_ptr<interop> interop_;
  bool stays_ = false;  // under the lock: the kernel does not leave because it is idle
  std::unique_ptr<simt::stream> stream_, trap_stream_;
  std::uint32_t epoch_ = 0;  // of the kernel launched last
  std::atomic<std::uint32_t> launched_{0};
  std::atomic<bool> parked_by_user_{false};
  trace_part trace_part_{};
  std::unique_ptr<submit_log> submits_;  // as device_clock_: null where no trace is written
  std::unique_ptr<device_clock> device_clock_;

  std::atomic<life> life_{life::running};
  const unsigned forks_before_ = simt::forks_so_far();
  std::mutex stop_lock_;               // held by the stop() that leaves the device
  std::atomic<bool> aborting_{false};  // before the kernel learns it
  mutable std::mutex fault_lock_;
  errc fault_code_ = errc::stopped;
  std::string fault_text_;
  mutable std::mutex failed_lock_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> failed_;          // slot and generation, the
  std::deque<std::pair<std::uint32_t, std::uint32_t>> failed_order_;  // newest 65,536
  std::atomic<bool> some_released_{false};
  std::set<std::pair<std::uint32_t, std::uint32_t>> released_;  // not done, whatever the word says

  std::mutex monitor_lock_;
  std::condition_variable monitor_wake_;
  bool monitor_stop_ = false;
  std::vector<std::uint32_t> last_heartbeats_;
  time_had since_progress_;
  std::thread monitor_thread_;
};

}  // namespace grosr::run
