// What a block task starts next runs from the block's own memory (short_way_device_test.cpp); and
// what such a chain must leave to others.
#include <atomic>
#include <chrono>

#include "run/chains.hpp"
#include "run/least_memory.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(short_way_of_blocks);

using endless_block = endless<grosr::width::block>;

struct says_together {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* said;
  GROSR_DEVICE void operator()(auto& context) const {
    context.sync();
    if (context.rank() == 0) add_one(said);
  }
};

using block_runtime = basic_runtime<patient, endless_block, says, says_together>;

// One on every block, so that none is idle; a task for blocks is one of the others, too.
TEST_P(short_way_of_blocks, lets_others_have_their_turn) {
  for (const priority chains : {priority::low, priority::high}) {
    auto& over = keep<std::uint32_t>(1, simt::space::pinned);
    auto& said = keep<std::uint32_t>(2);
    block_runtime rt(where(), small_options());
    const std::uint32_t n = rt.stats().workers / run::warps_per_block;
    rt.submit(std::vector<endless_block>(n, endless_block{over.data()}), chains);
    EXPECT_FALSE(rt.wait_all_for(20ms));
    for (const priority p : {priority::low, priority::normal, priority::high, priority::urgent}) {
      EXPECT_TRUE(rt.submit(says{said.data()}, p).wait_for(20s))
          << "level " << static_cast<int>(p) << " beside " << static_cast<int>(chains);
      EXPECT_TRUE(rt.submit(says_together{said.data() + 1}, p).wait_for(20s))
          << "block task, level " << static_cast<int>(p) << " beside " << static_cast<int>(chains);
    }
    std::atomic_ref(over[0]).store(1);
    EXPECT_TRUE(rt.wait_all_for(20s));
    EXPECT_EQ(contents(said), (std::vector<std::uint32_t>{4, 4}));
  }
}

TEST_P(short_way_of_blocks, parks_and_goes_on) {
  auto& over = keep<std::uint32_t>(1, simt::space::pinned);
  block_runtime rt(where(), small_options());
  rt.submit(endless_block{over.data()});
  expect_parks(rt, over[0]);
}

TEST_P(short_way_of_blocks, is_no_lack_of_progress) {
  auto& over = keep<std::uint32_t>(1, simt::space::pinned);
  runtime_options o = small_options();
  o.watchdog = 500ms * slowdown;
  block_runtime rt(where(), o);
  rt.submit(endless_block{over.data()});
  expect_progress(rt, over[0]);
}

TEST_P(short_way_of_blocks, is_left_at_an_abort) {
  auto& over = keep<std::uint32_t>(1, simt::space::pinned);
  block_runtime rt(where(), small_options());
  rt.submit(endless_block{over.data()});
  expect_abort(rt);
}

/// A task for blocks, of which thread `t` starts the next one and, where `left` is a multiple of
/// `every`, thread `u` starts one that is the last: another lane or warp, or the same.
struct of_threads {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* ran;
  std::uint16_t left, every, t, u;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0) add_one(ran);
    if (left == 0) return;
    if (every != 0 && left % every == 0 && context.rank() == u)
      context.spawn(of_threads{ran, 0, 0, 0, 0});
    if (context.rank() != t) return;
    of_threads next = *this;
    --next.left;
    next.t = static_cast<std::uint16_t>((t * 7u + 13) % context.size());
    if (every == 0) next.t = t;
    context.spawn(next);
  }
};

// Which thread of a block starts the next task is all the same, and so is where others come from.
TEST_P(short_way_of_blocks, runs_what_any_warp_of_a_block_starts) {
  const auto n = static_cast<std::uint16_t>(scaled(300, 60));
  auto& ran = keep<std::uint32_t>(1);
  basic_runtime<patient, of_threads> rt(where(), small_options());
  std::uint32_t expected = 0;
  for (const std::uint16_t every : {0, 1, 2, 5, 9})
    for (const std::uint16_t t : {0, 33, 70, 127})
      for (const std::uint16_t u : {0, 34, 127}) {
        rt.submit(of_threads{ran.data(), n, every, t, u});
        rt.wait_all();
        expected += n + 1u + (every == 0 ? 0u : n / every);
        ASSERT_EQ(contents(ran)[0], expected) << every << " " << t << " " << u;
      }
}

TEST_P(short_way_of_blocks, runs_what_any_warp_of_a_block_starts_under_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are of the host backend";
  for_seeds(300, [&] {
    auto& ran = keep<std::uint32_t>(4);
    runtime_options o = small_options();
    o.sms = 2;
    basic_runtime<patient, of_threads> rt(where(), o);
    rt.submit(of_threads{ran.data(), 11, 0, 127, 0});
    rt.submit(of_threads{ran.data() + 1, 9, 3, 40, 100});
    rt.submit(of_threads{ran.data() + 2, 7, 1, 0, 64});
    rt.submit(of_threads{ran.data() + 3, 8, 2, 66, 66});
    rt.wait_all();
    EXPECT_EQ(contents(ran), (std::vector<std::uint32_t>{12, 13, 15, 13}));
  });
}

