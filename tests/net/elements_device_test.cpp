// Elements of distributed arrays: each change arrives once, whatever the path, the number of ranks,
// and how the lanes that ask have diverged.
#include <algorithm>
#include <numeric>

#include "net/small_world.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::net {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(elements);

/// Adds to elements all over, from lanes that have different numbers of them to add.
struct scatter {
  array_ref<std::uint64_t> sums;
  std::uint32_t first, count;
  std::uint64_t within;  ///< elements, the first ones
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    std::uint64_t x = first * 0x9e3779b97f4a7c15u + 1;
    const std::uint32_t mine = count / 2 + first % (count / 2 + 1);
    for (std::uint32_t i = 0; i < mine; ++i) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      if (x >> 62 != 3) world.add(sums, (x >> 20) % within, x >> 60);
    }
  }
};
/// Looks at what an element holds.
struct seen {
  using result = void;
  std::uint64_t index, value;
  float half;
  array_ref<std::uint32_t> good;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    if (context.status() == 0 && value == 3 * index && half == 0.5f * static_cast<float>(index))
      world.add(good, index, 1u);
  }
};
struct look {
  using result = void;
  array_ref<std::uint64_t> numbers;
  array_ref<std::uint32_t> good;
  std::uint64_t index;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    auto& next = context.join(seen{index, 0, 0.5f * static_cast<float>(index), good});
    world.get(numbers, index, &next.value);
  }
};

struct combine {
  array_ref<std::uint32_t> a;
  array_ref<float> f;
  std::uint32_t i;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    world.max(a, 0, i);
    world.min(a, 1, i + 5);
    world.bit_or(a, 2, 1u << i % 32);
    world.bit_and(a, 3, ~(1u << i % 32));
    world.add(f, 0, 0.25f);
    if (i == 7) world.put(a, 4, 77u);
  }
};

struct astray {
  array_ref<std::uint32_t> a;
  std::uint64_t index;
  GROSR_DEVICE void operator()(auto& context) const { world_of(context).add(a, index, 1u); }
};

/// Comes from the rank that waits, and tells it so.
struct poke {
  array_ref<std::uint32_t> told;
  std::uint32_t back;
  GROSR_DEVICE void operator()(auto& context) const { world_of(context).add(told, back, 1u); }
};
/// Sends several messages and stays until they have had their effect.
struct stay {
  static constexpr std::uint32_t sent = 5;
  array_ref<std::uint32_t> told;
  std::uint32_t to;
  GROSR_DEVICE int operator()(auto& context) const {
    auto world = world_of(context);
    for (std::uint32_t i = 0; i < sent; ++i) world.send(to, poke{told, world.rank()});
    world.flush();
    const simt::atomic_ref<std::uint32_t> mine(world.local(told)[0]);
    const std::uint64_t until = simt::clock_ns() + 30'000'000'000u;
    const auto end =
        simt::wait_until([&] { return mine.load(simt::relaxed) == sent; }, until, nullptr, "pokes");
    return end == simt::wait_result::ready ? 0 : -ETIME;
  }
};

/// Goes to a rank and comes back.
struct echo {
  array_ref<std::uint32_t> told;
  std::uint32_t back;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    if (world.rank() == back)
      world.add(told, back, 1u);
    else
      world.send(back, *this);
  }
};
/// Goes on until as many echoes have come as lanes of its rank sent.
struct wait_for_echo {
  array_ref<std::uint32_t> told;
  std::uint32_t to, lanes;
  GROSR_DEVICE int operator()(auto& context) const {
    auto world = world_of(context);
    world.send(to, echo{told, world.rank()});
    const simt::atomic_ref<std::uint32_t> mine(world.local(told)[0]);
    const std::uint64_t until = simt::clock_ns() + 30'000'000'000u;
    GROSR_NO_UNROLL
    for (unsigned turn = 0; mine.load(simt::relaxed) != lanes; ++turn) {
      if (simt::clock_ns() > until) return -ETIME;
      world.progress();
      simt::pause(turn % 4, "an echo");
    }
    return 0;
  }
};

/// Of each worker of two ranks one, all at the same time: goes on until all have sent something.
struct meet_all {
  array_ref<std::uint32_t> told;
  std::uint32_t to, workers;
  GROSR_DEVICE int operator()(auto& context) const {
    auto world = world_of(context);
    world.add(told, to, 1u);
    const simt::atomic_ref<std::uint32_t> mine(world.local(told)[0]);
    const std::uint64_t until = simt::clock_ns() + 30'000'000'000u;
    GROSR_NO_UNROLL
    for (unsigned turn = 0; mine.load(simt::relaxed) != workers;)
      if (world.progress())
        turn = 0;
      else if (simt::clock_ns() > until)
        return -ETIME;
      else
        simt::pause(turn++, "the other workers");
    return 0;
  }
  static constexpr grosr::width width = grosr::width::warp;
};

