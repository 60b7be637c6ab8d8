// What several graphs get of one device by each policy, simulated: time is held, and each run takes
// what its node says.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <utility>
#include <vector>

#include "flow/scheduling.hpp"

namespace grosr::flow {
namespace {

constexpr std::int64_t us = 1000;

struct simulated_graph {
  int priority;
  unsigned columns = 6, depth = 6;  ///< chains of nodes, in each of which a block goes round
  std::int64_t run = 50 * us;       ///< of each node
  std::int64_t first_column_run = 50 * us;
  unsigned comes_after = 0;  ///< so many nodes have run
};

/// What became of a graph.
struct outcome {
  double runs = 0, runs_of_first_column = 0;
  double longest_wait = 0;
};

/// A device that runs one node after the other, in the order in which they were put there. As in an
/// executor, the next node of a chain is queued when the one before it has been put there.
class simulation {
 public:
  simulation(scheduling_policy& p, std::vector<simulated_graph> graphs, unsigned depth = 16)
      : policy_(p), graphs_(std::move(graphs)), of_(graphs_.size()), device_{0, depth} {
    for (const simulated_graph& g : graphs_) {
      first_.push_back(nodes_.size());
      nodes_.resize(nodes_.size() + g.columns * g.depth);
    }
  }

  std::vector<outcome> run(unsigned nodes, unsigned warmup) {
    for (unsigned i = 0; i < nodes + warmup; ++i) {
      if (i == warmup) std::fill(of_.begin(), of_.end(), outcome{});
      for (std::size_t g = 0; g < graphs_.size(); ++g)
        for (unsigned c = 0; c < graphs_[g].columns && graphs_[g].comes_after == i; ++c)
          enqueue(g, first_[g] + c * graphs_[g].depth);
      start_what_can();
      end_one();
    }
    for (std::size_t i = 0; i < queue_.size(); ++i) has_waited(names_[i].first, queue_[i].since);
    return of_;
  }

 private:
  struct node {
    double mean_wait = 0, mean_run = 0;
  };
  struct under_way {
    std::size_t node;
    std::int64_t began, takes;
  };

  void enqueue(std::size_t g, std::size_t node) {
    queued_node q{};
    q.since = now_;
    q.mean_wait = nodes_[node].mean_wait;
    q.mean_run = nodes_[node].mean_run;
    q.priority = graphs_[g].priority;
    q.units = 0b10;
    q.graph = &graphs_[g];
    queue_.push_back(q);
    names_.push_back({g, node});
  }

  static void average(double& mean, std::int64_t last) {
    mean = mean == 0 ? static_cast<double>(last) : mean + (static_cast<double>(last) - mean) / 8;
  }

  void has_waited(std::size_t g, std::int64_t since) {
    const auto waited = static_cast<double>(now_ - since);
    of_[g].longest_wait = std::max(of_[g].longest_wait, waited);
  }

  void start_what_can() {
    while (!queue_.empty()) {
      const std::vector<unit_load> units{{0, 1}, device_};
      struct : input_bytes {
        std::span<const std::size_t> of(std::size_t) override { return {}; }
      } none;
      const auto c = policy_.choose(queue_, units, now_, none);
      if (!c) return;
      const auto [g, n] = names_[c->node];
      has_waited(g, queue_[c->node].since);
      average(nodes_[n].mean_wait, now_ - queue_[c->node].since);
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(c->node));
      names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(c->node));
      const simulated_graph& of = graphs_[g];
      const std::size_t in_graph = n - first_[g], column = in_graph / of.depth;
      of_[g].runs += 1;
      if (column == 0) of_[g].runs_of_first_column += 1;
      ++device_.running;
      under_way_.push_back({n, now_, column == 0 ? of.first_column_run : of.run});
      enqueue(g, first_[g] + column * of.depth + (in_graph + 1) % of.depth);
    }
  }

  void end_one() {
    const under_way r = under_way_.front();
    under_way_.pop_front();
    now_ += r.takes;
    average(nodes_[r.node].mean_run, now_ - r.began);
    --device_.running;
  }

  scheduling_policy& policy_;
  const std::vector<simulated_graph> graphs_;
  std::vector<outcome> of_;
  unit_load device_;
  std::int64_t now_ = 0;
  std::vector<std::size_t> first_;
  std::vector<node> nodes_;
  std::vector<queued_node> queue_;
  std::vector<std::pair<std::size_t, std::size_t>> names_;  // of a queued node: graph and node
  std::deque<under_way> under_way_;
};