/// A packet's block task and those that it starts, of lanes and of blocks.
struct block_head {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* ran;
  std::uint16_t lanes, blocks, level, links;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    add_one(ran);
    const auto p = static_cast<priority>(level);
    for (unsigned i = 0; i < lanes; ++i) context.spawn(last<grosr::width::lane>{ran, 1}, p);
    for (unsigned i = 0; i < blocks; ++i) context.spawn(last<grosr::width::block>{ran, links}, p);
  }
};

// The same for the tasks of blocks: what follows is mostly what followed last.
TEST_P(short_way_of_blocks, follows_a_packet_for_blocks) {
  const auto n = static_cast<std::uint32_t>(scaled(where().is_cuda() ? 3'000 : 240, 60));
  auto& ran = keep<std::uint32_t>(1);
  basic_runtime<patient, block_head, last<grosr::width::lane>, last<grosr::width::block>> rt(
      where(), small_options());
  std::uint32_t expected = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t kind = i / 10 % 5;
    block_head h{ran.data(), 0, 0, static_cast<std::uint16_t>(i / 50 % 4),
                 static_cast<std::uint16_t>(i % 3)};
    if (kind == 1 || kind == 3) h.lanes = i % 10 == 7 ? 70 : 1;
    if (kind == 2 || kind == 3) h.blocks = 1;
    if (kind == 4) h.blocks = static_cast<std::uint16_t>(i % 9);
    rt.submit(h);
    rt.wait_all();
    expected += 1u + 2u * h.lanes + (1u + h.links) * h.blocks;
    ASSERT_EQ(contents(ran)[0], expected) << "turn " << i;
  }
}

using publishing_block = publishing<grosr::width::block>;
using failing_block = failing<grosr::width::block>;
using ends_runtime = basic_runtime<patient, publishing_block, failing_block>;

TEST_P(short_way_of_blocks, publishes_what_is_near) {
  const auto n = static_cast<std::uint32_t>(scaled(200, 50));
  auto& begun = keep<std::uint32_t>(1);
  ends_runtime rt(where(), small_options());
  rt.submit(publishing_block{begun.data(), n});
  rt.wait_all();
  EXPECT_EQ(contents(begun)[0], n + 1);
  for (const task_error& e : rt.errors()) ADD_FAILURE() << e.type << ": " << e.code;
}

TEST_P(short_way_of_blocks, tells_of_failures) {
  const auto n = static_cast<std::uint32_t>(scaled(500, 50));
  ends_runtime rt(where(), small_options());
  rt.submit(failing_block{n, 0});
  rt.wait_all();
  rt.park();
  EXPECT_EQ(rt.stats().failed, n / 10 + 1);
  EXPECT_EQ(rt.stats().tasks, n + 1);
  EXPECT_EQ(rt.stats().spawned, n);
  EXPECT_EQ(rt.errors().at(0).code, -EIO);
}

/// A link that starts `aside` tasks for warps, too, at every eighth: more than there is room for.
struct filling {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* cells;
  std::uint32_t left, aside;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0 && left != 0) context.spawn(filling{cells, left - 1, aside});
    if (left % 8 != 0) return;
    for (std::uint32_t i = context.rank(); i < aside; i += context.size())
      context.spawn(warp_mark{cells, left / 8}, priority::low);
  }
};

// What finds no room goes to the host and comes back; the chain goes on beside it.
TEST_P(short_way_of_blocks, goes_on_where_memory_is_full) {
  using full_runtime = basic_runtime<patient, filling, warp_mark>;
  runtime_options o;
  o.sms = o.blocks_per_sm = 1;
  o.slots = o.ring_capacity = 64;
  o.staging_buffers = 8;
  o.deque_capacity = 16;
  o.overflow_limit = 16 << 10;
  o.memory_limit = least_memory<full_runtime>(where(), o);
  full_runtime rt(where(), o);
  const std::uint32_t eighths = 4;
  const auto aside = static_cast<std::uint32_t>(scaled(4'000, 500));
  auto& cells = keep<std::uint32_t>(eighths + 1);
  rt.submit(filling{cells.data(), 8 * eighths, aside});
  ASSERT_TRUE(rt.wait_all_for(60s));
  EXPECT_TRUE(all_are(cells, 32 * aside));
  rt.park();
  const runtime_stats s = rt.stats();
  EXPECT_EQ(s.tasks, 8 * eighths + 1 + (eighths + 1) * aside);
  EXPECT_GT(s.swapped, 0u);
  EXPECT_EQ(s.rejected, 0u);
}

}  // namespace
}  // namespace grosr::testing