// One type of world for all tests: each takes nvcc a minute.
using elements_world =
    world<scatter, look, seen, combine, astray, poke, stay, meet_all, echo, wait_for_echo>;

void scatter_on_host(const scatter& s, std::vector<std::uint64_t>& sums) {
  std::uint64_t x = s.first * 0x9e3779b97f4a7c15u + 1;
  const std::uint32_t mine = s.count / 2 + s.first % (s.count / 2 + 1);
  for (std::uint32_t i = 0; i < mine; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    if (x >> 62 != 3) sums[(x >> 20) % s.within] += x >> 60;
  }
}

void add_everywhere(const device& d, std::uint32_t ranks, distribution how, path by,
                    std::uint32_t tasks, std::uint32_t count) {
  world_options o;
  o.link_bytes = 8 * 1024;
  o.path = by;
  elements_world w(small_ranks(d, ranks), o);
  array<std::uint64_t> sums(w, 1000, how);
  std::vector<std::uint64_t> expected(1000), found(1000);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::vector<scatter> all;
    for (std::uint32_t i = 0; i < tasks; ++i)
      all.push_back({sums.ref(), r * tasks + i, count, 1000});
    for (const scatter& s : all) scatter_on_host(s, expected);
    w.submit(r, all);
  }
  finish(w);
  sums.copy_to(found);
  EXPECT_EQ(found, expected);
  std::uint64_t sent = 0;
  for (const rank_stats& s : w.stats()) {
    EXPECT_EQ(s.words_sent % 128, 0u);  // whole chunks
    sent += s.words_sent;
  }
  if (by == path::messages && ranks > 1)
    EXPECT_GT(sent, 0u);
  else
    EXPECT_EQ(sent, 0u);
}

TEST_P(elements, get_every_addition_once) {
  for (std::uint32_t ranks : {1u, 2u, 3u, 8u})
    for (auto how : {distribution::block, distribution::cyclic})
      for (auto by : {path::messages, path::automatic})
        add_everywhere(where(), ranks, how, by, 64,
                       static_cast<std::uint32_t>(testing::scaled(200, 20)));
}

