// The plan of a runtime's memory, worked out without a device: it keeps to the limit, adds up,
// grows with the limit, resolves every default, and refuses in words.
#include "run/memory_plan.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "grosr/run/detail/local.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;
using run::device_facts;
using run::memory_plan;
using run::plan_memory;
using run::slot_kind;
using run::task_type;

constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();
constexpr device_facts host{false, 2, 16}, h100{true, 132, 6}, large{true, 500, 32};

task_type plain(std::uint32_t stride = 16) { return {"plain", 12, stride, width::lane, 0}; }
task_type joining() { return {"joining", 40, 48, width::lane, 64}; }
const std::vector<task_type> one{plain()}, three{plain(), plain(64), joining()};

memory_plan plan(const runtime_options& o = {}, const std::vector<task_type>& types = one,
                 const device_facts& device = h100) {
  return plan_memory(o, types, device, true);
}

/// Of tasks that never spawn.
memory_plan plain_plan(const runtime_options& o = {}) { return plan_memory(o, one, h100, false); }

std::string refusal(const runtime_options& o, const device_facts& device = h100) {
  try {
    plan(o, one, device);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_option);
    return e.what();
  }
  return "nothing was refused";
}

/// Every combination of a few options, types and devices.
void for_many(const std::function<void(const memory_plan&)>& f) {
  for (const auto& types : {one, three})
    for (const device_facts& device : {host, h100, large})
      for (std::size_t memory : {std::size_t{256} << 20, std::size_t{16} << 30, huge})
        for (std::size_t overflow : {std::size_t{0}, std::size_t{16} << 20, huge})
          for (std::uint32_t few : {0u, 1u}) {
            runtime_options o;
            o.memory_limit = memory;
            o.overflow_limit = overflow;
            if (few) {
              o.sms = o.blocks_per_sm = o.rings_per_level = 1;
              o.ring_capacity = 8;
              o.slots = 4;
              o.staging_buffers = 2;
              o.deque_capacity = 2;
              o.futures = 1;
            }
            memory_plan p{};
            try {
              p = plan(o, types, device);
            } catch (const error& e) {
              // 124,000 workers, or the rings of 16 million overflow batches, in 256 MiB.
              EXPECT_EQ(memory, std::size_t{256} << 20);
              EXPECT_TRUE(device.sms == large.sms || overflow == huge);
              EXPECT_NE(std::string(e.what()).find("raise memory_limit"), std::string::npos);
              continue;
            }
            f(p);
          }
}

