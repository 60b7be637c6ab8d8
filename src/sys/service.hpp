// The server's inside: memory that device and host share, service threads, and how one call is
// made.
#pragma once

#include <limits.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "grosr/simt/doorbell.hpp"
#include "grosr/sys/detail/layout.hpp"
#include "grosr/sys/handler.hpp"
#include "grosr/sys/options.hpp"
#include "sys/at_exit.hpp"
#include "sys/descriptors.hpp"
#include "sys/disk_ring.hpp"
#include "sys/folders.hpp"
#include "sys/linux_calls.hpp"
#include "sys/mapped.hpp"
#include "sys/rate.hpp"
#include "sys/reactor.hpp"
#include "sys/statistics.hpp"
#include "sys/thread.hpp"
#include "sys/ticks.hpp"
#include "sys/workers.hpp"
#include "sys/writer.hpp"

namespace grosr::sys {

class deferred_calls;

/// The most that is looked at, and brought, of a value whose length is told.
inline std::uint32_t most_of_value(unsigned number) {
  return number == SYS_getsockopt ? option_bytes : name_bytes;
}

/// What is known of a call while it is made.
struct request {
  call_record call;
  const linux_call* linux;  ///< null: none of Linux's
  std::uint64_t serial;
  std::uint32_t thread;  ///< whose counts it goes to, and which thread took it
  std::uint32_t epoch;   ///< see drain()
  std::uint64_t taken;   ///< when its turn came, in ticks
  long printed;          ///< of a print: its result
};

/// A ring, and the lock of who takes records from it.
struct alignas(128) shard {
  shard(device d, std::uint32_t records) : ring(d, records) {}
  queue::call_ring ring;
  std::mutex lock;
};

/// One service thread's own.
struct alignas(128) service_thread {
  std::uint32_t number = 0;
  std::thread thread;
  thread_counts counts;
  /// Batches and waiting calls under way, by epoch. The thread adds; whoever ends a call subtracts.
  std::array<std::atomic<std::int64_t>, 2> under_way{};
  std::vector<request> batch;
  double light_ns = 0;  ///< what a call takes that takes no time
  std::uint32_t looks = 0;
  unsigned cached = 0;              ///< reads in a row that found all in the page cache
  bool left = false;                ///< records that must wait: see lets_in()
  std::vector<std::uint64_t> seen;  ///< by shard: records taken from it, at the last look at all
  std::array<std::array<char, PATH_MAX>, 2>
      path;                                ///< of the call that is made, as the host has them
  std::vector<mapped_ranges::use> memory;  ///< of that call
};

class service {
 public:
  service(device d, const options& o);
  ~service();

  const view* device_view() const { return view_.data(); }
  void install(call_number number, detail::installed_handler handler);
  handler_ref add(detail::installed_handler handler);
  void remove(handler_ref h) noexcept;
  const device& where() const { return device_; }
  void share(const void* at, std::size_t bytes);
  bool grant(int fd) { return descriptors_.grant(fd); }
  void coalesce(unsigned batch, std::chrono::nanoseconds window);
  bool drain(std::chrono::nanoseconds limit);
  void stop();
  void leave();  ///< drain, for a while, and stop
  sys::statistics statistics() const;

 private:
  friend class deferred_calls;
  struct waiting_call;
  struct polled;

  // memory.cpp
  void make_memory();
  static options completed(device d, options o);

  // threads.cpp
  void run(service_thread& t);
  unsigned serve(service_thread& t);
  unsigned help(service_thread& t, bool all);
  unsigned take_batch(service_thread& t, shard& s, std::uint32_t number);
  bool lets_in(call_number number);
  void serve_on_doorbell();
  void end_threads();
  bool something_waits() const;
  void rest(service_thread& t);
  void wake_one();
  void expect_awaited(const service_thread& t);
  void make_all(service_thread& t);
  void reply(std::uint32_t slot, std::uint64_t serial, long result);
  void reply(const request& q, long result);
  void finish(service_thread& t, const request& q, long result, std::uint64_t ns);

