#include "run/memory_plan.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "grosr/queue/submission_ring_owner.hpp"
#include "grosr/run/detail/local.hpp"
#include "run/interop.hpp"
#include "run/swap.hpp"

namespace grosr::run {
namespace {

using simt::space;
using std::chrono::hours;

constexpr std::uint32_t least_reserve = 128;   // batches; twice what one worker may need
constexpr std::uint32_t most_kept_least = 40;  // free frames that a worker keeps, at least
constexpr std::uint32_t least_frames = most_kept_least + 9;  // and one that is its sink
constexpr std::size_t frame_reserve = 64 * simt::warp_size;
constexpr std::uint32_t part_batches = 14, part_frames = 14 * simt::warp_size;  // of the others
constexpr std::chrono::milliseconds least_watchdog{50};  // workers send a heartbeat every 4 ms
constexpr std::uint32_t most_workers = 65'532;           // whole blocks; waiting_count has 16 bits
constexpr std::uint32_t most_overflow_batches = 1u << 24;
constexpr std::uint32_t most_batches = ref::where_mask;  // of both kinds, as a ref names them
constexpr std::uint32_t trace_events = 4096;             // a worker
constexpr std::uint32_t near_staging = 160, near_slots = 1024;
constexpr std::uint32_t returned_part = 32;  // one staging buffer in so many is for what comes back

[[noreturn]] void refuse(const std::string& text) {
  throw error(errc::invalid_option, "runtime: " + text);
}

std::string kibibytes(std::size_t bytes) {
  return std::to_string(bytes / 1024 + (bytes % 1024 != 0)) + " KiB";
}

std::uint32_t cells_for(std::size_t n) {
  return static_cast<std::uint32_t>(std::bit_ceil(std::max<std::size_t>(n, 2)));
}

void check(const runtime_options& o) {
  queue::check_capacity(o.ring_capacity, "runtime: ring_capacity",
                        queue::submission_ring::min_packets, queue::submission_ring::max_packets);
  if (o.slots < 4 || o.slots > (1u << 24))
    refuse("slots = " + std::to_string(o.slots) + "; must be from 4 to 16777216");
  if (o.staging_buffers < 2 || o.staging_buffers > (1u << 16))
    refuse("staging_buffers = " + std::to_string(o.staging_buffers) + "; must be from 2 to 65536");
  queue::check_capacity(o.deque_capacity, "runtime: deque_capacity");
  if (o.rings_per_level > most_rings_per_level)
    refuse("rings_per_level = " + std::to_string(o.rings_per_level) + "; at most " +
           std::to_string(most_rings_per_level));
  if (o.futures < 1 || o.futures > (1u << 20))
    refuse("futures = " + std::to_string(o.futures) + "; must be from 1 to 1048576");
  if (o.inline_depth > 64)
    refuse("inline_depth = " + std::to_string(o.inline_depth) + "; at most 64");
  if (o.idle_timeout.count() < 0 || o.watchdog.count() < 0)
    refuse("idle_timeout and watchdog must not be negative; 0 means never");
  if (o.memory_wait.count() < 0 || o.memory_wait > hours(1))
    refuse("memory_wait = " + std::to_string(o.memory_wait.count()) +
           " us; must be from 0 to an hour");
  if (o.watchdog.count() != 0 && o.watchdog < least_watchdog)
    refuse("watchdog = " + std::to_string(o.watchdog.count()) +
           " ms; must be 0, which means never, or at least " +
           std::to_string(least_watchdog.count()) + " ms");
}

/// Every option that means "choose for me", chosen.
void resolve(runtime_options& o, const device_facts& device) {
  if (o.watchdog > hours(24 * 365)) o.watchdog = {};  // never
  if (o.sms == 0 || o.sms > device.sms) o.sms = device.sms;
  // On a GPU room for one block on every SM stays free for ordinary kernels.
  if (o.blocks_per_sm == 0)
    o.blocks_per_sm = device.is_cuda && device.blocks_per_sm > 1 ? device.blocks_per_sm - 1 : 1;
  // The warps of few SMs would go round many rings.
  if (o.rings_per_level == 0) o.rings_per_level = !device.is_cuda ? 1 : o.sms < 64 ? 4 : 8;
  if (device.blocks_per_sm < o.blocks_per_sm)
    refuse(std::to_string(o.blocks_per_sm) + " blocks an SM were asked for, but only " +
           std::to_string(device.blocks_per_sm) +
           " fit with these task types; ask for fewer (blocks_per_sm)");
  const std::uint64_t blocks = std::uint64_t{o.sms} * o.blocks_per_sm;
  if (blocks > most_workers / warps_per_block)
    refuse(std::to_string(o.sms) + " SMs with " + std::to_string(o.blocks_per_sm) +
           " blocks each were asked for; a runtime has at most " +
           std::to_string(most_workers / warps_per_block) +
           " blocks; ask for fewer (sms, blocks_per_sm)");
}

/// Functions out of line need up to 512 bytes, those of a spawn as much again, the heap's 1 KiB,
/// and a task inside another one what its code keeps there and 256: large ones run elsewhere. In
/// whole KiB, so that runtimes of one process mostly need the same. What tasks that are called by
/// address need, and call, nobody knows: those of worlds some 1,500 bytes, and one may run in
/// another.
void plan_stack(memory_plan& p, const device_facts& device, bool starts_tasks) {
  const std::size_t frame_bytes = device.frame_bytes, apart = device.calls_apart ? 3072 : 0;
  constexpr std::size_t inline_stack = 256;  // for each lane task inside another one
  runtime_options& o = p.options;
  const std::size_t inlined = std::size_t{o.inline_depth} * inline_stack;
  if (frame_bytes > 2 * inline_stack) o.inline_depth = static_cast<unsigned>(inlined / frame_bytes);
  const std::size_t bytes = frame_bytes + apart + 512 + (o.heap != nullptr ? 1024 : 0) +
                            (starts_tasks ? 512 + inlined : 0);
  p.stack_bytes = (bytes + 1023) / 1024 * 1024;
}

/// What does not depend on how many batches the pool has.
void plan_fixed(memory_plan& p, std::span<const task_type> types) {
  const runtime_options& o = p.options;
  view_sizes& s = p.sizes;
  std::uint32_t stride = 16;  // the least there is
  for (const task_type& t : types) {
    stride = std::max(stride, t.stride);
    s.frame_stride = std::max(s.frame_stride, t.frame_bytes);
  }
  p.joins = s.frame_stride != 0;
  s.blocks = o.sms * o.blocks_per_sm;
  s.workers = s.blocks * warps_per_block;
  s.rings_per_level = o.rings_per_level;
  s.warp_bitmap_words = (s.workers + 31) / 32;
  s.block_bitmap_words = (s.blocks + 31) / 32;
  s.deque_capacity = o.deque_capacity;
  s.batch_bytes = batch_records * stride;
  s.staging_bytes = staging_records * stride;
  s.inline_depth = o.inline_depth;
  p.memory_wait_us = static_cast<std::uint32_t>(o.memory_wait.count());
  p.idle_us =
      static_cast<std::uint32_t>(std::min<std::int64_t>(o.idle_timeout.count(), 0x7fffffff));
  p.trace_capacity = o.trace.empty() ? 0 : trace_events;
  p.trace_bytes = std::size_t{s.workers} *
                  (p.trace_capacity * sizeof(trace_event) + (p.trace_capacity != 0 ? 4 : 0));
  p.rings = priority_levels * o.rings_per_level;
  p.slots = o.staging_buffers + 2 * o.slots;
  const std::uint32_t returned = o.staging_buffers / returned_part;
  const std::uint32_t staged = o.staging_buffers - returned;
  p.slot_ranges[static_cast<int>(slot_kind::staged)] = {0, staged, std::min(staged, near_staging)};
  p.slot_ranges[static_cast<int>(slot_kind::returned)] = {staged, returned, returned};
  p.slot_ranges[static_cast<int>(slot_kind::packet)] = {o.staging_buffers, o.slots,
                                                        std::min(o.slots, near_slots)};
  p.slot_ranges[static_cast<int>(slot_kind::ticket)] = {o.staging_buffers + o.slots, o.slots,
                                                        std::min(o.slots, near_slots)};
  p.deques = std::size_t{priority_levels} * (s.workers + s.blocks);
  p.bitmap_words = std::size_t{priority_levels} * (s.warp_bitmap_words + s.block_bitmap_words);
  p.overflow_batches = static_cast<std::uint32_t>(
      std::min<std::size_t>(o.overflow_limit / s.batch_bytes, most_overflow_batches));
  p.overflow_bytes = std::max<std::size_t>(std::size_t{p.overflow_batches} * s.batch_bytes, 1);
  p.free_overflow_cells = cells_for(p.overflow_batches);
}

/// Frames get as many bytes as batches.
std::size_t frames_beside(const memory_plan& p, std::size_t batches) {
  if (!p.joins) return 0;
  const std::size_t n = batches * p.sizes.batch_bytes / p.sizes.frame_stride;
  return std::clamp<std::size_t>(n, p.sizes.workers * std::size_t{least_frames} + 2 * frame_reserve,
                                 fresh_group - 1) /
         frame_group * frame_group;
}

/// What depends on how many batches the pool has, and the parts.
void plan_pool(memory_plan& p, std::size_t batches, std::size_t reserve) {
  const runtime_options& o = p.options;
  view_sizes& s = p.sizes;
  s.pool_batches = static_cast<std::uint32_t>(batches);
  s.pool_reserve =
      std::clamp<std::uint32_t>(s.pool_batches / 16, static_cast<std::uint32_t>(reserve / 2), 1024);
  s.least_pool_reserve = static_cast<std::uint32_t>(reserve / 2);
  s.reserve_parts = 1 + (s.pool_reserve - s.least_pool_reserve) / part_batches;
  s.magazine_target =
      std::clamp<std::uint32_t>(s.pool_batches / s.workers / 4, 1, magazine_capacity / 2);
  p.stocked = s.workers * s.magazine_target;
  p.free_batch_cells = cells_for(batches);
  // A spill ring has a cell for every ref there may be. A staging buffer may be named by several
  // refs, of a run of lane tasks each.
  const std::size_t staged_refs =
      std::size_t{o.staging_buffers} * (staging_records / simt::warp_size);
  p.spill_cells = cells_for(batches + p.overflow_batches + staged_refs);
  p.frames = frames_beside(p, batches);
  if (p.joins) {
    s.frame_reserve = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(p.frames / 16, frame_reserve, 16 * frame_reserve));
    s.least_frame_reserve = static_cast<std::uint32_t>(frame_reserve);
    s.reserve_parts =
        std::min(s.reserve_parts, 1 + (s.frame_reserve - s.least_frame_reserve) / part_frames);
    s.frame_keep = static_cast<std::uint32_t>(std::clamp<std::size_t>(
        (p.frames - 2 * frame_reserve) / s.workers / 2, most_kept_least, frame_capacity - 32));
    p.sink_groups = (s.workers + frame_group - 1) / frame_group;
    p.free_frame_cells = cells_for(p.frame_groups());
  }
  s.reserve_parts = std::min(s.reserve_parts, most_reserve_owners);

