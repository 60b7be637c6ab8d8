// How old what comes out of a node is, under a clock that is held.
#include <gtest/gtest.h>

#include <vector>

#include "flow/functions.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

class latencies : public ::testing::Test {
 protected:
  latencies() : options_(on(device(), 0)) {
    options_.clock = [this] { return now_; };
  }

  auto takes(std::int64_t us) {
    return [this, us](in<word> a, out<word> b) {
      now_ += us * 1000;
      b[0] = a[0];
    };
  }
  static double mean_of(const graph& g, const std::string& node) {
    for (const node_stats& s : g.nodes())
      if (s.name == node) return s.latency.mean_us;
    return -1;
  }

  std::int64_t now_ = 1'000'000;
  executor_options options_;
  const block_template one_ = block_template::of<word>(1);
  const std::vector<port> through_ = {{"a", one_}, {"b", one_}};
};

TEST_F(latencies, are_from_push_to_end) {
  executor e(options_);
  graph g(e);
  const node first = g.host("first", takes(10), through_);
  const node last = g.host("last", takes(30), through_);
  g.connect(first["b"], last["a"]);
  const auto from = g.source<word>(first["a"]);
  const auto to = g.sink<word>(last["b"]);
  g.compile();
  from.push(numbers(1, 1));
  to.pull();
  from.push(numbers(1, 1));
  now_ += 100'000;  // before anything runs
  to.pull();
  now_ += 1'000'000;  // when all is over
  const auto all = g.nodes();
  EXPECT_EQ(all[0].latency.count, 2u);
  EXPECT_EQ(all[0].latency.mean_us, 60);
  EXPECT_EQ(all[1].latency.mean_us, 90);
  EXPECT_EQ(all[1].latency.sigma_us, 50);
  EXPECT_EQ(all[1].latency.max_us, 140);
  EXPECT_NEAR(all[1].latency.p50_us, 40, 0.7);
}

TEST_F(latencies, are_of_the_oldest_input) {
  executor e(options_);
  graph g(e);
  const node joined =
      g.host("joined", [](in<word>, in<word>, in<word>) {},
             {{"a", one_}, {"b", one_}, {.name = "c", .shape = one_, .sticky = true}});
  const auto a = g.source<word>(joined["a"]), b = g.source<word>(joined["b"]),
             c = g.source<word>(joined["c"]);
  g.compile();
  c.push(numbers(1, 1));  // stays, and does not count
  now_ += 50'000;
  b.push(numbers(1, 1));
  now_ += 20'000;
  a.push(numbers(1, 1));
  g.wait();
  EXPECT_EQ(mean_of(g, "joined"), 20);
}

// What goes round is as old as the graph; what it meets tells how old a result is.
TEST_F(latencies, do_not_grow_on_a_cycle) {
  executor e(options_);
  graph g(e);
  const node sum = g.host("sum",
                          [this](in<word> a, in<word> before, out<word> b) {
                            now_ += 5'000;
                            b[0] = a[0] + before[0];
                          },
                          {{"a", one_}, {"before", one_}, {"b", one_}});
  const datablock zero = e.memory().make(one_);
  zero.write<word>()[0] = 0;
  g.connect(sum["b"], sum["before"], zero);
  const auto from = g.source<word>(sum["a"]);
  const auto to = g.sink<word>(sum["b"]);
  g.compile();
  for (int i = 0; i < 10; ++i) {
    from.push(numbers(1, 1));
    to.pull();
    now_ += 1'000'000;
  }
  EXPECT_EQ(g.nodes()[0].latency.count, 10u);
  EXPECT_EQ(g.nodes()[0].latency.max_us, 5);
}

// Without a source, since the node before it began.
TEST_F(latencies, begin_with_a_node_that_takes_nothing) {
  executor e(options_);
  graph g(e);
  const node made = g.host("made",
                           [this](out<word> b) {
                             now_ += 3'000;
                             b[0] = 4;
                           },
                           {{"b", one_}});
  const node last = g.host("last", takes(10), through_);
  g.connect(made["b"], last["a"]);
  const auto to = g.sink<word>(last["b"]);
  g.compile();
  to.pull();
  EXPECT_GE(mean_of(g, "last"), 13);
}

TEST_F(latencies, leave_out_runs_that_fail) {
  executor e(options_);
  graph g(e, {.errors = on_error::go_on});
  const node odd = g.host(
      "odd",
      [](in<word> a, out<word> b) {
        if (a[0] % 2 == 0) throw std::runtime_error("even");
        b[0] = a[0];
      },
      through_);
  const auto from = g.source<word>(odd["a"]);
  const auto to = g.sink<word>(odd["b"]);
  g.compile();
  for (word i = 0; i < 4; ++i) {
    from.push(numbers(i, 1));
    if (i % 2 == 1) to.pull();
  }
  g.wait();
  EXPECT_EQ(g.nodes()[0].latency.count, 2u);
  EXPECT_EQ(g.nodes()[0].runs, 4u);
}

}  // namespace
}  // namespace grosr::flow