  // calls.cpp
  /// What says that a call is replied to later. No result of Linux's.
  static constexpr long parked = -4095;
  /// Makes a call: its result, unless it is replied to `later`.
  long make(service_thread& t, const request& q, bool& later);
  long call_linux(service_thread& t, const request& q);
  long make_allowed(service_thread& t, const request& q, const linux_call& info);
  long copy_text(std::uint64_t at, std::array<char, PATH_MAX>& path);
  long call_path(service_thread& t, const call_record& c, const linux_call& info);
  long call_open(const call_record& c);
  long call_plain(const linux_call& info, const call_record& c, bool again = true);
  long call_as_it_is(const linux_call& info, const call_record& c, bool again = true);
  long call_texts(const linux_call& info, const call_record& c, bool again);
  long call_named(const linux_call& info, const call_record& c);
  long call_splice(const call_record& c);
  long call_pair(const call_record& c);
  long call_sized(const linux_call& info, const call_record& c, unsigned value);
  long opened(std::optional<descriptors::room>& room, long fd, bool waits = false,
              std::optional<int> open_flags = {});
  long open_below(int directory, const char* path, int flags, std::uint64_t mode);

  // handlers.cpp
  std::shared_ptr<const detail::installed_handler> handler_of(call_number number);
  long call_handler(service_thread& t, const request& q, bool& later);
  long call_deferred(service_thread& t, const request& q, const detail::installed_handler& h);
  bool has_spans(const detail::installed_handler& h, const call_record& c) const;
  long run_handler(const detail::installed_handler& h, const call_record& c, bool& threw);

  // for_all_threads.cpp
  static bool is_for_one_thread(const call_record& c);
  static bool changes_identity(unsigned number);
  long change_identity(const call_record& c);

  // map_calls.cpp
  long call_mmap(const call_record& c);
  std::shared_ptr<memory_file> file_to_change(const call_record& c, int& fd);
  long call_on_memory(const linux_call& info, const call_record& c, memory_file& file, int fd);

  // allowed.cpp
  bool allows(const linux_call& info, const call_record& c) const;
  long check(const linux_call& info, const call_record& c, service_thread& t);
  bool in_arena(std::uint64_t at, std::uint64_t bytes) const;
  bool may_keep(std::uint64_t at, std::uint64_t bytes);
  std::uint64_t bytes_from(std::uint64_t at);
  bool may_use(service_thread& t, std::uint64_t at, std::uint64_t bytes);
  std::optional<mapped_ranges::use> hold(std::uint64_t at, std::uint64_t bytes);
  bool copy_in(void* to, std::uint64_t at, std::size_t bytes);
  long copy_name(sockaddr_storage& to, std::uint64_t at, std::uint64_t bytes);
  bool copy_out(std::uint64_t at, const void* from, std::size_t bytes);

  // print.cpp
  bool copy_printed(void* to, std::uint64_t at, std::size_t bytes);
  long print(const call_record& c);

  // audit.cpp
  void note(service_thread* t, const call_record& c, long result);

  // waiting.cpp
  long call_waiting(service_thread& t, const request& q, const linux_call& info);
  waiting_call& begin_waiting(service_thread& t, const request& q, const linux_call& info,
                              descriptors::use file);
  long waits_or(waiting_call& w, long refused);
  long attempt(request& q, const linux_call& info, std::uint64_t& progress, bool& connecting);
  long give_name(const request& q, unsigned name, const void* from, std::uint32_t bytes);
  std::atomic<std::int64_t>& under_way(const request& q);
  long close(int fd);
  long wait_for_peer(waiting_call& w);
  void end_waiting(waiting_call& w, long result, std::uint64_t ns = thread_counts::not_timed);

