// Memory, life cycle and statistics of an engine. Submission is in submit.cpp, residency and the
// monitor in residency.cpp.
#include "run/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "grosr/alloc/heap.hpp"
#include "grosr/alloc/lifetime.hpp"
#include "grosr/run/detail/local.hpp"
#include "grosr/simt/asymmetric_fence.hpp"
#include "grosr/simt/faults.hpp"
#include "grosr/simt/wait.hpp"
#include "run/completions.hpp"
#include "run/swap.hpp"
#include "run/trace.hpp"

namespace grosr {

std::string task_error::text() const {
  return type + " " + did + ": " + std::to_string(code) + " (" +
         std::generic_category().message(-code) + ")";
}

}  // namespace grosr

namespace grosr::run {
namespace {

/// How long a stop() with a deadline waits, when all it knows of is done, for the kernel to leave.
constexpr std::chrono::seconds patience_for_leaving{10};

const char* words_of(failure f) {
  switch (f) {
    case failure::returned:
      return "returned an error";
    case failure::no_place:
      return "was not run, as there was no place for it in the runtime's memory";
    case failure::no_frame:
      return "joined when there was no place for its continuation in the runtime's memory";
    case failure::gave_nothing:
      return "ended without a result (give, pass or join)";
    case failure::gave_twice:
      return "gave or passed its result twice";
    case failure::joined_twice:
      return "joined twice";
    case failure::gave_and_joined:
      return "both gave (or passed) its result and joined";
    case failure::forked_alone:
      return "forked before it joined";
    case failure::forked_astray:
      return "forked into a slot that is no member of what join() returned";
  }
  return "failed";
}

}  // namespace

engine::engine(device d, const runtime_options& options, const program& p)
    : device_(d), options_(options), program_(p) {
  if (options_.trace.empty())
    if (const char* file = std::getenv("GROSR_TRACE")) options_.trace = file;
  const simt::kernel_fit fit = program_.fit(device_);
  const memory_plan plan = plan_memory(options_, program_.types,
                                       {device_.is_cuda(), device_.properties().sms,
                                        fit.blocks_per_sm, fit.local_bytes, program_.calls_apart},
                                       program_.starts_tasks);
  options_ = plan.options;
  stack_bytes_ = simt::reserve_stack(device_, plan.stack_bytes);
  if (device_.is_cuda()) simt::load_trap(device_);
  if (!options_.trace.empty()) {
    trace_part_ = trace_part_for(options_.trace, device_);
    submits_ = std::make_unique<submit_log>();
    device_clock_ = std::make_unique<device_clock>(device_);
  }
  if (options_.heap != nullptr) use_heap(*options_.heap);
  if (!device_.is_cuda()) faults_ = simt::tell_faults();
  allocate(plan);
  fill_memory(plan);
  stream_ = std::make_unique<simt::stream>(device_);
  if (device_.is_cuda()) trap_stream_ = std::make_unique<simt::stream>(device_);
  make_swap();
  make_interop();
  since_progress_.begin(std::chrono::steady_clock::now());
  monitor_thread_ = std::thread([this] { monitor(); });
}

host_engine* make_engine(device d, const runtime_options& options, const program& p) {
  try {
    return new engine(d, options, p);
  } catch (...) {
    rethrow_as_error("a runtime on " + d.name() + " was asked for");
  }
}

engine::~engine() {
  const bool traces = !trace_part_.file.empty();
  try {
    if (life_ == life::running) stop({});
  } catch (const error& e) {
    // stop() is where errors are reported; but nothing else would say that a trace was not written.
    if (traces && life_ != life::lost) std::fprintf(stderr, "grosr: %s\n", e.what());
  } catch (...) {
  }
  {
    std::lock_guard lock(monitor_lock_);
    monitor_stop_ = true;
  }
  monitor_wake_.notify_all();
  monitor_thread_.join();
  interop_->close();
  if (completions_) completions_->close(life_ == life::stopped);
  swap_->stop();
}

void engine::use_heap(const heap& h) {
  if (h.where() != device_)
    throw error(errc::invalid_option, "runtime: its heap is on " + h.where().name() +
                                          ", the runtime on " + device_.name() +
                                          "; both must be on one device");
  std::vector<std::string> owners;
  for (auto& t : program_.types) owners.push_back(t.name);
  const alloc::heap_view view = h.view(owners);
  if (view.found == nullptr)
    view_.heap = heap_ref(view);
  else
    view_.checked_heap = checked_heap_ref(view);
  heap_ = alloc::lifetime_of(h);
  options_.heap = nullptr;
}

// What takes tasks into the host's memory when there is no room anywhere else.
void engine::make_swap() {
  std::vector<std::uint32_t> bytes;
  for (auto& t : program_.types) bytes.push_back(t.bytes);
  swap_ = std::make_unique<swap_space>(
      device_, swap_records, bytes, options_.swap_limit,
      state_[control_at + control_word::swap_full],
      swap_space::owner{
          .bring_back = [this](auto... line) { return bring_back(line..., true); },
          .done = [this](ticket_id t) { return done(t); },
          .has_kernel = [this] { return has_kernel(); },
          .leaves = [this] { return parked_by_user_.load(); },
          .complete = [this] { return completions_ && completions_->hand_over(); },
          .completions = [this] { return completions_ && completions_->waiting(); },
      });
  const auto type = std::find_if(program_.types.begin(), program_.types.end(),
                                 [](const task_type& t) { return t.completes; });
  if (type != program_.types.end()) {
    const auto number = static_cast<unsigned>(type - program_.types.begin());
    completions_ = std::make_unique<completions>(completions::owner{
        .bring =
            [this, number](unsigned level, const queue::completion* c, std::uint32_t count) {
              return bring_back(number, level, c, count, false).has_value();
            },
        .try_later = [this] { swap_->wake(); }});
    view_.port = completions_->number();
  }
  room_state room{};
  room.swap = swap_->records();
  room_ = {device_, simt::space::device, 1};
  room_.copy_from(std::vector{room});
  view_.common.room = room_.data();
  swap_->start();
}

// Takes the memory of the plan, all of it cleared.
void engine::allocate(const memory_plan& p) {
  using simt::space;
  const auto take = [&](space where, auto& buffer, auto*& in_view, std::size_t count) {
    buffer = {device_, where, count};
    in_view = buffer.data();
  };
  const std::uint32_t workers = p.sizes.workers;
  blocks_ = p.sizes.blocks;
  view_.sizes = p.sizes;
  view_.idle_us = p.idle_us;
  view_.memory_wait_us = p.memory_wait_us;
  view_.trace_capacity = p.trace_capacity;
  view_.collected = program_.collected.items;
  view_.collected_count = program_.collected.count;
  device_bytes_ = p.device_bytes;
  pinned_bytes_ = p.pinned_bytes;
  std::copy(std::begin(p.slot_ranges), std::end(p.slot_ranges), slot_ranges_);

  words_ = {device_, space::device, 1};
  common_memory* words = words_.data();
  view_.common = {&words->activity,      &words->signals,      &words->quiet_since,
                  words->reserve_owners, &words->exited,       &words->yield_granted,
                  &words->cancelled,     words->bundle_limits, nullptr};

  const auto ring_memory =
      std::make_shared<queue::submission_ring_memory>(device_, options_.ring_capacity, p.rings);
  view_.submission.rings = ring_memory->refs();
  const slot_range& packet_slots = p.slot_ranges[static_cast<int>(slot_kind::packet)];
  for (std::uint32_t i = 0; i < p.rings; ++i) {
    rings_.push_back(std::make_unique<host_ring>(ring_memory, i));
    const std::uint32_t each = packet_slots.count / p.rings;
    rings_.back()->slots = {packet_slots.first + i * each, each, each};
  }
  generations_ = std::make_unique<std::atomic<std::uint32_t>[]>(p.slots);
  slot_types_ = std::make_unique<std::atomic<std::uint8_t>[]>(p.slots);
  take(space::device, slot_infos_, view_.submission.slots, p.slots);
  staging_ = {device_, space::pinned,
              std::size_t{options_.staging_buffers} * p.sizes.staging_bytes};
  view_.submission.staging = staging_.data();
  take(space::pinned, slot_words_, view_.submission.slot_words, p.slots);
  take(space::pinned, quiescent_, view_.submission.quiescent, p.rings);
  take(space::pinned, state_, view_.submission.state, state_words);
  view_.submission.control = state_.data() + control_at;

  take(space::device, pool_, view_.tasks.pool,
       std::size_t{p.sizes.pool_batches} * p.sizes.batch_bytes);
  take(space::pinned, overflow_, view_.tasks.overflow, p.overflow_bytes);
  take(space::device, deque_words_, view_.tasks.deque_words, p.deques);
  take(space::device, deque_entries_, view_.tasks.deque_entries, p.deques * p.sizes.deque_capacity);
  take(space::device, bitmaps_, view_.tasks.bitmaps, p.bitmap_words);
  free_batches_ = {device_, p.free_batch_cells};
  view_.tasks.free_batches = free_batches_.ref();
  free_overflow_ = {device_, p.free_overflow_cells};
  view_.tasks.free_overflow = free_overflow_.ref();
  for (unsigned l = 0; l < priority_levels; ++l)
    for (auto* target : {&view_.tasks.spill[l], &view_.tasks.block_spill[l]})
      *target = spill_.emplace_back(device_, p.spill_cells).ref();

  if (p.joins) {
    take(space::device, frames_, view_.frames.memory, p.frames * p.sizes.frame_stride);
    free_frames_ = {device_, p.free_frame_cells};
    view_.frames.free = free_frames_.ref();
    take(space::pinned, promises_, view_.frames.promises, options_.futures);
  }

  take(space::device, stats_, view_.reports.stats, workers);
  take(space::device, saves_, view_.reports.saves, workers);
  take(space::device, running_, view_.reports.running, workers);
  take(space::pinned, running_host_, view_.reports.running_host, workers);
  take(space::pinned, errors_, view_.reports.errors, errors_kept);
  view_.reports.error_count = &words->error_count;
  if (p.trace_capacity != 0) {
    take(space::device, trace_, view_.trace.events, std::size_t{workers} * p.trace_capacity);
    take(space::device, trace_counts_, view_.trace.counts, workers);
  }
}

// Writes what the first kernel finds: who has which free batch and frame.
void engine::fill_memory(const memory_plan& p) {
  // Every worker begins with a full magazine; the rest is in the ring.
  const std::uint32_t magazine = p.sizes.magazine_target, batches = p.sizes.pool_batches;
  std::vector<worker_save> saves(p.sizes.workers);
  for (std::uint32_t w = 0; w < p.sizes.workers; ++w) {
    saves[w].magazine_count = magazine;
    for (std::uint32_t k = 0; k < magazine; ++k) saves[w].magazine[k] = w * magazine + k;
  }
  saves_.copy_from(saves);
  free_batches_.fill(batches - p.stocked, [&](std::uint32_t i) { return p.stocked + i; });
  free_overflow_.fill(p.overflow_batches, [&](std::uint32_t i) { return batches + i; });
  if (!p.joins) return;
  free_frames_.fill(p.frame_groups() - p.sink_groups, [&](std::uint32_t i) {
    return (p.sink_groups + i) * frame_group | fresh_group;
  });
  for (std::uint32_t i = options_.futures; i-- > 0;) free_roots_.push_back(i);
}

runtime_stats engine::stats() const {
  runtime_stats s;
  s.submitted = submitted_.load();
  for (const auto& r : rings_) s.submitted += r->submitted.load(std::memory_order_relaxed);
  s.residencies = launched_.load();
  s.memory = device_bytes_;
  s.host_memory = pinned_bytes_;
  s.stack_memory = stack_bytes_;
  s.workers = view_.sizes.workers;
  if (life_ == life::lost) return s;
  std::vector<worker_stats> all(view_.sizes.workers);
  stats_.copy_to(all);
  for (auto& w : all) {
    s.tasks += w.tasks;
    s.spawned += w.spawned;
    s.batches += w.batches;
    s.stolen += w.stolen;
    s.inlined += w.inlined;
    s.spilled += w.spilled;
    s.failed += w.failed;
    s.rejected += w.rejected;
    s.joined += w.joined;
    s.swapped += w.swapped;
    s.awaited += w.awaited;
    s.busy_ns += w.busy_ns;
    s.requests += w.requests;
  }
  return s;
}

std::vector<task_error> engine::errors() const {
  std::vector<task_error> list;
  for (std::uint32_t i = 0; i < errors_kept; ++i) {
    error_record& e = errors_[i];
    if (host_word(e.serial).load(simt::acquire) == 0) continue;
    const task_type& t = program_.types[e.type];
    auto* bytes = reinterpret_cast<const std::byte*>(e.task);
    list.push_back({t.name, e.code, {bytes, bytes + t.bytes}, words_of(e.what)});
  }
  return list;
}

// What has not run is dropped. Says how much that was.
std::string engine::end_by_abort(const std::string& why, const std::string& advice) {
  std::string text = why;
  try {
    const runtime_stats s = stats();
    const std::uint64_t known = s.submitted + s.spawned;
    text += " with about " + std::to_string(known > s.tasks ? known - s.tasks : 0) + " of " +
            std::to_string(known) + " tasks not run; they are dropped" + advice;
  } catch (const error& e) {  // a GPU that another runtime has lost
    text += "; how much was left is not known: " + std::string(e.what());
  }
  say_fault(errc::stopped, text);
  ask_for_abort();
  abort_kernel();
  fail(errc::stopped, text);  // whoever still waits learns it
  return text;
}

void engine::abort() {
  if (simt::forks_so_far() != forks_before_) return;  // nothing runs in this process
  auto before = life::running;
  life_.compare_exchange_strong(before, life::stopping);
  if (before == life::lost || before == life::stopped) return;
  end_by_abort("abort: the runtime was ended", "");
}

void engine::stop(deadline until) {
  throw_if_ended();
  auto before = life::running;
  life_.compare_exchange_strong(before, life::stopping);
  if (before == life::lost) throw_fault();
  if (before == life::stopped) return;
  const auto give_up = [&] {
    throw error(errc::timed_out, end_by_abort("stop: the deadline passed",
                                              ". Give stop() more time, or none to wait"));
  };
  do {
    bool finished = false;
    try {
      finished = wait_for_rest(until);
    } catch (...) {
      write_trace();
      throw;
    }
    if (!finished) give_up();
    std::lock_guard lock(stop_lock_);  // of several threads that stop, the first leaves the device
    if (life_ == life::stopped) return;
    // The host has seen all tasks end that it submitted, and what came of them. Others may run: of
    // messages of other runtimes, for example.
    const deadline leave_by = until ? std::max(until, in(patience_for_leaving)) : until;
    if (!wait_until_left(ask_to_leave(), leave_by)) give_up();
    write_trace();
    before = life::stopping;
    life_.compare_exchange_strong(before, life::stopped);
  } while (goes_on_after_stop());
  throw_if_rejected();
}

// Whether a submitter who began before brought packets, or the kernel, after a stop() had looked:
// then another round of stopping is due.
bool engine::goes_on_after_stop() {
  simt::heavy_fence();  // P3: `stopped` before the packets; pairs with P2
  auto before = life::stopped;
  return life_ == life::stopped && (outstanding() || resident()) &&
         life_.compare_exchange_strong(before, life::stopping);
}

// The time of a submitter's step; nothing is asked for where no trace is written.
std::uint64_t engine::trace_time() const { return submits_ ? simt::clock_ns() : 0; }

void engine::trace_submit(const packet_header& h, std::uint64_t began, std::uint64_t sent) {
  if (submits_)
    submits_->add({.begin = began,
                   .sent = sent,
                   .end = simt::clock_ns(),
                   .type = h.type(),
                   .count = h.count,
                   .level = h.level(),
                   .slot = h.slot,
                   .thread = 0});
}

void engine::write_trace() {
  if (trace_part_.file.empty() || life_ == life::lost) return;
  trace_record what{.types = program_.types,
                    .events = std::vector<trace_event>(trace_.size()),
                    .counts = std::vector<std::uint32_t>(trace_counts_.size()),
                    .capacity = view_.trace_capacity,
                    .submits = submits_->all()};
  trace_.copy_to(what.events);
  trace_counts_.copy_to(what.counts);
  const trace_part part = std::exchange(trace_part_, {});  // once
  device_clock_->read_again();
  write_perfetto(part, device_, what, *device_clock_);
}

}  // namespace grosr::run
