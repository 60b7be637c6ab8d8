// What a task starts next runs from the worker's own memory: chains, of every width; and what such
// a chain must leave to others.
#include <atomic>
#include <chrono>
#include <thread>

#include "grosr/run/join.hpp"
#include "run/chains.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(short_way);

using lane_link = link<grosr::width::lane>;
using long_link = link<grosr::width::lane, 7>;
using warp_link = link<grosr::width::warp>;
using block_link = link<grosr::width::block>;

/// Links of two types that follow each other.
struct one;
struct other;
template <class Next>
struct alternating {
  std::uint32_t* ran;
  std::uint32_t left;
  GROSR_DEVICE void operator()(auto& context) const {
    add_one(ran);
    if (left != 0) context.spawn(Next{{ran, left - 1}});
  }
};
struct one : alternating<other> {};
struct other : alternating<one> {};

using chain_runtime =
    basic_runtime<patient, lane_link, long_link, warp_link, block_link, one, other>;

template <class Link>
void walk(chain_runtime& rt, std::uint32_t* ran, std::uint32_t left, std::uint32_t every,
          std::uint32_t aside) {
  rt.submit(Link::of(ran, left, every, aside));
}

TEST_P(short_way, runs_every_link) {
  const auto n = static_cast<std::uint32_t>(scaled(where().is_cuda() ? 20'000 : 3'000, 300));
  auto& ran = keep<std::uint32_t>(6);
  chain_runtime rt(where(), small_options());
  walk<lane_link>(rt, ran.data(), n, 0, 0);
  walk<long_link>(rt, ran.data() + 1, n, 0, 0);
  walk<warp_link>(rt, ran.data() + 2, n, 0, 0);
  walk<block_link>(rt, ran.data() + 3, n / 2, 0, 0);
  rt.submit(one{{ran.data() + 4, n}});
  rt.wait_all();
  EXPECT_EQ(contents(ran), (std::vector<std::uint32_t>{n + 1, n + 1, n + 1, n / 2 + 1, n + 1, 0}));
  rt.park();
  const runtime_stats s = rt.stats();
  EXPECT_EQ(s.tasks, 4 * (n + 1) + n / 2 + 1);
  EXPECT_EQ(s.spawned, s.tasks - 5);
  EXPECT_EQ(s.failed, 0u);
}

// More than there is room for beside it: one batch, and several.
TEST_P(short_way, leaves_what_does_not_fit_to_others) {
  const auto n = static_cast<std::uint32_t>(scaled(600, 60));
  auto& ran = keep<std::uint32_t>(32);
  chain_runtime rt(where(), small_options());
  std::uint32_t i = 0;
  std::vector<std::uint32_t> expected;
  for (const std::uint32_t every : {1u, 7u}) {
    for (const std::uint32_t aside : {1u, 31u, 32u, 70u}) {
      walk<lane_link>(rt, ran.data() + i++, n, every, aside);
      walk<long_link>(rt, ran.data() + i++, n, every, aside);
      walk<warp_link>(rt, ran.data() + i++, n, every, aside);
      walk<block_link>(rt, ran.data() + i++, n, every, aside);
      for (int k = 0; k < 4; ++k) expected.push_back(n + 1 + n / every * aside);
    }
  }
  rt.wait_all();
  EXPECT_EQ(contents(ran), expected);
}

