// What the warp machine knows: lanes, warps, blocks, the worker thread that runs them, the launch.
//
//   launch ── worker (one OS thread) ── block ── warp ── lane (one fiber)
//
// Everything below a worker is touched by that worker's thread only, so it is plain memory. At any
// moment a lane is either the worker's active lane or in exactly one of its warp's sets:
//
//   runnable ──> active ──> polling     in poll_pause: looked at again once a round
//      ^                ──> converging  in active_mask: until no lane of its warp is runnable
//      │                ──> collecting  in a masked collective: until its group is complete
//      │                ──> at_barrier  in sync_block: until all live lanes of the block are
//      └────────────────────────┘       ended: for ever
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "grosr/simt/detail/host_machine.hpp"
#include "simt/host_fiber.hpp"
#include "simt/host_inquiry.hpp"
#include "simt/host_sanitizers.hpp"

namespace grosr::simt::host {

struct warp;
struct block;
struct worker;
class seeded_schedule;

/// What a lane is inside of. The first five are masked collectives.
enum class call : std::uint8_t {
  sync_warp,
  sync_task,
  ballot,
  shuffle,
  match_any,
  active_mask,
  sync_block,
  poll
};

/// Thrown by a lane's own calls through a lane that can never go on, to unwind it.
struct cancelled {};

/// What ThreadSanitizer must be told at fences.
struct fence_state {
  bool released = false;  // passed a release fence
  unsigned reads = 0;
  void* read[32] = {};  // objects of the newest relaxed reads
};

struct lane {
  context fiber;
  position where;
  warp* home = nullptr;
  std::uint64_t value = 0;     // what it passed to its collective
  std::uint64_t result = 0;    // what it gets back
  std::uint64_t priority = 0;  // seeded schedules only
  site at{};                   // where it waits
  const char* why = nullptr;   // what it polls for
  const char* doing = nullptr;
  std::uint32_t mask = 0;
  unsigned source = 0;  // shuffle
  call in = call::poll;
  fence_state fences;

  std::uint32_t bit() const { return 1u << where.lane; }
};

/// Lanes that meet in one masked collective. Open until all have arrived; taken until all have
/// left.
struct group {
  std::uint32_t mask = 0, arrived = 0, leaving = 0;
  call kind{};
  site at{};
  sanitizer::edge sync;
};

struct warp {
  block* home = nullptr;
  std::uint32_t unstarted = full_mask, runnable = full_mask;
  std::uint32_t polling = 0, converging = 0, collecting = 0, at_barrier = 0, ended = 0;
  std::uint32_t polled = 0;           // paused since the first converging lane began to wait
  std::uint32_t rested = 0;           // seeded schedules: paused in this round
  std::uint32_t open = 0, taken = 0;  // sets of groups
  group groups[warp_size];
  lane lanes[warp_size];

  bool over() const { return ended == full_mask; }
  bool has_candidates() const { return (runnable | polling) != 0; }
};

struct block {
  static constexpr std::size_t arena_size = 48 * 1024;
  static constexpr unsigned max_shared = 64;
  struct shared_object {
    const void* key;
    std::size_t offset;
  };

  explicit block(unsigned warp_count);
  ~block();
  block(const block&) = delete;
  void reset(worker& owner, unsigned number);  ///< ready for the first lane of block `number`
  void* shared(const void* key, std::size_t size, std::size_t alignment);
  void release_barrier();

  unsigned number = 0, live = 0;
  unsigned arrived = 0, generation = 0;  // sync_block
  sanitizer::edge barrier[2];
  std::unique_ptr<warp[]> warps;
  unsigned warp_count;

 private:
  char* arena_;
  std::size_t used_ = 0;
  shared_object objects_[max_shared];
  unsigned object_count_ = 0;
};

/// One run(): what its workers share.
struct launch {
  launch_shape shape;
  const std::function<void()>& kernel;
  std::optional<std::uint64_t> seed, poll_limit;
  inquiry* questions = nullptr;
  std::vector<worker*> workers{};

