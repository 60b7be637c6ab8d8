// Tasks on other ranks: each that is sent runs once, whatever its width and size; calls bring
// results and errors; requests that reply and replies that request do not block each other; a world
// ends in time, whatever is under way.
#include <algorithm>
#include <chrono>

#include "net/small_world.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::net {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(messages);

/// A token that hops from rank to rank, leaves a mark of its own at each hop, and asks for what
/// tasks may ask for; at its last hop it may fail.
struct small_hop {
  array_ref<std::uint64_t> marks;
  std::uint32_t first, left;
  std::uint32_t more, fails;
  GROSR_DEVICE int operator()(auto& context) const {
    auto world = world_of(context);
    world.add(marks, (first + left) % marks.size(), 1 + more);
    if ((first + left) % 7 == 6) world.flush();
    if ((first + left) % 11 == 10) world.progress();
    if (left == 0) return fails != 0 ? -EDOM : 0;
    small_hop next = *this;
    --next.left;
    world.send((world.rank() + 1 + left % (world.size() > 1 ? world.size() - 1 : 1)) % world.size(),
               next);
    return 0;
  }
};

/// Goes to one other rank, as a task of a warp or of a block.
template <width W>
struct wide {
  static constexpr grosr::width width = W;
  array_ref<std::uint32_t> marks;
  std::uint32_t to;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    world.add(marks, context.rank(), 1u);
    if (to != world.rank() && context.rank() == 0) world.send(to, *this);
  }
};

using of_warp = wide<width::warp>;
using of_block = wide<width::block>;

struct pair {
  std::uint64_t first, second;
  std::uint32_t rank;
};

/// Brings a pair, after a while; fails for some.
struct ask {
  using result = pair;
  std::uint64_t x;
  GROSR_DEVICE int operator()(auto& context) const {
    if (x % 17 == 16) return -EDOM;
    context.give(pair{x * x, x + 1, world_of(context).rank()});
    return 0;
  }
};
struct check {
  using result = void;
  pair found;
  std::uint32_t x;
  std::uint16_t to, more;
  array_ref<std::uint32_t> good;
  GROSR_DEVICE void operator()(auto& context) const;
};
/// Calls a rank; then calls it so many times more, each time when it has answered.
struct client {
  using result = void;
  std::uint32_t x;
  std::uint16_t to, more;
  array_ref<std::uint32_t> good;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(check{{}, x, to, more, good});
    world_of(context).call(to, ask{x}, &next.found);
  }
};
GROSR_DEVICE void check::operator()(auto& context) const {
  auto world = world_of(context);
  const bool failed = x % 17 == 16;
  const bool ok = failed ? context.status() == -EDOM
                         : context.status() == 0 && found.first == std::uint64_t{x} * x &&
                               found.second == x + 1 && found.rank == to;
  if (ok) world.add(good, x, 1u);
  if (more != 0) context.spawn(client{x, to, static_cast<std::uint16_t>(more - 1), good});
}

/// A tree of calls over all ranks: each waits for two on others.
struct both {
  using result = std::uint64_t;
  std::uint64_t a, b;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(a + b);
    return 0;
  }
};
struct tree {
  using result = std::uint64_t;
  std::uint32_t n;
  GROSR_DEVICE void operator()(auto& context) const {
    if (n < 2) return context.give(std::uint64_t{n});
    auto world = world_of(context);
    auto& next = context.join(both{0, 0});
    world.call((world.rank() + 1) % world.size(), tree{n - 1}, &next.a);
    world.call((world.rank() + 2) % world.size(), tree{n - 2}, &next.b);
  }
};

/// Sends far more than links have room for, each way, in no order.
struct flood {
  array_ref<std::uint64_t> marks;
  std::uint32_t left;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    world.add(marks, world.rank(), 1u);
    if (left == 0) return;
    for (std::uint32_t i = 0; i < 3; ++i)
      world.send((world.rank() + i) % world.size(), flood{marks, left - 1});
  }
};

// One type of world for all tests: each takes nvcc a minute.
using tasks_world =
    world<small_hop, of_warp, of_block, client, check, callable<ask>, both, callable<tree>, flood>;

