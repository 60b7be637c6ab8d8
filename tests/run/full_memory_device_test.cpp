// Tasks on every worker that start more than all task memory holds: nothing is lost, and what
// cannot be placed is an error that whoever waits sees. Counts are scaled down no further than
// what fills memory.
#include <thread>

#include "run/least_memory.hpp"
#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(full_memory);

/// Starts `count` warp tasks, or block tasks.
struct producer {
  std::uint32_t* cells;
  std::uint32_t first, count, blocks;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (blocks)
        context.spawn(block_mark{cells, i});
      else
        context.spawn(warp_mark{cells, i});
    }
  }
};
/// The same, by all lanes of a warp together.
struct warp_producer {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* cells;
  std::uint32_t first, count;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = context.rank(); i < count; i += context.size())
      context.spawn(warp_mark{cells, first + i});
  }
};
/// Starts nothing before so many of its kind have begun.
struct late_producer {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t *cells, *begun;
  std::uint32_t first, count, all;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0) {
      add_one(begun);
      simt::atomic_ref<std::uint32_t> word(*begun);
      simt::wait_until([&] { return word.load(simt::relaxed) == all; }, simt::forever, nullptr,
                       "the others");
    }
    context.sync();
    for (std::uint32_t i = context.rank(); i < count; i += context.size())
      context.spawn(warp_mark{cells, first + i});
  }
};
/// Starts nothing before the kernel is to leave.
struct leaving_producer {
  std::uint32_t *cells, *begun;
  std::uint32_t first, count;
  GROSR_DEVICE void operator()(auto& context) const {
    simt::atomic_ref<std::uint32_t, simt::scope::system>(*begun).store(1, simt::relaxed);
    simt::wait_until([&] { return context.yield_to_higher(); }, simt::forever, nullptr,
                     "the kernel's end");
    for (std::uint32_t i = first; i < first + count; ++i) context.spawn(warp_mark{cells, i});
  }
};
/// A task of 64 bytes of a warp.
struct large_warp_mark {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* cells;
  std::uint32_t index;
  std::uint32_t check[13];
  GROSR_DEVICE int operator()(auto&) const {
    for (std::uint32_t k = 0; k < 13; ++k)
      if (check[k] != index * 31 + k) return -1;
    add_one(cells + index);
    return 0;
  }
};
struct large_producer {
  std::uint32_t* cells;
  std::uint32_t first, count;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = first; i < first + count; ++i) {
      large_warp_mark m{cells, i, {}};
      for (std::uint32_t k = 0; k < 13; ++k) m.check[k] = i * 31 + k;
      context.spawn(m, static_cast<priority>(i % priority_levels));
    }
  }
};

using full_runtime = runtime<producer, warp_producer, late_producer, leaving_producer,
                             large_producer, warp_mark, large_warp_mark, block_mark>;

template <class Runtime = full_runtime>
runtime_options little(device d) {
  runtime_options o;
  o.sms = 1;
  o.blocks_per_sm = 1;
  o.slots = 64;
  o.staging_buffers = 8;
  o.ring_capacity = 64;
  o.deque_capacity = 16;
  o.overflow_limit = 16 << 10;
  o.memory_limit = least_memory<Runtime>(d, o);
  return o;
}