  constexpr space device = space::device, pinned = space::pinned;
  using batch_ring = queue::ring<std::uint32_t>;
  using ref_ring = queue::ring<std::uint64_t>;
  const std::size_t workers = s.workers, slots = p.slots, rings = p.rings;
  p.parts = {
      {"words of the scheduler", device, sizeof(common_memory)},
      {"spawns without room", device, sizeof(room_state) + sizeof(queue::call_ring_control)},
      {"rings", device, rings * queue::submission_ring_memory::device_bytes(o.ring_capacity)},
      {"slots", device, slots * sizeof(slot_info)},
      {"pool", device, batches * s.batch_bytes},
      {"free pool batches", device, batch_ring::bytes(p.free_batch_cells)},
      {"free overflow batches", device, batch_ring::bytes(p.free_overflow_cells)},
      {"deques", device, p.deques * 8 * (1 + std::size_t{s.deque_capacity})},
      {"bitmaps", device, p.bitmap_words * 4},
      {"spill rings", device, 2 * priority_levels * ref_ring::bytes(p.spill_cells)},
      {"frames", device, p.frames * s.frame_stride},
      {"free frames", device, p.joins ? batch_ring::bytes(p.free_frame_cells) : 0},
      {"workers", device, workers * (sizeof(worker_stats) + sizeof(worker_save) + 4)},
      {"packets", pinned, rings * queue::submission_ring_memory::pinned_bytes(o.ring_capacity)},
      {"state and control", pinned, state_words * 4},
      {"staging buffers", pinned, std::size_t{o.staging_buffers} * s.staging_bytes},
      {"slot words", pinned, slots * 4},
      {"overflow batches", pinned, p.overflow_bytes},
      {"tasks on their way to ordinary memory", pinned, swap_space::pinned_bytes(swap_records)},
      {"submissions that wait for streams", pinned, interop::pinned_bytes()},
      {"roots", pinned, p.joins ? o.futures * sizeof(promise) : 0},
      {"reports", pinned, rings * 4 + workers * 4 + errors_kept * sizeof(error_record)},
  };
  p.device_bytes = p.pinned_bytes = 0;
  for (const memory_part& part : p.parts)
    (part.where == device ? p.device_bytes : p.pinned_bytes) += part.bytes;
}

}  // namespace