TEST_P(elements, get_every_addition_once_from_many_tasks) {
  add_everywhere(where(), 4, distribution::block, path::messages, 512,
                 static_cast<std::uint32_t>(testing::scaled(where().is_cuda() ? 20'000 : 400, 50)));
}

TEST_P(elements, get_every_addition_once_on_many_ranks) {
  if (where().is_cuda()) GTEST_SKIP() << "a GPU has no room for so many resident kernels";
  const std::uint32_t ranks = testing::slowdown == 1 ? 64 : 8;
  add_everywhere(where(), ranks, distribution::cyclic, path::messages, 1, 50);
}

TEST(elements_schedules, get_every_addition_once) {
  testing::for_few_seeds(
      1000, 14, [] { add_everywhere(device(), 3, distribution::cyclic, path::messages, 33, 16); });
}

// What comes to one rank goes round its queue of arrivals, which has 16 places.
TEST(elements_schedules, get_every_addition_once_on_one_rank) {
  testing::for_few_seeds(1000, 7, [] {
    world_options o;
    o.link_bytes = 8 * 1024;
    o.path = path::messages;
    elements_world w(small_ranks(device(), 3), o);
    constexpr std::uint32_t n = 30, on_one = 10, tasks = testing::slowdown == 1 ? 24 : 3;
    array<std::uint64_t> sums(w, n);
    std::vector<std::uint64_t> expected(n), found(n);
    for (std::uint32_t r = 1; r < 3; ++r) {
      std::vector<scatter> all;
      for (std::uint32_t i = 0; i < tasks; ++i)
        all.push_back({sums.ref(), r * tasks + i, 200, on_one});
      for (const scatter& s : all) scatter_on_host(s, expected);
      w.submit(r, all);
    }
    finish(w);
    sums.copy_to(found);
    EXPECT_EQ(found, expected);
    std::uint64_t words = 0;
    for (const rank_stats& s : w.stats()) words += s.words_sent;
    if (testing::slowdown == 1) {
      EXPECT_GT(words / chunk_words, 16u * 2);  // mostly ten times 16
    }
  });
}

/// Tasks of both ranks that stay until all they sent has had its effect.
void change_meanwhile(const device& d) {
  world_options o;
  o.link_bytes = 8 * 1024;
  o.path = path::messages;
  elements_world w(small_ranks(d, 2), o);
  array<std::uint32_t> told(w, 2);
  for (std::uint32_t r = 0; r < 2; ++r) w.submit(r, stay{told.ref(), 1 - r});
  finish(w);
  for (std::uint32_t r = 0; r < 2; ++r) EXPECT_EQ(w.scheduler_stats(r).failed, 0u);
  std::vector<std::uint32_t> found(2);
  told.copy_to(found);
  EXPECT_EQ(found, std::vector<std::uint32_t>(2, stay::sent));
}

TEST_P(elements, are_changed_while_the_task_that_asked_goes_on) { change_meanwhile(where()); }

TEST(elements_schedules, are_changed_while_the_task_that_asked_goes_on) {
  testing::for_few_seeds(1000, 14, [] { change_meanwhile(device()); });
}

/// What a task waits for comes as a task, which its own worker may have received.
void wait_for_echoes(const device& d) {
  for (std::uint32_t lanes : {1u, 3u}) {
    world_options o;
    o.path = path::messages;
    elements_world w(small_ranks(d, 2), o);
    array<std::uint32_t> told(w, 2);
    w.submit(0, std::vector<wait_for_echo>(lanes, {told.ref(), 1, lanes}));
    finish(w);
    EXPECT_EQ(w.scheduler_stats(0).failed, 0u);
    std::vector<std::uint32_t> found(2);
    told.copy_to(found);
    EXPECT_EQ(found, (std::vector<std::uint32_t>{lanes, 0}));
  }
}

TEST_P(elements, are_changed_by_tasks_that_another_waits_for) { wait_for_echoes(where()); }

TEST(elements_schedules, are_changed_by_tasks_that_another_waits_for) {
  testing::for_few_seeds(200, 15, [] { wait_for_echoes(device()); });
}

TEST_P(elements, are_changed_while_every_worker_runs_a_long_task) {
  world_options o;
  o.path = path::messages;
  elements_world w(small_ranks(where(), 2), o);
  array<std::uint32_t> told(w, 2);
  const unsigned workers = w.scheduler_stats(0).workers;
  for (std::uint32_t r = 0; r < 2; ++r)
    w.submit(r, std::vector<meet_all>(workers, {told.ref(), 1 - r, workers * simt::warp_size}));
  finish(w);
  EXPECT_TRUE(w.errors(0).empty() && w.errors(1).empty());
}

TEST_P(elements, are_read_where_they_are) {
  for (auto by : {path::messages, path::automatic}) {
    world_options o;
    o.path = by;
    elements_world w(small_ranks(where(), 3), o);
    constexpr std::size_t n = 300;
    array<std::uint64_t> numbers(w, n, distribution::cyclic);
    array<std::uint32_t> good(w, n);
    std::vector<std::uint64_t> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = 3 * i;
    numbers.copy_from(values);
    for (std::uint32_t r = 0; r < 3; ++r) {
      std::vector<look> all;
      for (std::uint64_t i = 0; i < n; ++i) all.push_back({numbers.ref(), good.ref(), i});
      w.submit(r, all);
    }
    finish(w);
    std::vector<std::uint32_t> found(n);
    good.copy_to(found);
    EXPECT_EQ(std::count(found.begin(), found.end(), 3u), static_cast<long>(n));
  }
}

TEST_P(elements, are_combined_by_every_operation) {
  world_options o;
  o.path = path::messages;
  elements_world w(small_ranks(where(), 2), o);
  array<std::uint32_t> a(w, 10);
  array<float> f(w, 2);
  const std::vector<std::uint32_t> start{0, ~0u, 0, ~0u, 0};
  a.copy_from(start);
  std::vector<combine> all;
  for (std::uint32_t i = 0; i < 64; ++i) all.push_back({a.ref(), f.ref(), i});
  for (std::uint32_t r = 0; r < 2; ++r) w.submit(r, all);
  finish(w);
  std::vector<std::uint32_t> found(5);
  std::vector<float> sum(1);
  a.copy_to(found);
  f.copy_to(sum);
  EXPECT_EQ(found, (std::vector<std::uint32_t>{63, 5, ~0u, 0, 77}));
  EXPECT_EQ(sum[0], 32.0f);
}

// ---- what there is not ----

TEST_P(elements, that_do_not_exist_are_named) {
  elements_world w(small_ranks(where(), 2));
  array<std::uint32_t> a(w, 10);
  w.submit(1, astray{a.ref(), 10});
  try {
    w.wait_all();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::misuse);
    EXPECT_STREQ(e.what(),
                 "world: 1 operations were refused; rank 1 asked for a add of element 10 of array "
                 "0, which has no such element, or is gone");
  }
  w.submit(0, astray{a.ref(), 9});
  finish(w);  // said once
}

TEST_P(elements, of_an_array_that_is_gone_are_not_touched) {
  for (auto by : {path::messages, path::automatic}) {
    world_options o;
    o.path = by;
    elements_world w(small_ranks(where(), 2), o);
    array_ref<std::uint32_t> gone;
    {
      array<std::uint32_t> a(w, 10);
      gone = a.ref();
    }
    w.submit(0, astray{gone, 9});
    w.submit(0, astray{gone, 0});
    EXPECT_THROW(w.wait_all(), error);
  }
}

}  // namespace
}  // namespace grosr::net