TEST_P(short_way, runs_many_chains) {
  const auto n = static_cast<std::uint32_t>(scaled(where().is_cuda() ? 5'000 : 300, 40)),
             hops = 50u;
  auto& ran = keep<std::uint32_t>(3);
  chain_runtime rt(where(), small_options());
  rt.submit(std::vector<lane_link>(n, lane_link{ran.data(), hops, 0, 0, {hops}}));
  rt.submit(std::vector<warp_link>(n / 10, warp_link{ran.data() + 1, hops, 0, 0, {hops}}));
  rt.submit(std::vector<block_link>(n / 10, block_link{ran.data() + 2, hops, 0, 0, {hops}}));
  rt.wait_all();
  EXPECT_EQ(contents(ran),
            (std::vector<std::uint32_t>{n * (hops + 1), n / 10 * (hops + 1), n / 10 * (hops + 1)}));
}

TEST_P(short_way, runs_every_link_under_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are of the host backend";
  for_seeds(1000, [&] {
    auto& ran = keep<std::uint32_t>(5);
    runtime_options o = small_options();
    o.sms = 2;
    chain_runtime rt(where(), o);
    walk<lane_link>(rt, ran.data(), 40, 9, 40);
    walk<warp_link>(rt, ran.data() + 1, 20, 5, 3);
    rt.submit(one{{ran.data() + 2, 30}});
    walk<block_link>(rt, ran.data() + 3, 12, 0, 0);
    walk<block_link>(rt, ran.data() + 4, 9, 4, 5);
    rt.wait_all();
    EXPECT_EQ(contents(ran),
              (std::vector<std::uint32_t>{41 + 4 * 40, 21 + 4 * 3, 31, 13, 10 + 2 * 5}));
  });
}

using endless_lane = endless<grosr::width::lane>;
using endless_warp = endless<grosr::width::warp>;
using endless_runtime = basic_runtime<patient, endless_lane, endless_warp, says>;

// One on every worker, so that none is idle, and none has anything else.
TEST_P(short_way, lets_others_have_their_turn) {
  for (const priority chains : {priority::low, priority::high}) {
    auto& over = keep<std::uint32_t>(1, simt::space::pinned);
    auto& said = keep<std::uint32_t>(1);
    endless_runtime rt(where(), small_options());
    const std::uint32_t n = rt.stats().workers;
    rt.submit(std::vector<endless_warp>(n, endless_warp{over.data()}), chains);
    EXPECT_FALSE(rt.wait_all_for(20ms));
    for (const priority p : {priority::low, priority::normal, priority::high, priority::urgent})
      EXPECT_TRUE(rt.submit(says{said.data()}, p).wait_for(20s))
          << "level " << static_cast<int>(p) << " beside " << static_cast<int>(chains);
    std::atomic_ref(over[0]).store(1);
    EXPECT_TRUE(rt.wait_all_for(20s));
    EXPECT_EQ(contents(said)[0], 4u);
  }
}

TEST_P(short_way, parks_and_goes_on) {
  auto& over = keep<std::uint32_t>(1, simt::space::pinned);
  endless_runtime rt(where(), small_options());
  rt.submit(endless_lane{over.data()});
  rt.submit(endless_warp{over.data()});
  expect_parks(rt, over[0]);
}

TEST_P(short_way, is_no_lack_of_progress) {
  auto& over = keep<std::uint32_t>(1, simt::space::pinned);
  runtime_options o = small_options();
  o.watchdog = 500ms * slowdown;
  endless_runtime rt(where(), o);
  rt.submit(endless_lane{over.data()});
  rt.submit(endless_warp{over.data()});
  expect_progress(rt, over[0]);
}

TEST_P(short_way, is_left_at_an_abort) {
  auto& over = keep<std::uint32_t>(1, simt::space::pinned);
  endless_runtime rt(where(), small_options());
  rt.submit(endless_lane{over.data()});
  rt.submit(endless_warp{over.data()});
  expect_abort(rt);
}

TEST_P(short_way, publishes_what_is_near) {
  const auto n = static_cast<std::uint32_t>(scaled(200, 50));
  auto& begun = keep<std::uint32_t>(1);
  basic_runtime<patient, publishing<grosr::width::lane>> rt(where(), small_options());
  rt.submit(publishing<grosr::width::lane>{begun.data(), n});
  rt.wait_all();
  EXPECT_EQ(contents(begun)[0], n + 1);
  for (const task_error& e : rt.errors()) ADD_FAILURE() << e.type << ": " << e.code;
}

/// A packet's task that starts `lanes` lane tasks and `warps` warp tasks, each of which starts one
/// more.
struct head {
  std::uint32_t* ran;
  std::uint16_t lanes, warps, level;
  GROSR_DEVICE void operator()(auto& context) const {
    add_one(ran);
    const auto p = static_cast<priority>(level);
    for (unsigned i = 0; i < lanes; ++i) context.spawn(last<grosr::width::lane>{ran, 1}, p);
    for (unsigned i = 0; i < warps; ++i) context.spawn(last<grosr::width::warp>{ran, 1}, p);
  }
};
using head_runtime =
    basic_runtime<patient, head, last<grosr::width::lane>, last<grosr::width::warp>>;

// What a packet's task leaves is mostly what the last one left, and now and then something else.
TEST_P(short_way, follows_a_packet) {
  const auto n = static_cast<std::uint32_t>(scaled(where().is_cuda() ? 3'000 : 300, 60));
  auto& ran = keep<std::uint32_t>(1);
  head_runtime rt(where(), small_options());
  std::uint32_t expected = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t kind = i / 10 % 6;
    head h{ran.data(), 0, 0, static_cast<std::uint16_t>(i / 60 % 4)};
    if (kind == 1 || kind == 3) h.lanes = i % 10 == 7 ? 70 : 1;
    if (kind == 2 || kind == 3) h.warps = i % 10 == 7 ? 40 : 1;
    if (kind == 4) h.lanes = static_cast<std::uint16_t>(i % 40);
    rt.submit(h);
    rt.wait_all();
    expected += 1 + 2 * (h.lanes + h.warps);
    ASSERT_EQ(contents(ran)[0], expected) << "turn " << i;
  }
}

/// Starts a task that waits until the host opens its gate.
struct before_gate {
  gated next;
  GROSR_DEVICE void operator()(auto& context) const { context.spawn(next); }
};

// A ticket says that what was submitted has run, whatever follows on it.
TEST_P(short_way, holds_up_no_ticket) {
  auto& open = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  basic_runtime<patient, before_gate, gated> rt(where(), small_options());
  for (std::uint32_t i = 0; i < scaled(200, 20); ++i) {
    std::atomic_ref(open[0]).store(i % 5 == 4 ? 0 : 1);
    EXPECT_TRUE(rt.submit(before_gate{{open.data(), passed.data()}}).wait_for(10s)) << "turn " << i;
    std::atomic_ref(open[0]).store(1);
    rt.wait_all();
    ASSERT_EQ(contents(passed)[0], i + 1);
  }
}

TEST_P(short_way, tells_of_failures) {
  const auto n = static_cast<std::uint32_t>(scaled(500, 50));
  basic_runtime<patient, failing<grosr::width::lane>, failing<grosr::width::warp>> rt(
      where(), small_options());
  rt.submit(failing<grosr::width::lane>{n, 0});
  rt.submit(failing<grosr::width::warp>{n, 0});
  rt.wait_all();
  rt.park();
  EXPECT_EQ(rt.stats().failed, 2 * (n / 10 + 1));
  EXPECT_EQ(rt.stats().tasks, 2 * (n + 1));
  EXPECT_EQ(rt.errors().at(0).code, -EIO);
}

}  // namespace
}  // namespace grosr::testing
