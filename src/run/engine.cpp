// Memory, life cycle and statistics of an engine. Submission is in submit.cpp, residency and the
// monitor in residency.cpp.
#include "grosr/run/detail/engine.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "grosr/alloc/heap.hpp"
#include "grosr/run/detail/local.hpp"
#include "grosr/simt/doing.hpp"
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

constexpr std::uint32_t least_margin = 128;    // batches; twice what one worker may need
constexpr std::uint32_t most_kept_least = 40;  // free frames that a worker keeps, at least
constexpr std::uint32_t least_frames = most_kept_least + 9;  // and one that is its waste
constexpr std::chrono::milliseconds least_watchdog{50};  // workers tell every 4 ms that they go on
constexpr std::size_t lone_words = 8;  // single words of the view that have a line of their own
constexpr std::uint32_t swap_records = 1024;  // tasks on their way to the host's memory

std::string kibibytes(std::size_t bytes) { return std::to_string((bytes + 1023) / 1024) + " KiB"; }

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

unsigned auto_blocks_per_sm(const device& d, const simt::kernel_fit& fit) {
  if (!d.is_cuda()) return 1;
  // Room for one block on every SM stays free for ordinary kernels.
  return std::max(1u, fit.blocks_per_sm - 1);
}

}  // namespace

engine::engine(device d, const runtime_options& options, program p)
    : device_(d), options_(options), program_(std::move(p)) {
  check_options();
  if (options_.watchdog > std::chrono::hours(24 * 365)) options_.watchdog = {};  // never
  device_properties props = device_.properties();
  if (options_.sms == 0 || options_.sms > props.sms) options_.sms = props.sms;
  if (options_.blocks_per_sm == 0)
    options_.blocks_per_sm = auto_blocks_per_sm(device_, program_.fit);
  if (options_.ports_per_level == 0) options_.ports_per_level = device_.is_cuda() ? 4 : 1;
  if (program_.fit.blocks_per_sm < options_.blocks_per_sm)
    throw error(errc::invalid_option,
                "runtime: " + std::to_string(options_.blocks_per_sm) +
                    " blocks an SM were asked for, but only " +
                    std::to_string(program_.fit.blocks_per_sm) +
                    " fit with these task types; ask for fewer (blocks_per_sm)");
  blocks_ = options_.sms * options_.blocks_per_sm;
  if (options_.trace.empty())
    if (const char* file = std::getenv("GROSR_TRACE")) options_.trace = file;
  if (!options_.trace.empty()) trace_file_ = trace_file_for(options_.trace);
  if (options_.heap != nullptr) use_heap(*options_.heap);
  if (!device_.is_cuda()) faults_ = simt::tell_faults();
  allocate();
  stream_ = std::make_unique<simt::stream>(device_);
  if (program_.trap) trap_stream_ = std::make_unique<simt::stream>(device_);
  make_swap();
  progress_at_ = std::chrono::steady_clock::now();
  monitor_thread_ = std::thread([this] { monitor(); });
}

engine::~engine() {
  const bool traces = !trace_file_.empty();
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
  swap_->stop();
}

void engine::check_options() const {
  auto bad = [](const std::string& text) { throw error(errc::invalid_option, "runtime: " + text); };
  queue::check_capacity(options_.lines, "runtime: lines");
  if (options_.lines < queue::ingress::min_lines || options_.lines > queue::ingress::max_lines)
    bad("lines = " + std::to_string(options_.lines) + "; must be from " +
        std::to_string(queue::ingress::min_lines) + " to " +
        std::to_string(queue::ingress::max_lines));
  if (options_.slots < 4 || options_.slots > (1u << 24))
    bad("slots = " + std::to_string(options_.slots) + "; must be from 4 to 16777216");
  if (options_.slabs < 2 || options_.slabs > (1u << 16))
    bad("slabs = " + std::to_string(options_.slabs) + "; must be from 2 to 65536");
  queue::check_capacity(options_.deque_capacity, "runtime: deque_capacity");
  if (options_.ports_per_level > 8)
    bad("ports_per_level = " + std::to_string(options_.ports_per_level) + "; at most 8");
  if (options_.futures < 1 || options_.futures > (1u << 20))
    bad("futures = " + std::to_string(options_.futures) + "; must be from 1 to 1048576");
  if (options_.inline_depth > 64)
    bad("inline_depth = " + std::to_string(options_.inline_depth) + "; at most 64");
  if (options_.idle_timeout.count() < 0 || options_.watchdog.count() < 0)
    bad("idle_timeout and watchdog must not be negative; 0 means never");
  if (options_.memory_wait.count() < 0 || options_.memory_wait > std::chrono::hours(1))
    bad("memory_wait = " + std::to_string(options_.memory_wait.count()) +
        " us; must be from 0 to an hour");
  if (options_.watchdog.count() != 0 && options_.watchdog < least_watchdog)
    bad("watchdog = " + std::to_string(options_.watchdog.count()) +
        " ms; must be 0, which means never, or at least " + std::to_string(least_watchdog.count()) +
        " ms");
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
  heap_ = h.lifetime();
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
          .bring_back = [this](auto... line) { return bring_back(line...); },
          .done = [this](ticket_id t) { return done(t); },
          .resident = [this] { return resident(); },
          .leaves = [this] { return parked_by_user_.load(); },
      });
  room_state room{};
  room.swap = swap_->records();
  room_ = {device_, simt::space::device, 1};
  room_.copy_from(std::vector{room});
  view_.room = room_.data();
  pinned_bytes_ += swap_space::pinned_bytes(swap_records);
  swap_->start();
}