TEST_P(full_memory, loses_nothing_of_producers_on_every_worker) {
  full_runtime rt(where(), little(where()));
  const auto promises = static_cast<std::uint32_t>(scaled(64, 16));
  const auto each = static_cast<std::uint32_t>(scaled(1'000, 500));
  auto& cells = keep<std::uint32_t>(promises * each);
  for (std::uint32_t r = 0; r < promises; ++r) rt.submit(producer{cells.data(), r * each, each, 0});
  rt.wait_all();
  EXPECT_TRUE(all_are(cells, 32u));
  rt.stop();
  const runtime_stats s = rt.stats();
  EXPECT_EQ(s.rejected, 0u);
  EXPECT_EQ(s.failed, 0u);
  EXPECT_EQ(s.submitted, promises);
  EXPECT_EQ(s.spawned, promises * each);
  EXPECT_EQ(s.tasks, promises * (each + 1));
  EXPECT_GT(s.swapped, 0u);
  EXPECT_TRUE(rt.errors().empty());
}

TEST_P(full_memory, loses_nothing_of_lanes_that_start_tasks_together) {
  full_runtime rt(where(), little(where()));
  constexpr std::uint32_t promises = 8;
  const auto each = static_cast<std::uint32_t>(scaled(4'000, 500));
  auto& cells = keep<std::uint32_t>(promises * each);
  std::vector<warp_producer> all;
  for (std::uint32_t r = 0; r < promises; ++r) all.push_back({cells.data(), r * each, each});
  auto t = rt.submit(all);
  t.wait();
  EXPECT_FALSE(t.failed());
  rt.wait_all();
  EXPECT_TRUE(all_are(cells, 32u));
  EXPECT_EQ(rt.stats().rejected, 0u);
  EXPECT_GT(rt.stats().swapped, 0u);
}

TEST_P(full_memory, loses_nothing_of_large_tasks_of_every_level) {
  full_runtime rt(where(), little(where()));
  constexpr std::uint32_t promises = 8;
  const auto each = static_cast<std::uint32_t>(scaled(4'000, 500));
  auto& cells = keep<std::uint32_t>(promises * each);
  for (std::uint32_t r = 0; r < promises; ++r)
    rt.submit(large_producer{cells.data(), r * each, each});
  rt.wait_all();
  EXPECT_TRUE(all_are(cells, 32u));
  rt.stop();
  EXPECT_EQ(rt.stats().failed, 0u);
  EXPECT_EQ(rt.stats().rejected, 0u);
  EXPECT_GT(rt.stats().swapped, 0u);
}

TEST_P(full_memory, loses_nothing_of_tasks_of_blocks) {
  full_runtime rt(where(), little(where()));
  constexpr std::uint32_t promises = 8;
  const auto each = static_cast<std::uint32_t>(scaled(500, 150));
  auto& cells = keep<std::uint32_t>(promises * each);
  for (std::uint32_t r = 0; r < promises; ++r) rt.submit(producer{cells.data(), r * each, each, 1});
  rt.wait_all();
  EXPECT_TRUE(all_are(cells, run::block_threads));
  EXPECT_EQ(rt.stats().rejected, 0u);
  EXPECT_GT(rt.stats().swapped, 0u);
}

// With nowhere to go at all: every worker waits for room, and nobody can make some.
TEST_P(full_memory, says_what_it_could_not_place) {
  runtime_options o = little(where());
  o.swap_limit = 0;
  o.watchdog = std::chrono::milliseconds(0);
  full_runtime rt(where(), o);
  const std::uint32_t promises = rt.stats().workers;
  const auto each = static_cast<std::uint32_t>(scaled(2'000, 600));
  auto& cells = keep<std::uint32_t>(std::size_t{promises} * each);
  auto& begun = keep<std::uint32_t>(1);
  std::vector<ticket> all;
  for (std::uint32_t r = 0; r < promises; ++r)
    all.push_back(rt.submit(late_producer{cells.data(), begun.data(), r * each, each, promises}));
  unsigned failed = 0;
  for (ticket& t : all) {
    t.wait();
    failed += t.failed() ? 1 : 0;
  }
  EXPECT_GT(failed, 0u);
  const error e = error_of([&] { rt.wait_all(); });
  EXPECT_EQ(e.code(), errc::out_of_memory);
  const runtime_stats s = rt.stats();
  EXPECT_GT(s.rejected, 0u);
  EXPECT_NE(std::string(e.what()).find(std::to_string(s.rejected) + " tasks"), std::string::npos)
      << e.what();
  std::uint64_t ran = 0;
  for (std::uint32_t c : contents(cells)) ran += c / 32;
  EXPECT_EQ(ran + s.rejected, std::uint64_t{promises} * each);
  ASSERT_FALSE(rt.errors().empty());
  EXPECT_EQ(rt.errors()[0].code, -ENOSPC);
  EXPECT_NE(rt.errors()[0].type.find("warp_mark"), std::string::npos);
  // It was said, and what fits still runs.
  auto again = rt.submit(producer{cells.data(), 0, 10, 0});
  rt.wait_all();
  EXPECT_FALSE(again.failed());
  rt.stop();
  EXPECT_GE(rt.stats().failed, failed);
}

// One worker waits, the others rest: block tasks need all of a block.
TEST_P(full_memory, says_so_of_block_tasks_too) {
  runtime_options o = little(where());
  o.swap_limit = 0;
  o.watchdog = std::chrono::milliseconds(0);
  full_runtime rt(where(), o);
  constexpr std::uint32_t count = 1'000;
  auto& cells = keep<std::uint32_t>(count);
  auto t = rt.submit(producer{cells.data(), 0, count, 1});
  t.wait();
  EXPECT_TRUE(t.failed());
  EXPECT_EQ(error_of([&] { rt.stop(); }).code(), errc::out_of_memory);
  std::uint64_t ran = 0;
  for (std::uint32_t c : contents(cells)) ran += c / run::block_threads;
  EXPECT_EQ(ran + rt.stats().rejected, count);
}

TEST_P(full_memory, lets_the_kernel_leave_and_come_back) {
  runtime_options o = little(where());
  o.swap_limit = 1024;  // what it sends while it leaves has no limit
  full_runtime rt(where(), o);
  // One worker has no task: it sees that the kernel is to leave, and tells the others.
  constexpr std::uint32_t rounds = 4, producers = run::warps_per_block - 1;
  const auto each = static_cast<std::uint32_t>(scaled(1'000, 500));
  auto& cells = keep<std::uint32_t>(rounds * producers * each);
  auto& begun = keep<std::uint32_t>(rounds * producers, simt::space::pinned);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint32_t first = round * producers, end = first + producers;
    for (std::uint32_t i = first; i < end; ++i)
      rt.submit(leaving_producer{cells.data(), &begun[i], i * each, each});
    for (std::uint32_t i = first; i < end; ++i)
      while (simt::atomic_ref<std::uint32_t, simt::scope::system>(begun[i]).load(simt::relaxed) ==
             0)
        std::this_thread::yield();
    rt.park();
  }
  rt.wait_all();
  EXPECT_TRUE(all_are(cells, 32u));
  EXPECT_EQ(rt.stats().rejected, 0u);
  EXPECT_GT(rt.stats().swapped * sizeof(warp_mark), o.swap_limit);
}

struct sums {
  using result = std::uint32_t;
  std::uint32_t of[2];
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(of[0] + of[1]);
    return 0;
  }
};
/// A binary tree of warps: one thread of each joins and forks.
struct warp_call {
  using result = std::uint32_t;
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t depth;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    if (depth == 0) return context.give(1u);
    auto& next = context.join(sums{});
    context.fork(warp_call{depth - 1}, &next.of[0]);
    context.fork(warp_call{depth - 1}, &next.of[1]);
  }
};
/// A chain of rounds, each of which forks more than there is room for.
struct zero {
  using result = std::uint32_t;
  std::uint32_t rest;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(rest);
    return 0;
  }
};
template <grosr::width Width>
struct wide_leaf {
  using result = void;
  static constexpr grosr::width width = Width;
  std::uint32_t* cells;
  std::uint32_t index;
  GROSR_DEVICE void operator()(auto&) const { add_one(cells + index); }
};
template <grosr::width Width>
struct wide_join {
  using result = std::uint32_t;
  std::uint32_t* cells;
  std::uint32_t first, count;
  GROSR_DEVICE void operator()(auto& context) const {
    context.join(zero{count});
    for (std::uint32_t i = 0; i < count; ++i) context.fork(wide_leaf<Width>{cells, first + i});
  }
};
using join_warps = wide_join<grosr::width::warp>;
using join_blocks = wide_join<grosr::width::block>;
using join_runtime = runtime<warp_call, sums, zero, wide_leaf<grosr::width::warp>,
                             wide_leaf<grosr::width::block>, join_warps, join_blocks>;

TEST_P(full_memory, loses_nothing_of_what_is_forked) {
  join_runtime rt(where(), little<join_runtime>(where()));
  const std::uint32_t depth = scaled_depth(11, 8);
  EXPECT_EQ(rt.fork(warp_call{depth}).get(), 1u << depth);
  rt.park();  // memcheck knows no memory that comes while a kernel runs
  constexpr std::uint32_t promises = 8;
  constexpr std::uint32_t each = 1'000;
  auto& cells = keep<std::uint32_t>(promises * each);
  std::vector<future<std::uint32_t>> all;
  for (std::uint32_t r = 0; r < promises; ++r)
    all.push_back(rt.fork(join_warps{cells.data(), r * each, each}));
  for (auto& f : all) EXPECT_EQ(f.get(), each);
  EXPECT_TRUE(all_are(cells, 32u));
  EXPECT_EQ(rt.stats().rejected, 0u);
  EXPECT_GT(rt.stats().swapped, 0u);
}

TEST_P(full_memory, is_an_error_of_the_join) {
  runtime_options o = little<join_runtime>(where());
  o.swap_limit = 0;
  join_runtime rt(where(), o);
  // While a warp of the block waits, no block task can run.
  constexpr std::uint32_t each = 2'000;
  auto& cells = keep<std::uint32_t>(each);
  EXPECT_EQ(rt.fork(join_blocks{cells.data(), 0, each}).status(), -ENOSPC);
  EXPECT_EQ(error_of([&] { rt.wait_all(); }).code(), errc::out_of_memory);
  EXPECT_EQ(rt.fork(warp_call{3}).get(), 8u);
}

}  // namespace
}  // namespace grosr::testing
