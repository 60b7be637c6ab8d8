// Which node runs next, and where, by each policy, at times that are held.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "flow/scheduling.hpp"

namespace grosr::flow {
namespace {

constexpr std::int64_t us = 1000;

/// A queue, units, and which bytes lie where.
struct scene : input_bytes {
  std::vector<queued_node> queue;
  std::vector<unit_load> units = std::vector<unit_load>(3);
  std::map<std::size_t, std::vector<std::size_t>> bytes;  // by node

  queued_node& add(std::int64_t since, std::uint64_t on = 0b110) {
    queued_node n{};
    n.since = since;
    n.units = on;
    queue.push_back(n);
    return queue.back();
  }
  void lies(std::size_t node, std::vector<std::size_t> where) { bytes[node] = std::move(where); }
  std::span<const std::size_t> of(std::size_t node) override { return bytes[node]; }
  std::optional<choice> ask(scheduling_policy& p, std::int64_t now = 1000 * us) {
    return p.choose(queue, units, now, *this);
  }
};

TEST(policies, fifo_takes_the_first_that_can_run) {
  const auto p = make_fifo();
  scene s;
  s.add(0, 0b001);
  s.add(1);
  EXPECT_EQ(s.ask(*p)->node, 0u);
  EXPECT_EQ(s.ask(*p)->unit, 0u);
  s.units[0].running = 1;
  EXPECT_EQ(s.ask(*p)->node, 1u);
  s.units[1].running = 1;
  EXPECT_EQ(s.ask(*p)->unit, 2u);
  s.units[2].running = 1;
  EXPECT_FALSE(s.ask(*p));
}

TEST(policies, take_the_unit_with_the_least_to_do) {
  const auto p = make_fifo();
  scene s;
  s.add(0);
  s.units = {{0, 1}, {4, 16}, {3, 16}};
  EXPECT_EQ(s.ask(*p)->unit, 2u);
  s.units = {{0, 1}, {4, 16}, {3, 8}};  // of its depth
  EXPECT_EQ(s.ask(*p)->unit, 1u);
}

TEST(policies, first_available_lets_nobody_be_the_first_for_ever) {
  const auto p = make_first_available();
  scene s;
  for (int i = 0; i < 3; ++i) s.add(0);
  // Whoever ran comes again at once: each of those before it has run by then.
  std::vector<int> runs(3);
  for (int i = 0; i < 3; ++i) s.queue[i].priority = i;  // their names
  for (int i = 0; i < 9; ++i) {
    const auto c = s.ask(*p);
    const queued_node n = s.queue[c->node];
    ++runs[static_cast<std::size_t>(n.priority)];
    s.queue.erase(s.queue.begin() + static_cast<std::ptrdiff_t>(c->node));
    s.queue.push_back(n);
  }
  EXPECT_EQ(*std::min_element(runs.begin(), runs.end()), 3);
}

TEST(policies, priority_counts) {
  const auto p = make_priority();
  scene s;
  for (const int of : {1, 3, 2, 3}) s.add(0).priority = of;
  EXPECT_EQ(s.ask(*p)->node, 1u);  // the first of the highest
}

TEST(policies, short_runs_come_before_long_ones) {
  const auto p = make_priority();
  scene s;
  for (const double run : {500., 20., 100.}) s.add(0).mean_run = run * us;
  EXPECT_EQ(s.ask(*p)->node, 1u);
}

TEST(policies, who_waits_for_long_comes_at_last) {
  const auto p = make_priority();
  scene s;
  s.add(0).priority = 0;
  s.add(0).priority = 5;
  for (queued_node& n : s.queue) n.mean_wait = 10 * us;
  s.queue[1].since = 95 * us;
  EXPECT_EQ(s.ask(*p, 100 * us)->node, 1u);
  // It grows with time, without bound.
  s.queue[1].since = 995 * us;
  EXPECT_EQ(s.ask(*p, 1000 * us)->node, 0u);
}

TEST(policies, data_aware_runs_where_the_inputs_lie) {
  const auto p = make_data_aware();
  scene s;
  s.add(0);
  s.lies(0, {1'000'000, 10, 20});
  EXPECT_EQ(s.ask(*p, 0)->unit, 2u);
  // Busy: it waits, though another one is free, but not for ever.
  s.units[2].running = 1;
  EXPECT_FALSE(s.ask(*p, 100 * us));
  EXPECT_EQ(s.ask(*p, 1100 * us)->unit, 1u);
  // Longer where it runs for long.
  s.queue[0].mean_run = 1000 * us;
  EXPECT_FALSE(s.ask(*p, 1100 * us));
  EXPECT_EQ(s.ask(*p, 9000 * us)->unit, 1u);
}

TEST(policies, data_aware_moves_nothing_to_where_it_would_wait_too) {
  const auto p = make_data_aware();
  scene s;
  s.add(0);
  s.lies(0, {0, 0, 20});
  s.units = {{0, 1}, {9, 16}, {16, 16}};
  EXPECT_FALSE(s.ask(*p, 1100 * us));
  s.units[1].running = 8;
  EXPECT_EQ(s.ask(*p, 1100 * us)->unit, 1u);
  // Nor while a thread puts something where its inputs lie: that has room soon.
  s.units[2] = {15, 16, true};
  EXPECT_FALSE(s.ask(*p, 1100 * us));
}

TEST(policies, data_aware_waits_as_long_as_runs_of_others_say) {
  const auto p = make_data_aware();
  scene s;
  s.add(0);
  s.lies(0, {0, 0, 20});  // has not run yet
  s.add(1, 0b001).mean_run = 1e9;
  s.add(2).mean_run = 200 * us;
  for (const std::size_t i : {1u, 2u}) s.lies(i, {0, 0, 20});
  s.units = {{1, 1}, {0, 1}, {1, 1}};
  EXPECT_FALSE(s.ask(*p, 1500 * us));
  EXPECT_EQ(s.ask(*p, 1700 * us)->node, 0u);
}

TEST(policies, data_aware_takes_the_unit_with_less_to_do_of_those_with_as_much) {
  const auto p = make_data_aware();
  scene s;
  s.add(0);
  s.lies(0, {0, 20, 20});
  s.units = {{0, 1}, {4, 16}, {3, 16}};
  EXPECT_EQ(s.ask(*p)->unit, 2u);
  s.lies(0, {0, 0, 0});
  s.units[2].running = 5;
  EXPECT_EQ(s.ask(*p)->unit, 1u);
}

TEST(policies, data_aware_lets_others_by_meanwhile) {
  const auto p = make_data_aware();
  scene s;
  s.add(0);
  s.lies(0, {0, 0, 20});
  s.add(1);
  s.lies(1, {0, 0, 0});
  s.units[2].running = 1;
  EXPECT_EQ(s.ask(*p, 10 * us)->node, 1u);
  EXPECT_EQ(s.ask(*p, 10 * us)->unit, 1u);
}

}  // namespace
}  // namespace grosr::flow