void engine::allocate() {
  using simt::space;
  std::uint32_t workers = blocks_ * warps_per_block, all = workers + blocks_;
  std::uint32_t ports = priority_levels * options_.ports_per_level;
  std::uint32_t stride = 0;
  for (auto& t : program_.types) {
    stride = std::max(stride, t.stride);
    view_.frame_stride = std::max(view_.frame_stride, t.frame_bytes);
  }
  const bool joins = view_.frame_stride != 0;
  view_.workers = workers;
  view_.collected = program_.collected.items;
  view_.collected_count = program_.collected.count;
  view_.blocks = blocks_;
  view_.ports_per_level = options_.ports_per_level;
  view_.warp_bitmap_words = (workers + 31) / 32;
  view_.block_bitmap_words = (blocks_ + 31) / 32;
  view_.deque_capacity = options_.deque_capacity;
  view_.batch_bytes = batch_records * stride;
  view_.slab_bytes = slab_records * stride;
  std::uint32_t slots = all_slots();
  view_.inline_depth = options_.inline_depth;
  view_.memory_wait_us = static_cast<std::uint32_t>(options_.memory_wait.count());
  view_.idle_us =
      static_cast<std::uint32_t>(std::min<std::int64_t>(options_.idle_timeout.count(), 0x7fffffff));

  auto overflow_batches = static_cast<std::uint32_t>(
      std::min<std::size_t>(options_.overflow_limit / view_.batch_bytes, 1u << 24));
  // What does not depend on the number of batches.
  std::size_t bitmap_words =
      std::size_t{priority_levels} * (view_.warp_bitmap_words + view_.block_bitmap_words);
  std::size_t deques = std::size_t{priority_levels} * all;
  std::uint32_t overflow_cells = std::bit_ceil(std::max(overflow_batches, 2u));
  std::size_t fixed =
      lone_words * 128 + sizeof(room_state) + sizeof(queue::egress_control) +
      queue::ring<std::uint32_t>::bytes(overflow_cells) + bitmap_words * 4 +
      deques * 8 * (1 + options_.deque_capacity) +
      ports * (queue::ingress::device_bytes(options_.lines) + sizeof(queue::ingress_ref)) +
      slots * sizeof(slot_info) + workers * (sizeof(worker_stats) + sizeof(worker_save) + 4);
  // The pool: each batch also has a cell in the free ring and in every spill ring. Rings are powers
  // of two, so the largest pool is found by trying.
  auto ring_cells = [&](std::size_t batches) {
    // A slab may be named by several refs, of a run of lane tasks each.
    std::size_t slab_refs = std::size_t{options_.slabs} * (slab_records / simt::warp_size);
    return std::bit_ceil(std::max<std::size_t>(batches + overflow_batches + slab_refs, 2));
  };
  // Frames get as many bytes as batches.
  const std::size_t frame_margin = 64 * simt::warp_size;
  auto frames_for = [&](std::size_t batches) -> std::size_t {
    if (!joins) return 0;
    const std::size_t n = batches * view_.batch_bytes / view_.frame_stride;
    return std::clamp<std::size_t>(n, workers * std::size_t{least_frames} + 2 * frame_margin,
                                   run::fresh_group - 1) /
           frame_group * frame_group;
  };
  auto frames_bytes = [&](std::size_t frames) -> std::size_t {
    return joins
               ? frames * view_.frame_stride + queue::ring<std::uint32_t>::bytes(std::bit_ceil(
                                                   std::max<std::size_t>(frames / frame_group, 2)))
               : 0;
  };
  auto total = [&](std::size_t batches) {
    return fixed + batches * view_.batch_bytes + frames_bytes(frames_for(batches)) +
           queue::ring<std::uint32_t>::bytes(std::bit_ceil(std::max<std::size_t>(batches, 2))) +
           2 * priority_levels * queue::ring<std::uint64_t>::bytes(ring_cells(batches));
  };
  const std::size_t margin = joins ? 2 * least_margin : least_margin;
  std::size_t least = std::size_t{2} * workers + margin;
  if (total(least) > options_.memory_limit)
    throw error(errc::invalid_option,
                "runtime: memory_limit is " + kibibytes(options_.memory_limit) + ", but " +
                    std::to_string(workers) + " workers need at least " + kibibytes(total(least)) +
                    "; raise memory_limit, or lower sms, blocks_per_sm or deque_capacity");
  std::size_t low = least, high = std::size_t{1} << 28;
  while (low + 1 < high) {
    std::size_t middle = (low + high) / 2;
    (total(middle) <= options_.memory_limit ? low : high) = middle;
  }
  auto batches = static_cast<std::uint32_t>(low);
  view_.pool_batches = batches;
  view_.pool_margin =
      std::clamp<std::uint32_t>(batches / 16, static_cast<std::uint32_t>(margin / 2), 1024);
  view_.stock_target = std::clamp<std::uint32_t>(batches / workers / 4, 1, stock_capacity / 2);
  device_bytes_ = total(batches);

  words_ = {device_, space::device, lone_words * 32};
  auto own_line = [&, line = 0u]() mutable { return words_.data() + 32 * line++; };
  view_.board = reinterpret_cast<std::uint64_t*>(own_line());
  view_.quiet_since = reinterpret_cast<std::uint64_t*>(own_line());
  view_.way_made = reinterpret_cast<std::uint64_t*>(own_line());
  view_.hints = own_line();
  view_.error_count = own_line();
  view_.keeper = own_line();
  view_.departed = own_line();
  view_.cancelled = own_line();
  std::vector<queue::ingress_ref> refs;
  for (std::uint32_t i = 0; i < ports; ++i) {
    ports_.push_back(std::make_unique<queue::ingress>(device_, options_.lines));
    refs.push_back(ports_.back()->ref());
  }
  port_refs_ = {device_, space::device, ports};
  port_refs_.copy_from(refs);
  view_.ports = port_refs_.data();
  written_ = std::make_unique<std::atomic<std::uint32_t>[]>(ports);
  generations_ = std::make_unique<std::atomic<std::uint32_t>[]>(slots);
  slot_types_ = std::make_unique<std::atomic<std::uint8_t>[]>(slots);

  auto device_array = [&](auto& buffer, auto*& in_view, std::size_t count) {
    buffer = {device_, space::device, count};
    in_view = buffer.data();
  };
  auto pinned_array = [&](auto& buffer, auto*& in_view, std::size_t count) {
    buffer = {device_, space::pinned, count};
    in_view = buffer.data();
    pinned_bytes_ += buffer.bytes();
  };
  device_array(slot_infos_, view_.slots, slots);
  slabs_ = {device_, space::pinned, std::size_t{options_.slabs} * view_.slab_bytes};
  view_.slabs = slabs_.data();
  pinned_bytes_ += slabs_.bytes() + ports * options_.lines * sizeof(queue::line);
  pinned_array(slot_words_, view_.slot_words, slots);
  pinned_array(quiescent_, view_.quiescent, ports);
  state_ = {device_, space::pinned, 2 * control_at};
  view_.state = state_.data();
  view_.control = state_.data() + control_at;
  pinned_array(running_host_, view_.running_host, workers);
  pinned_array(errors_, view_.errors, errors_kept);
  device_array(pool_, view_.pool, std::size_t{batches} * view_.batch_bytes);
  device_array(deque_words_, view_.deque_words, deques);
  device_array(deque_entries_, view_.deque_entries, deques * options_.deque_capacity);
  device_array(bitmaps_, view_.bitmaps, bitmap_words);
  device_array(running_, view_.running, workers);
  device_array(stats_, view_.stats, workers);
  device_array(saves_, view_.saves, workers);
  if (joins) {
    const std::size_t frames = frames_for(batches);
    device_array(frames_, view_.frames, frames * view_.frame_stride);
    view_.frame_margin = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(frames / 16, frame_margin, 16 * frame_margin));
    view_.frame_keep = static_cast<std::uint32_t>(std::clamp<std::size_t>(
        (frames - 2 * frame_margin) / workers / 2, most_kept_least, frame_capacity - 32));
    // The first ones, of whole groups, are for what found no room.
    const std::size_t waste = (workers + frame_group - 1) / frame_group,
                      groups = frames / frame_group;
    free_frames_ = {device_,
                    static_cast<std::uint32_t>(std::bit_ceil(std::max<std::size_t>(groups, 2)))};
    free_frames_.fill(static_cast<std::uint32_t>(groups - waste), [&](std::uint32_t i) {
      return static_cast<std::uint32_t>((waste + i) * frame_group) | fresh_group;
    });
    view_.free_frames = free_frames_.ref();
    pinned_array(roots_, view_.roots, options_.futures);
    for (std::uint32_t i = options_.futures; i-- > 0;) free_roots_.push_back(i);
  }
  free_batches_ = {device_, std::bit_ceil(std::max(batches, 2u))};
  view_.free_batches = free_batches_.ref();
  pinned_array(overflow_, view_.overflow,
               std::max<std::size_t>(std::size_t{overflow_batches} * view_.batch_bytes, 1));
  free_overflow_ = {device_, overflow_cells};
  view_.free_overflow = free_overflow_.ref();
  free_overflow_.fill(overflow_batches, [&](std::uint32_t i) { return batches + i; });
  // Every worker begins with a stock; the rest is in the ring.
  std::uint32_t stocked = workers * view_.stock_target;
  free_batches_.fill(batches - stocked, [&](std::uint32_t i) { return stocked + i; });
  std::vector<worker_save> saves(workers);
  for (std::uint32_t w = 0; w < workers; ++w) {
    saves[w].stock_count = view_.stock_target;
    for (std::uint32_t k = 0; k < view_.stock_target; ++k)
      saves[w].stock[k] = w * view_.stock_target + k;
  }
  saves_.copy_from(saves);
  for (unsigned l = 0; l < priority_levels; ++l)
    for (auto* target : {&view_.spill[l], &view_.block_spill[l]}) {
      spill_.emplace_back(device_, static_cast<std::uint32_t>(ring_cells(batches)));
      *target = spill_.back().ref();
    }
  if (!trace_file_.empty()) {
    view_.trace_capacity = 4096;
    device_array(trace_, view_.trace, std::size_t{workers} * view_.trace_capacity);
    device_array(trace_counts_, view_.trace_counts, workers);
  }
}