/// How well a line through rates by priority tells them: 1 where it is one.
double r2(const std::vector<simulated_graph>& graphs, const std::vector<outcome>& got) {
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  const auto n = static_cast<double>(graphs.size());
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const double p = graphs[i].priority, r = got[i].runs;
    x += p, y += r, xx += p * p, xy += p * r, yy += r * r;
  }
  return (n * xy - x * y) * (n * xy - x * y) / ((n * xx - x * x) * (n * yy - y * y));
}

std::vector<simulated_graph> graphs_of(const std::vector<int>& priorities, unsigned columns) {
  std::vector<simulated_graph> all;
  for (const int p : priorities) all.push_back({.priority = p, .columns = columns});
  return all;
}

/// Each gets a part of all runs that is in proportion to its weight.
void expect_shares(const std::vector<outcome>& got, const std::vector<double>& weights) {
  double runs = 0, weight = 0;
  for (std::size_t i = 0; i < got.size(); ++i) runs += got[i].runs, weight += weights[i];
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i].runs / runs, weights[i] / weight, 0.01) << i;
}

TEST(policy_shares, are_in_proportion_to_priority) {
  for (const std::vector<int>& priorities : {std::vector{1, 2, 3, 4}, {1, 2, 4, 8}, {7, 1, 1, 3}})
    for (const unsigned columns : {1u, 6u, 36u})
      for (const unsigned depth : {1u, 16u}) {
        const auto p = make_priority();
        const auto graphs = graphs_of(priorities, columns);
        const auto got = simulation(*p, graphs, depth).run(5000, 1000);
        EXPECT_GE(r2(graphs, got), 0.98) << columns << " columns, depth " << depth;
        expect_shares(got, {priorities.begin(), priorities.end()});
      }
}

TEST(policy_shares, of_priorities_from_0_down_are_fractions) {
  const auto p = make_priority();
  expect_shares(simulation(*p, graphs_of({1, 0, -1, -2}, 6)).run(5000, 1000),
                {1, 1 / 2., 1 / 3., 1 / 4.});
  const auto q = make_priority();
  expect_shares(simulation(*q, graphs_of({0, 0, 0}, 6)).run(5000, 1000), {1, 1, 1});
}

TEST(policy_shares, of_fifo_and_first_available_are_equal) {
  for (const auto make : {make_fifo, make_first_available}) {
    const auto p = make();
    expect_shares(simulation(*p, graphs_of({1, 2, 3, 4}, 6)).run(5000, 1000), {1, 1, 1, 1});
  }
}

// Each of the 6 nodes of the last graph that are queued at a time runs once in 6 of its runs.
TEST(policy_shares, nobody_waits_for_ever) {
  const auto p = make_priority();
  auto graphs = graphs_of({INT_MAX, 100, 10, 1}, 6);
  graphs[3].first_column_run = 1000 * us;  // in a graph of short nodes, too
  const auto got = simulation(*p, graphs, 1).run(50'000, 0);
  const double weights = 100 + 100 + 10 + 1;
  EXPECT_GT(got[3].runs, 0.9 * 50'000 / weights);
  EXPECT_LT(got[3].longest_wait, 3 * 6 * weights * 60 * us);
  // Nor where what is more urgent is also shorter.
  const auto q = make_priority();
  graphs = graphs_of({3, INT_MIN}, 6);
  graphs[1].run = graphs[1].first_column_run = 5000 * us;
  EXPECT_GT(simulation(*q, graphs, 1).run(50'000, 0)[1].runs, 0.6 * 50'000 / 301);
}

TEST(policy_shares, short_runs_are_favoured_at_equal_priority) {
  const auto p = make_priority();
  auto graphs = graphs_of({1, 1}, 6);
  graphs[1].run = graphs[1].first_column_run = 500 * us;
  const auto got = simulation(*p, graphs, 1).run(5000, 1000);
  EXPECT_GT(got[0].runs, 1.2 * got[1].runs);
  EXPECT_LT(got[0].runs, 5 / 3. * got[1].runs);
  // Among nodes of a graph, too.
  const auto q = make_priority();
  graphs = graphs_of({1}, 6);
  graphs[0].first_column_run = 500 * us;
  const auto in_one = simulation(*q, graphs, 1).run(6000, 600);
  EXPECT_LT(in_one[0].runs_of_first_column, 0.9 * 6000 / 6);
}

TEST(policy_shares, who_comes_late_gets_no_more_than_its_share) {
  const auto p = make_priority();
  auto graphs = graphs_of({2, 2}, 6);
  graphs[1].comes_after = 2000;
  const auto got = simulation(*p, graphs).run(200, 2000);
  expect_shares(got, {1, 1});
}

}  // namespace
}  // namespace grosr::flow