/// The smallest links that there are, and elements by messages, too.
world_options smallest() {
  world_options o;
  o.link_bytes = 8 * 1024;
  o.path = path::messages;
  return o;
}
template <class T>
std::vector<T> all_of(const array<T>& a) {
  std::vector<T> found(a.size());
  a.copy_to(found);
  return found;
}
/// Tokens of each rank, with hops.
void hop(tasks_world& w, array<std::uint64_t>& marks, std::uint32_t tokens, std::uint32_t hops) {
  for (std::uint32_t r = 0; r < w.size(); ++r) {
    std::vector<small_hop> all;
    for (std::uint32_t i = 0; i < tokens; ++i)
      all.push_back({marks.ref(), (r * tokens + i) * (hops + 1), hops, 2, 0});
    w.submit(r, all);
  }
}
void hop_everywhere(const device& d, std::uint32_t ranks, std::uint32_t tokens,
                    std::uint32_t hops) {
  tasks_world w(small_ranks(d, ranks), smallest());
  array<std::uint64_t> marks(w, ranks * tokens * (hops + 1));
  hop(w, marks, tokens, hops);
  finish(w);
  EXPECT_EQ(all_of(marks), std::vector<std::uint64_t>(marks.size(), 3));
}

TEST_P(messages, run_once_each) {
  for (std::uint32_t ranks : {1u, 2u, 5u})
    hop_everywhere(where(), ranks, static_cast<std::uint32_t>(testing::scaled(500, 50)), 12);
}

TEST(messages_schedules, run_each_task_once) {
  testing::for_few_seeds(1000, 7, [] { hop_everywhere(device(), 3, 12, 8); });
}