runtime_stats engine::stats() const {
  runtime_stats s;
  s.submitted = submitted_.load();
  s.residencies = launched_.load();
  s.memory = device_bytes_;
  s.host_memory = pinned_bytes_;
  s.workers = view_.workers;
  if (life_ == life::lost) return s;
  std::vector<worker_stats> all(view_.workers);
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
    s.busy_ns += w.busy_ns;
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

void engine::stop(deadline until) {
  auto before = life::running;
  life_.compare_exchange_strong(before, life::stopping);
  if (before == life::lost) throw_fault();
  if (before == life::stopped) return;
  do {
    bool finished = false;
    try {
      finished = wait_for_rest(until);
    } catch (...) {
      write_trace();
      throw;
    }
    if (!finished) {
      runtime_stats s = stats();
      std::uint64_t known = s.submitted + s.spawned;
      std::string text = "stop: the deadline passed with about " +
                         std::to_string(known > s.tasks ? known - s.tasks : 0) + " of " +
                         std::to_string(known) +
                         " tasks not run; they are dropped. Give stop() more time, or none to wait";
      say_fault(errc::stopped, text);
      ask_for_abort();
      abort_kernel();
      fail(errc::stopped, text);  // whoever still waits learns it
      throw error(errc::timed_out, text);
    }
    std::lock_guard lock(stop_lock_);  // of several threads that stop, the first leaves the device
    if (life_ == life::stopped) return;
    park();
    write_trace();
    before = life::stopping;
    life_.compare_exchange_strong(before, life::stopped);
  } while (goes_on_after_stop());
  throw_if_rejected();
}

// Whether a submitter who began before brought lines, or the kernel, after a stop() had looked:
// then another round of stopping is due.
bool engine::goes_on_after_stop() {
  simt::fence<simt::scope::system>(simt::seq_cst);  // P3: `stopped` before the lines; pairs with P2
  auto before = life::stopped;
  return life_ == life::stopped && (outstanding() || resident()) &&
         life_.compare_exchange_strong(before, life::stopping);
}

void engine::write_trace() {
  if (trace_file_.empty() || life_ == life::lost) return;
  std::vector<trace_event> events(trace_.size());
  std::vector<std::uint32_t> counts(trace_counts_.size());
  trace_.copy_to(events);
  trace_counts_.copy_to(counts);
  std::string file = std::exchange(trace_file_, "");  // once
  write_perfetto(file, device_, program_.types, events, counts, view_.trace_capacity);
}

}  // namespace grosr::run