memory_plan plan_memory(const runtime_options& asked, std::span<const task_type> types,
                        const device_facts& device, bool starts_tasks) {
  memory_plan p{};
  p.options = asked;
  check(p.options);
  resolve(p.options, device);
  if (!starts_tasks) p.options.overflow_limit = p.options.inline_depth = 0;
  plan_stack(p, device, starts_tasks);
  plan_fixed(p, types);
  // Each batch also has a cell in the free ring and in every spill ring. Rings are powers of two,
  // so the largest pool is found by trying.
  const std::size_t reserve = p.joins ? 2 * least_reserve : least_reserve;
  const std::size_t least = std::size_t{2} * p.sizes.workers + reserve;
  const auto fits = [&](std::size_t batches) {
    plan_pool(p, batches, reserve);
    return p.device_bytes <= p.options.memory_limit;
  };
  if (!fits(least))
    refuse("memory_limit is " + kibibytes(p.options.memory_limit) + ", but " +
           std::to_string(p.sizes.workers) + " workers need at least " + kibibytes(p.device_bytes) +
           "; raise memory_limit, or lower sms, blocks_per_sm, deque_capacity, slots or "
           "overflow_limit");
  std::size_t low = least;
  std::size_t high = starts_tasks ? std::size_t{most_batches} + 1 - p.overflow_batches : least + 1;
  while (low + 1 < high) {
    const std::size_t middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  plan_pool(p, low, reserve);
  return p;
}

}  // namespace grosr::run