TEST_P(messages, run_where_they_come_and_say_what_failed) {
  tasks_world w(small_ranks(where(), 2), smallest());
  const auto n = static_cast<std::uint32_t>(where().is_cuda() ? 50'000 : 1500);
  array<std::uint64_t> marks(w, 2 * n);
  std::vector<small_hop> all;
  for (std::uint32_t i = 0; i < n; ++i) all.push_back({marks.ref(), 2 * i, 1, 2, 1});
  w.submit(0, all);
  finish(w);
  EXPECT_EQ(all_of(marks), std::vector<std::uint64_t>(marks.size(), 3));
  const runtime_stats there = w.scheduler_stats(1);
  EXPECT_EQ(there.failed, n);
  EXPECT_GT(there.inlined, 0u);
  ASSERT_FALSE(w.errors(1).empty());
  EXPECT_EQ(w.errors(1).front().code, -EDOM);
  EXPECT_EQ(w.scheduler_stats(0).failed, 0u);
}

TEST_P(messages, run_tasks_of_every_width) {
  world_options o;
  o.path = path::messages;
  tasks_world w(small_ranks(where(), 2), o);
  array<std::uint32_t> a(w, 256), b(w, 256);
  constexpr std::uint32_t n = 40;
  w.submit(0, std::vector<of_warp>(n, {a.ref(), 1}));
  w.submit(1, std::vector<of_block>(n, {b.ref(), 0}));
  finish(w);
  std::vector<std::uint32_t> in_a(256), in_b(256);
  a.copy_to(in_a);
  b.copy_to(in_b);
  for (std::uint32_t i = 0; i < 256; ++i) {
    EXPECT_EQ(in_a[i], i < 32 ? 2 * n : 0);
    EXPECT_EQ(in_b[i], i < run::block_threads ? 2 * n : 0);
  }
}

// ---- calls ----

/// Clients of each rank; each calls 1 + `more` times.
void call(tasks_world& w, array<std::uint32_t>& good, std::uint16_t more) {
  for (std::uint32_t r = 0; r < w.size(); ++r) {
    std::vector<client> all;
    for (std::uint32_t x = 0; x < good.size(); ++x)
      all.push_back({x, static_cast<std::uint16_t>((r + x) % w.size()), more, good.ref()});
    w.submit(r, all);
  }
}
void call_everybody(const device& d, std::uint32_t ranks, std::uint32_t n) {
  tasks_world w(small_ranks(d, ranks), smallest());
  array<std::uint32_t> good(w, n);
  call(w, good, 0);
  finish(w);
  EXPECT_EQ(all_of(good), std::vector<std::uint32_t>(n, ranks));
}

TEST_P(messages, bring_results_and_errors_back) {
  for (std::uint32_t ranks : {1u, 2u, 4u})
    call_everybody(where(), ranks, static_cast<std::uint32_t>(testing::scaled(2000, 200)));
}

TEST(messages_schedules, bring_results_and_errors_back) {
  testing::for_few_seeds(1000, 7, [] { call_everybody(device(), 3, 18); });
}

std::uint64_t fibonacci(std::uint32_t n) {
  std::uint64_t a = 0, b = 1;
  for (std::uint32_t i = 0; i < n; ++i) b += std::exchange(a, b);
  return a;
}

TEST_P(messages, call_while_they_are_called) {
  world_options o;
  o.link_bytes = 8 * 1024;
  tasks_world w(small_ranks(where(), 3), o);
  const std::uint32_t n = where().is_cuda() ? 20 : testing::scale() < 0.5 ? 9 : 14;
  auto result = w.fork(0, tree{n});
  EXPECT_EQ(result.get(), fibonacci(n));
  finish(w);
}

// Requests reply, replies request, and tasks send more than links have room for: in most schedules
// some find no room for requests, and in one of some ten for a reply.
TEST(messages_schedules, block_nobody) {
  testing::for_few_seeds(1000, 7, [] {
    tasks_world w(small_ranks(device(), 3), smallest());
    constexpr std::uint32_t n = testing::slowdown == 1 ? 120 : 20;
    array<std::uint32_t> good(w, n);
    array<std::uint64_t> marks(w, 3);
    call(w, good, 1);
    std::vector<future<std::uint64_t>> trees;
    for (std::uint32_t r = 0; r < 3; ++r) {
      w.submit(r, flood{marks.ref(), 3});
      trees.push_back(w.fork(r, tree{6}));
    }
    for (auto& t : trees) EXPECT_EQ(t.get(), fibonacci(6));
    finish(w);
    EXPECT_EQ(all_of(good), std::vector<std::uint32_t>(n, 3 * 2));
    const std::vector<std::uint64_t> found = all_of(marks);
    EXPECT_EQ(found[0] + found[1] + found[2], 3u * (1 + 3 + 9 + 27));
  });
}

// ---- the end of all work ----

// Long chains of messages, of which few are under way at a time: a wait that looks at ranks one by
// one, or at what was sent and received at different times, would miss them.
TEST(messages_schedules, end_before_a_wait_does) {
  testing::for_few_seeds(1000, 7, [] {
    tasks_world w(small_ranks(device(), 3), smallest());
    constexpr std::uint32_t hops = 9;
    array<std::uint64_t> marks(w, 3 * (hops + 1));
    w.submit(0, small_hop{marks.ref(), 0, hops, 2, 0});
    finish(w);
    std::vector<std::uint64_t> expected(marks.size());
    std::fill_n(expected.begin(), hops + 1, 3u);
    ASSERT_EQ(all_of(marks), expected);
    hop(w, marks, 1, hops);
    finish(w);
    for (std::uint64_t& e : expected) e += 3;
    ASSERT_EQ(all_of(marks), expected);
  });
}

// The queues of chunks that have come, of requests and of replies, have 16 places here.
TEST(messages_schedules, go_round_the_queues_of_a_rank) {
  testing::for_few_seeds(1000, 7, [] {
    tasks_world w(small_ranks(device(), 3), smallest());
    constexpr bool quick = testing::slowdown == 1;
    constexpr std::uint32_t hops = quick ? 30 : 3;
    constexpr std::uint16_t more = quick ? 9 : 0;
    array<std::uint64_t> marks(w, 3 * 4 * (hops + 1));
    array<std::uint32_t> good(w, 17);
    hop(w, marks, 4, hops);
    call(w, good, more);
    finish(w);
    EXPECT_EQ(all_of(marks), std::vector<std::uint64_t>(marks.size(), 3));
    EXPECT_EQ(all_of(good), std::vector<std::uint32_t>(17, 3 * (more + 1)));
    std::uint64_t words = 0;
    for (const rank_stats& r : w.stats()) words += r.words_sent;
    if (quick) {
      EXPECT_GT(words / chunk_words, 16u * 3 * link_classes);  // mostly three times that
    }
  });
}

// ---- full ----

void flood_everything(const device& d, std::uint32_t depth, std::size_t memory) {
  auto ranks = small_ranks(d, 3);
  for (rank_options& r : ranks) r.runtime.memory_limit = memory;
  tasks_world w(ranks, smallest());
  array<std::uint64_t> marks(w, 3);
  std::uint64_t expected = 0, level = 1;
  for (std::uint32_t i = 0; i <= depth; ++i, level *= 3) expected += level;
  for (std::uint32_t r = 0; r < 3; ++r) w.submit(r, flood{marks.ref(), depth});
  finish(w);
  const std::vector<std::uint64_t> found = all_of(marks);
  EXPECT_EQ(found[0] + found[1] + found[2], 3 * expected);
}

TEST_P(messages, are_not_lost_when_links_are_full) {
  flood_everything(where(), where().is_cuda() ? 12 : testing::scale() < 0.5 ? 5 : 8, 16 << 20);
}

TEST_P(messages, are_not_lost_when_task_memory_is_full) {
  flood_everything(where(),
                   where().is_cuda()        ? 11
                   : testing::scale() < 0.5 ? 5
                                            : 8,
                   where().is_cuda() ? 6 << 20 : 4 << 20);
}

TEST_P(messages, to_ranks_that_do_not_exist_are_named) {
  tasks_world w(small_ranks(where(), 2));
  array<std::uint32_t> good(w, 1);
  w.submit(0, client{3, 9, 0, good.ref()});
  try {
    w.wait_all();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_STREQ(e.what(),
                 "world: 1 operations were refused; rank 0 asked for a send or call to rank 9, and "
                 "there are 2 ranks");
  }
  EXPECT_THROW(w.submit(2, client{}), error);
}

TEST_P(messages, come_after_the_kernels_left_and_came_back) {
  world_options o;
  o.path = path::messages;
  tasks_world w(small_ranks(where(), 2), o);
  std::uint64_t sum = 0;
  for (int i = 0; i < 3; ++i) {
    array<std::uint64_t> marks(w, 2);  // for that they leave
    w.submit(0, small_hop{marks.ref(), 0, 9, 0, 0});
    finish(w);
    for (std::uint64_t mark : all_of(marks)) sum += mark;
  }
  EXPECT_EQ(sum, 30u);
}

// ---- worlds end ----

/// A world ends with so much under way that never comes to an end. Tasks that wait for room do not
/// keep it, and what they did until then can be read.
template <class Task>
void stop_under_way(const device& d, std::uint32_t n, const Task& task) {
  tasks_world w(small_ranks(d, 3), smallest());
  array<std::uint64_t> marks(w, 3);
  array<std::uint32_t> good(w, 32);
  Task endless = task;
  if constexpr (std::is_same_v<Task, client>)
    endless.good = good.ref();
  else
    endless.marks = marks.ref();
  for (std::uint32_t r = 0; r < 3; ++r) w.submit(r, std::vector<Task>(n, endless));
  const auto began = std::chrono::steady_clock::now();
  const error e = testing::error_of([&] { w.stop(std::chrono::milliseconds(20)); });
  EXPECT_EQ(e.code(), errc::timed_out) << e.what();
  EXPECT_NE(std::string(e.what()).find("words of messages not received"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  w.stop();
  EXPECT_EQ(testing::error_of([&] { w.submit(0, endless); }).code(), errc::stopped);
  static_cast<void>(all_of(marks));
}
void stop_all_kinds(const device& d) {
  constexpr std::uint32_t for_ever = ~0u;
  stop_under_way(d, 100, small_hop{{}, 0, for_ever, 0, 0});
  stop_under_way(d, 30, flood{{}, for_ever});
  stop_under_way(d, 100, client{3, 1, 0xffff, {}});
}

TEST_P(messages, that_never_end_are_dropped_when_their_world_stops) { stop_all_kinds(where()); }

TEST(messages_schedules, are_dropped_when_worlds_stop) {
  testing::for_few_seeds(1000, 7, [] { stop_all_kinds(device()); });
}

TEST_P(messages, that_never_end_are_dropped_when_an_array_ends) {
  if (testing::scale() < 1) GTEST_SKIP() << "takes ten seconds";
  tasks_world w(small_ranks(where(), 3), smallest());
  const auto began = std::chrono::steady_clock::now();
  {
    array<std::uint64_t> marks(w, 3);
    for (std::uint32_t r = 0; r < 3; ++r) w.submit(r, flood{marks.ref(), ~0u});
  }
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::seconds(9));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(40));
  EXPECT_EQ(testing::error_of([&] { w.submit(0, flood{{}, 0}); }).code(), errc::stopped);
}

TEST_P(messages, that_end_are_received_before_their_world_stops) {
  tasks_world w(small_ranks(where(), 3));
  array<std::uint64_t> marks(w, 3);
  w.submit(0, small_hop{marks.ref(), 0, 60, 0, 0});
  w.stop();
  const std::vector<std::uint64_t> found = all_of(marks);
  EXPECT_EQ(found[0] + found[1] + found[2], 61u);
}

TEST(worlds, refuse_what_they_cannot_be) {
  using w = tasks_world;
  EXPECT_THROW(w({}), error);
  EXPECT_THROW(w({{.where = device("host:0")}}, {.link_bytes = 1000}), error);
  EXPECT_THROW(w(std::vector<rank_options>(1025, {.where = device("host:0")})), error);
}

}  // namespace
}  // namespace grosr::net