  // blocking.cpp
  long call_other(service_thread& t, const request& q, const linux_call& info);
  long try_lock(const call_record& c);
  long wait_for_lock(waiting_call& w);
  long wait_on_thread(waiting_call& w);
  long make_interruptibly(waiting_call& w);

  // disk.cpp
  bool waits_for_disk(const call_record& c);
  long call_disk(service_thread& t, const request& q, const linux_call& info);
  long wait_for_disk(service_thread& t, waiting_call& w);
  long make_on_thread(waiting_call& w);
  void end_disk(waiting_call& w, long result);

  // polls.cpp
  long call_poll(service_thread& t, const request& q, const linux_call& info);
  long look(polled& p);
  long tell(const polled& p, long ready);
  long wait_for_any(waiting_call& w, std::optional<reactor::clock::time_point> until);
  long sleep_until(service_thread& t, const request& q, const linux_call& info,
                   std::optional<reactor::clock::time_point> until);
  long call_select(service_thread& t, const request& q, const linux_call& info);
  long call_sleep(service_thread& t, const request& q, const linux_call& info);

  const tick_length since_start_;
  double ns_per_tick_ = 1;
  const device device_;
  const options options_;
  std::atomic<unsigned> batch_;
  std::atomic<std::int64_t> window_ns_{0};

  std::vector<std::unique_ptr<shard>> shards_;
  simt::buffer<queue::call_ring_ref> refs_;
  simt::buffer<std::uint32_t> words_;  // slots, detached, chunks
  simt::buffer<detached_call> detached_;
  simt::buffer<awaited_chunk> awaited_;
  simt::buffer<simt::bus_word> replies_;
  simt::buffer<unsigned char> arena_;
  simt::buffer<shared_ranges> shared_;
  simt::buffer<sys::view> view_;
  std::uint32_t slots_ = 0;
  const bool copies_;  ///< kernels' memory is not the host's: bytes travel through the arena

  std::shared_mutex shared_lock_;  // of shared_host_, handlers_ and added_
  shared_ranges shared_host_{};
  std::vector<std::shared_ptr<const detail::installed_handler>> handlers_;
  std::vector<std::shared_ptr<const detail::installed_handler>> added_;
  std::size_t next_added_ = 0;  ///< where a free number is looked for

  descriptors descriptors_;
  quota memory_bytes_, memory_mappings_;
  memory_files memory_files_;
  mapped_ranges mapped_{memory_bytes_, memory_mappings_};
  std::unique_ptr<folders> folders_;
  std::unique_ptr<unsigned char[], void (*)(unsigned char*)> waiting_;  ///< a waiting_call a slot
  std::mutex waiting_lock_;
  thread_counts waiting_counts_;  ///< of calls that waited; under waiting_lock_

  std::mutex drain_lock_;
  std::mutex ready_lock_;  // of calls that could wait if another one was made in between
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<bool> stopping_{false}, ending_{false};

  rate_limit rate_;
  writer printed_, audit_;

  std::mutex rest_lock_;
  std::condition_variable rest_;
  std::atomic<unsigned> awake_{0};
  /// How many rest, and which: in a line that is read often and written seldom.
  alignas(128) std::atomic<unsigned> resting_{0};
  std::array<std::atomic<bool>, 256> rests_{};
  alignas(128) char after_resting_{};
  std::vector<unsigned> near_;  ///< processors that threads run on; none: any
  std::vector<std::unique_ptr<service_thread>> threads_;
  std::unique_ptr<service_thread> doorbell_worker_;  ///< has no thread: serve_on_doorbell()
  struct lets_go {
    void operator()(deferred_calls* all) const noexcept;
  };
  const std::unique_ptr<deferred_calls, lets_go> deferred_;  ///< shared with replies
  reactor reactor_;
  workers workers_;
  workers handler_workers_;  ///< of their own: what handlers do may end what others wait for
  disk_ring ring_;
  simt::doorbell doorbell_;
  std::optional<at_exit> at_exit_;  ///< of the program
};

}  // namespace grosr::sys