  std::atomic<bool> failed{false};
  std::mutex mutex{};          // guards what follows, until all workers are gone
  std::exception_ptr first{};  // the first exception that left a lane
  std::string stuck{};         // headline of a deadlock
  std::vector<std::pair<unsigned, std::string>> lines{};  // its lines, with their block numbers

  // Poll limit: `epoch` counts rounds with progress; a worker is idle as of the epoch at which its
  // last `poll_limit` fruitless rounds began, and everything is stuck when all are idle as of now.
  std::atomic<std::uint64_t> epoch{1};
  std::unique_ptr<std::atomic<std::uint64_t>[]> idle_since {};

  void fail(std::exception_ptr e);
  void fail_stuck(std::string headline);
  [[noreturn]] void throw_failure();
};

/// One OS thread and the blocks whose lanes it runs.
struct worker {
  worker(launch& l, unsigned index);
  ~worker();
  worker(const worker&) = delete;

  void loop();  ///< runs all lanes of its blocks to their ends, or unwinds them after a failure

  // For lanes, called on the active one.
  void rest();            ///< the lane is in a waiting set: run others until it is active again
  void schedule_point();  ///< let others run, if the seed says so
  void give_up_call();    ///< throws cancelled, unless the lane is unwinding already

  // host_schedule.cpp
  lane* pick();  ///< the next lane to run, made active; null: the thread's own loop is wanted
  lane* pick_fair();
  lane* pick_seeded();
  void begin_visit();
  bool can_go_on() const;  ///< some lane is runnable
  bool settle(warp& w);    ///< lets converging lanes go on, if nothing else in the warp can
  void form_group(warp& w, std::uint32_t members);
  bool check_stuck(warp& w);
  lane* activate(warp& w, std::uint32_t warp::*set, unsigned number);

  // host_machine.cpp
  void switch_away();
  bool admit_blocks();  ///< makes blocks resident; false when none were left
  void retire_blocks();
  void between_rounds();
  void check_poll_limit(bool progressed);
  void back_off();
  context* finish(lane& l);
  static context* lane_main(void* argument);
  void unwind();

  bool asked() const;  ///< what its lanes wait for
  void answer();       ///< host_report.cpp
  void describe();     ///< host_report.cpp: a line for each set of lanes that wait alike

  launch& home;
  const unsigned index;
  context thread;
  lane* active = nullptr;
  stack_list stacks;
  stack_list
      used_stacks;  // of ended lanes, under ThreadSanitizer: another lane there would seem a race
  sanitizer::edge begin, end;
  bool cancelling = false;

  std::vector<std::unique_ptr<block>> blocks, spare;
  std::vector<warp*> warps;  // of resident blocks
  unsigned next_block;       // to be made resident
  std::uint64_t live = 0;    // lanes of resident blocks that have not ended
  bool some_block_over = false;

  // A visit runs one warp until its lanes rest or its quota is used up, then looks at its polling
  // lanes once. A round visits all warps; while others were let go on by barriers, it passes over
  // all of them again, without looks at polling lanes. A round made progress when a lane ended,
  // began a new wait, or did not come to rest; collectives alone are no progress, because loops
  // that poll with one lane and tell the others are full of them.
  std::size_t cursor = 0;
  unsigned quota = 0, passes = 0;
  std::uint32_t to_poll = 0;
  bool progress = false;
  std::uint64_t fruitless_rounds = 0, idle_from_ns = 0, nap_ns = 0;
  std::uint64_t seen_epoch = 0, rounds_in_epoch = 0;
  unsigned answered = 0;  ///< of the questions

  std::unique_ptr<seeded_schedule> seeded;
};

extern thread_local constinit worker* self;  // null outside launches

std::string lane_set(std::uint32_t mask);  ///< "lane 4", "lanes 0-3,7"
std::string place(site at);                ///< "file.cpp:12"
const char* name_of(call c);

}  // namespace grosr::simt::host