// Counters and words of a worker may be added without a thought for these; the numbers that tasks
// depend on stay.
TEST(memory_plan, leaves_nearly_all_of_the_default_memory_to_tasks) {
  const memory_plan on_host = plan({}, one, host), on_gpu = plan(), with_joins = plan({}, three);
  constexpr std::size_t limit = std::size_t{256} << 20;
  for (const memory_plan* p : {&on_host, &on_gpu, &with_joins}) {
    EXPECT_LE(p->device_bytes, limit);
    EXPECT_GT(p->device_bytes, limit - (1u << 20));
  }
  EXPECT_EQ(on_host.sizes.workers, 8u);
  EXPECT_EQ(on_gpu.sizes.workers, 2640u);
  EXPECT_NEAR(on_host.sizes.pool_batches, 414'000, 2'000);
  EXPECT_NEAR(on_gpu.sizes.pool_batches, 379'000, 2'000);
  EXPECT_EQ(on_gpu.sizes.pool_reserve, 1024u);
  EXPECT_EQ(on_gpu.sizes.reserve_parts, run::most_reserve_owners);
  EXPECT_EQ(on_gpu.sizes.magazine_target, 8u);
  EXPECT_NEAR(with_joins.sizes.pool_batches, 57'500, 500);
  EXPECT_EQ(with_joins.sizes.magazine_target, 5u);
  EXPECT_NEAR(static_cast<double>(with_joins.frames), 1'825'000, 10'000);
  EXPECT_EQ(with_joins.sizes.frame_keep, 240u);
  EXPECT_EQ(with_joins.sizes.frame_reserve, 32768u);
}

TEST(memory_plan, adds_up) {
  for_many([](const memory_plan& p) {
    std::size_t device = 0, pinned = 0;
    for (const auto& part : p.parts)
      (part.where == simt::space::device ? device : pinned) += part.bytes;
    EXPECT_EQ(device, p.device_bytes);
    EXPECT_EQ(pinned, p.pinned_bytes);
    EXPECT_EQ(p.slots, p.options.staging_buffers + 2 * p.options.slots);
    EXPECT_EQ(p.sizes.blocks, p.options.sms * p.options.blocks_per_sm);
    EXPECT_EQ(p.rings, priority_levels * p.options.rings_per_level);
  });
}

TEST(memory_plan, keeps_to_the_limit_and_uses_it) {
  for_many([](const memory_plan& p) {
    EXPECT_LE(p.device_bytes, p.options.memory_limit);
    const std::size_t batches = p.sizes.pool_batches;
    EXPECT_GE(batches, 2 * p.sizes.workers);
    EXPECT_LE(batches + p.overflow_batches, run::ref::where_mask);
    EXPECT_LE(p.overflow_batches * std::size_t{p.sizes.batch_bytes}, p.options.overflow_limit);
    EXPECT_LT(p.stocked, batches);
    EXPECT_GE(p.free_batch_cells, batches - p.stocked);
    EXPECT_GE(p.free_overflow_cells, p.overflow_batches);
    // Every ref there may be has a cell: a spill never waits.
    EXPECT_GE(p.spill_cells, batches + p.overflow_batches + p.options.staging_buffers * 16);
    EXPECT_LT(2 * p.sizes.pool_reserve, batches);
    EXPECT_GE(p.sizes.reserve_parts, 1u);
    EXPECT_LE(p.sizes.least_pool_reserve, p.sizes.pool_reserve);
  });
}

TEST(memory_plan, has_frames_for_types_that_bring_results) {
  for_many([](const memory_plan& p) {
    if (p.sizes.frame_stride == 0) {
      EXPECT_EQ(p.frames, 0u);
      EXPECT_FALSE(p.joins);
      return;
    }
    EXPECT_EQ(p.frames % run::frame_group, 0u);
    EXPECT_GE(p.sink_groups * run::frame_group, p.sizes.workers);
    EXPECT_GE(p.free_frame_cells, p.frame_groups() - p.sink_groups);
    // What all workers keep, and the margin, leave some for the ring.
    EXPECT_GT(p.frames, (p.sizes.frame_keep + 1) * std::size_t{p.sizes.workers});
    EXPECT_LT(p.sizes.frame_reserve, p.frames);
    EXPECT_LT(p.frames, std::size_t{run::fresh_group});
  });
}

TEST(memory_plan, grows_with_the_limit) {
  for (const auto& types : {one, three}) {
    runtime_options o;
    memory_plan before{};
    for (o.memory_limit = std::size_t{48} << 20; o.memory_limit < std::size_t{1} << 40;
         o.memory_limit += o.memory_limit / 7) {
      const memory_plan p = plan(o, types);
      EXPECT_GE(p.sizes.pool_batches, before.sizes.pool_batches) << o.memory_limit;
      EXPECT_GE(p.device_bytes, before.device_bytes) << o.memory_limit;
      EXPECT_GE(p.frames, before.frames) << o.memory_limit;
      EXPECT_GE(p.spill_cells, before.spill_cells) << o.memory_limit;
      EXPECT_GE(p.sizes.magazine_target, before.sizes.magazine_target) << o.memory_limit;
      before = p;
    }
    EXPECT_GT(before.sizes.pool_batches, 1u << 26);
  }
}

TEST(memory_plan, of_tasks_that_never_spawn_is_small) {
  runtime_options o;
  const memory_plan p = plain_plan(o);
  EXPECT_LT(p.device_bytes, std::size_t{24} << 20);
  EXPECT_LT(p.pinned_bytes, std::size_t{10} << 20);
  EXPECT_EQ(p.overflow_batches, 0u);
  EXPECT_EQ(p.sizes.inline_depth, 0u);
  o.memory_limit *= 64;
  EXPECT_EQ(plain_plan(o).device_bytes, p.device_bytes);
  o.memory_limit = p.device_bytes;
  EXPECT_EQ(plain_plan(o).device_bytes, p.device_bytes);
  --o.memory_limit;
  EXPECT_THROW(plain_plan(o), error);
}

// The least memory that the refusal names is enough, a KiB less is not.
TEST(memory_plan, of_the_least_memory_fits_exactly) {
  for (const device_facts& device : {host, h100, large}) {
    runtime_options o;
    o.memory_limit = 0;
    const std::string text = refusal(o, device);
    const auto at = text.find("need at least ");
    ASSERT_NE(at, std::string::npos) << text;
    const std::size_t least = std::stoull(text.substr(at + 14)) * 1024;
    o.memory_limit = least;
    EXPECT_LE(plan(o, one, device).device_bytes, least);
    o.memory_limit = least - 1024;
    EXPECT_NE(refusal(o, device).find("raise memory_limit"), std::string::npos);
  }
}

TEST(memory_plan, resolves_what_is_left_to_it) {
  const memory_plan gpu = plan(), cpu = plan({}, one, host);
  EXPECT_EQ(gpu.options.sms, 132u);
  EXPECT_EQ(gpu.options.blocks_per_sm, 5u);
  EXPECT_EQ(gpu.options.rings_per_level, 8u);
  EXPECT_EQ(cpu.options.sms, 2u);
  EXPECT_EQ(cpu.options.blocks_per_sm, 1u);
  EXPECT_EQ(cpu.options.rings_per_level, 1u);
  EXPECT_EQ(plan({}, one, {true, 4, 1}).options.blocks_per_sm, 1u);
  runtime_options o;
  o.sms = 1000;
  EXPECT_EQ(plan(o).options.sms, 132u);
  o.sms = 7;
  o.blocks_per_sm = 6;
  o.rings_per_level = 2;
  EXPECT_EQ(plan(o).sizes.blocks, 42u);
  EXPECT_EQ(plan(o).rings, 2 * priority_levels);
  o.watchdog = std::chrono::hours(24 * 366);
  EXPECT_EQ(plan(o).options.watchdog, 0ms);  // never
  o.idle_timeout = std::chrono::microseconds::max();
  EXPECT_EQ(plan(o).idle_us, 0x7fffffffu);
  EXPECT_EQ(plan(o).trace_bytes, 0u);
  o.trace = "x.json";
  EXPECT_EQ(plan(o).trace_bytes, 42u * 4 * (4096 * sizeof(run::trace_event) + 4));
  const std::size_t with_trace = plan(o).device_bytes;
  o.trace = "";
  EXPECT_EQ(plan(o).device_bytes, with_trace);
}

TEST(memory_plan, tells_slots_of_each_kind_apart) {
  runtime_options o;
  o.staging_buffers = 100;
  o.slots = 5000;
  const memory_plan p = plan(o);
  const auto range = [&](slot_kind k) { return p.slot_ranges[static_cast<int>(k)]; };
  EXPECT_EQ(range(slot_kind::staged).first, 0u);
  EXPECT_EQ(range(slot_kind::staged).near, 97u);
  EXPECT_EQ(range(slot_kind::returned).first, 97u);
  EXPECT_EQ(range(slot_kind::returned).count, 3u);
  EXPECT_EQ(range(slot_kind::packet).first, 100u);
  EXPECT_EQ(range(slot_kind::packet).count, 5000u);
  EXPECT_EQ(range(slot_kind::packet).near, 1024u);
  EXPECT_EQ(range(slot_kind::ticket).first + range(slot_kind::ticket).count, p.slots);
}

TEST(memory_plan, stacks_hold_what_tasks_call) {
  const auto stack = [](std::size_t frame, const runtime_options& o = {}, bool starts = true) {
    return plan_memory(o, one, {true, 132, 6, frame}, starts);
  };
  EXPECT_EQ(stack(0, {}, false).stack_bytes, 1024u);
  EXPECT_EQ(stack(600, {}, false).stack_bytes, 2048u);
  EXPECT_EQ(stack(0).stack_bytes, 2048u);
  EXPECT_EQ(stack(512).sizes.inline_depth, 4u);
  // A large frame within another one takes more than 256 bytes: fewer run there.
  EXPECT_EQ(stack(600).sizes.inline_depth, 1u);
  EXPECT_EQ(stack(1025).sizes.inline_depth, 0u);
  EXPECT_EQ(stack(1025).stack_bytes, 4096u);
  // What may not be asked for is refused, however large the frame is.
  runtime_options o;
  o.inline_depth = 65;
  EXPECT_THROW(stack(600, o), error);
}

struct refused {
  std::function<void(runtime_options&)> set;
  const char* text;
};

TEST(memory_plan, refuses_in_words) {
  const std::vector<refused> all = {
      {[](auto& o) { o.slots = 3; }, "runtime: slots = 3; must be from 4 to 16777216"},
      {[](auto& o) { o.slots = ~0u; }, "runtime: slots = 4294967295; must be from 4 to 16777216"},
      {[](auto& o) { o.staging_buffers = 1; },
       "runtime: staging_buffers = 1; must be from 2 to 65536"},
      {[](auto& o) { o.staging_buffers = 65537; },
       "runtime: staging_buffers = 65537; must be from 2 to 65536"},
      {[](auto& o) { o.ring_capacity = 4; },
       "runtime: ring_capacity: a capacity of 4 was asked for; it must be a power of two from 8 to "
       "8192"},
      {[](auto& o) { o.rings_per_level = 9; }, "runtime: rings_per_level = 9; at most 8"},
      {[](auto& o) { o.futures = 0; }, "runtime: futures = 0; must be from 1 to 1048576"},
      {[](auto& o) { o.inline_depth = 65; }, "runtime: inline_depth = 65; at most 64"},
      {[](auto& o) { o.idle_timeout = -1us; },
       "runtime: idle_timeout and watchdog must not be negative; 0 means never"},
      {[](auto& o) { o.memory_wait = 3601s; },
       "runtime: memory_wait = 3601000000 us; must be from 0 to an hour"},
      {[](auto& o) { o.watchdog = 49ms; },
       "runtime: watchdog = 49 ms; must be 0, which means never, or at least 50 ms"},
      {[](auto& o) { o.blocks_per_sm = 7; },
       "runtime: 7 blocks an SM were asked for, but only 6 fit with these task types; ask for "
       "fewer (blocks_per_sm)"},
      {[](auto& o) { o.memory_limit = 1024; },
       "runtime: memory_limit is 1 KiB, but 2640 workers need at least N KiB; raise "
       "memory_limit, or lower sms, blocks_per_sm, deque_capacity, slots or overflow_limit"},
  };
  for (const refused& r : all) {
    runtime_options o;
    r.set(o);
    // What a worker needs grows by a counter now and then.
    EXPECT_EQ(std::regex_replace(refusal(o), std::regex("at least [0-9]+ KiB"), "at least N KiB"),
              r.text);
  }
}

TEST(memory_plan, does_not_wrap_where_numbers_are_huge) {
  runtime_options o;
  o.ring_capacity = 8192;
  o.slots = 1u << 24;
  o.staging_buffers = 1u << 16;
  o.deque_capacity = 1u << 30;
  o.rings_per_level = 8;
  o.futures = 1u << 20;
  o.overflow_limit = huge;
  // 13,200 deques of 8 GiB.
  EXPECT_NE(refusal(o).find("memory_limit is 262144 KiB, but 2640 workers need at least 110"),
            std::string::npos)
      << refusal(o);
  o.memory_limit = huge;
  memory_plan p = plan(o);
  EXPECT_GT(p.device_bytes, std::size_t{100} << 40);
  EXPECT_LT(p.device_bytes, std::size_t{1} << 50);
  EXPECT_EQ(p.sizes.pool_batches + p.overflow_batches, run::ref::where_mask);
  // More warps than words of the scheduler can name.
  const device_facts absurd{true, 1u << 31, 1u << 31};
  EXPECT_EQ(refusal({}, absurd),
            "runtime: 2147483648 SMs with 2147483647 blocks each were asked for; a runtime has at "
            "most 16383 blocks; ask for fewer (sms, blocks_per_sm)");
}

// docs/guide/tasks.md, docs/limits.md and README.md tell users what is left for their tasks.
TEST(block_shared_memory, is_as_large_as_the_pages_say) {
  EXPECT_EQ(sizeof(run::block_local<1>), 18'288u);
  EXPECT_EQ(sizeof(run::block_local<2>) - sizeof(run::block_local<1>), 384u);
  EXPECT_EQ(sizeof(run::block_local<run::max_task_types>), 24'048u);
}

}  // namespace
}  // namespace grosr::testing
