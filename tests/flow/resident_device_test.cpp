// Resident nodes: they do what kernels do, without being launched; they leave and come back; and
// what cannot stay is refused.
#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/simt/buffer.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using testing::scaled;

GROSR_DEVICE_SUITE(residents);

constexpr std::size_t length = 1000;
block_template array() { return block_template::of<word>(length); }
std::vector<port> through() { return {{"a", array()}, {"b", array()}}; }
std::vector<word> some(word first) { return numbers(first, length); }

std::string named(const char* what, unsigned i) { return what + std::to_string(i); }

/// A graph of a source, so many resident nodes that add 1, 2, ..., and a sink.
struct chain {
  chain(executor& e, unsigned nodes, const resident_options& o = {}, const graph_options& g = {})
      : of(e, g) {
    for (unsigned i = 0; i < nodes; ++i) {
      all.push_back(of.resident(named("n", i), plus{i + 1}, through(), o));
      if (i != 0) of.connect(all[i - 1]["b"], all[i]["a"]);
    }
    adds = nodes * (nodes + 1) / 2;
  }
  void expect_right(word first) {
    from->push(some(first));
    const std::vector<word> got = to->pull_elements();
    ASSERT_EQ(got, some(first + adds));
  }
  void compile() {
    from.emplace(of.source<word>(all.front()["a"]));
    to.emplace(of.sink<word>(all.back()["b"]));
    text = of.compile().text();
  }

  graph of;
  std::vector<node> all;
  std::optional<source<word>> from;
  std::optional<sink<word>> to;
  word adds = 0;
  std::string text;
};

TEST_P(residents, are_one_where_they_feed_each_other) {
  executor e({.devices = {where()}});
  chain c(e, 5);
  c.compile();
  EXPECT_NE(c.text.find("stretch n0 to n4 (5 nodes): stays on " + where().name()),
            std::string::npos)
      << c.text;
  EXPECT_NE(c.text.find("node n2 (resident)"), std::string::npos) << c.text;
  for (word round = 0; round < scaled(200, 20); ++round) c.expect_right(round);
  for (const node_stats& s : c.of.nodes()) EXPECT_EQ(s.runs, scaled(200, 20)) << s.name;
}

TEST_P(residents, run_without_threads_of_the_executor) {
  executor e({.devices = {where()}, .threads = 0});
  chain c(e, 3);
  c.compile();
  for (word round = 0; round < 20; ++round) c.expect_right(round);
}

TEST_P(residents, share_points_among_thread_blocks) {
  executor e({.devices = {where()}});
  chain c(e, 3, {.thread_blocks = 3});
  c.compile();
  for (word round = 0; round < scaled(100, 20); ++round) c.expect_right(round);
}

TEST_P(residents, come_back_when_they_have_left) {
  for (const unsigned thread_blocks : {1u, 3u}) {
    executor e({.devices = {where()}});
    chain c(e, 3, {.thread_blocks = thread_blocks, .idle_timeout = std::chrono::microseconds(500)});
    c.compile();
    for (word round = 0; round < scaled(40, 10); ++round) {
      c.expect_right(round);
      // As long as they stay, more or less: so that some leave while a block comes.
      std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 10)));
    }
  }
}

TEST_P(residents, leave_so_that_memory_can_be_freed) {
  executor e({.devices = {where()}});
  chain c(e, 3);
  c.compile();
  c.expect_right(1);
  { const simt::buffer<word> other(where(), simt::space::device, 1000); }  // waits for all kernels
  c.expect_right(2);
}

// Numbers of runs go round in the words that say where blocks are.
TEST_P(residents, go_on_after_many_runs) {
  executor e({.devices = {where()}, .threads = 0});
  graph g(e);
  const auto one = block_template::of<word>(1);
  const node n = g.resident("n", plus{1}, {{"a", one}, {"b", one}});
  const auto from = g.source<word>(n["a"]);
  const auto to = g.sink<word>(n["b"]);
  g.compile();
  const std::uint64_t runs = where().is_cuda() ? 70'000 : scaled(2'000, 100);
  for (word i = 0; i < runs; ++i) {
    from.push(std::vector<word>{i});
    ASSERT_EQ(to.pull_elements()[0], i + 1);
  }
}

TEST_P(residents, part_and_join) {
  executor e({.devices = {where()}});
  graph g(e);
  const node first = g.resident("first", plus{1}, through(), {.thread_blocks = 2});
  const node left = g.resident("left", times{3}, through());
  const node right = g.resident("right", plus{10}, through(), {.thread_blocks = 3});
  const node joined =
      g.resident("joined", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}});
  g.connect(first["b"], left["a"]);
  g.connect(first["b"], right["a"]);
  g.connect(left["b"], joined["a"]);
  g.connect(right["b"], joined["b"]);
  const auto from = g.source<word>(first["a"]);
  const auto seen = g.sink<word>(left["b"]), to = g.sink<word>(joined["c"]);
  g.compile();
  for (word round = 0; round < scaled(100, 20); ++round) {
    from.push(some(round));
    const auto l = seen.pull_elements(), j = to.pull_elements();
    for (word i = 0; i < length; ++i) {
      ASSERT_EQ(l[i], 3 * (i + round + 1));
      ASSERT_EQ(j[i], 3 * (i + round + 1) + i + round + 11);
    }
  }
}

TEST_P(residents, stand_between_other_nodes) {
  executor e({.devices = {where()}});
  graph g(e);
  const node kernel = g.kernel("kernel", times{2}, through());
  const node a = g.resident("a", plus{1}, through()), b = g.resident("b", plus{2}, through());
  const node again = g.kernel("again", times{3}, through());
  const node host = g.host(
      "host",
      [](in<word> x, out<word> y) {
        for (std::size_t i = 0; i < x.count; ++i) y[i] = x[i] - 1;
      },
      through());
  g.connect(kernel["b"], a["a"]);
  g.connect(a["b"], b["a"]);
  g.connect(b["b"], again["a"]);
  g.connect(again["b"], host["a"]);
  const auto from = g.source<word>(kernel["a"], {.capacity = 3});
  const auto to = g.sink<word>(host["b"], {.capacity = 3});
  g.compile();
  for (word round = 0; round < 30; ++round) {
    for (word k = 0; k < 3; ++k) from.push(some(round + k));
    for (word k = 0; k < 3; ++k) {
      const auto got = to.pull_elements();
      for (word i = 0; i < length; ++i) ASSERT_EQ(got[i], 3 * (2 * (i + round + k) + 3) - 1);
    }
  }
}

TEST_P(residents, leave_what_the_program_keeps) {
  executor e({.devices = {where()}});
  graph g(e);
  const node changed = g.resident("changed", add_in_place{5}, {{"a", array()}});
  const node more = g.resident("more", plus{1}, through());
  g.connect(changed["a"], more["a"]);
  const auto from = g.source<word>(changed["a"]);
  const auto to = g.sink<word>(more["b"]);
  g.compile();
  const datablock kept = from.make();
  {
    const auto w = kept.write<word>();
    std::iota(w.begin(), w.end(), 0u);
  }
  for (int round = 0; round < 3; ++round) {
    from.push(kept);
    ASSERT_EQ(to.pull_elements(), some(6));
  }
  EXPECT_EQ(kept.read<word>()[7], 7u);
}

TEST_P(residents, go_round) {
  executor e({.devices = {where()}});
  graph g(e);
  const node sum =
      g.resident("sum", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}});
  const datablock zero = e.memory().make(array());
  for (word& v : zero.write<word>()) v = 0;
  g.connect(sum["c"], sum["b"], zero);
  const auto from = g.source<word>(sum["a"]);
  const auto to = g.sink<word>(sum["c"]);
  g.compile();
  for (word round = 1; round <= 20; ++round) {
    from.push(std::vector<word>(length, 1));
    ASSERT_EQ(to.pull_elements(), std::vector<word>(length, round));
  }
}

TEST_P(residents, are_each_alone_where_nothing_is_to_be_one) {
  for (const graph_options& o :
       {graph_options{.errors = on_error::go_on}, graph_options{.stretches = false}}) {
    executor e({.devices = {where()}});
    chain c(e, 3, {}, o);
    c.compile();
    EXPECT_NE(c.text.find("stretch n1 (1 node): stays on"), std::string::npos) << c.text;
    for (word round = 0; round < 10; ++round) c.expect_right(round);
  }
}

TEST_P(residents, end_while_they_wait) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    executor e({.devices = {where()}});
    chain c(e, 3, {.idle_timeout = std::chrono::minutes(10)});
    c.compile();
    c.expect_right(1);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::minutes(5));
}

TEST_P(residents, of_two_graphs_stand_beside_each_other) {
  executor e({.devices = {where()}});
  chain one(e, 3), two(e, 2, {.thread_blocks = 2}, {.name = "two"});
  one.compile();
  two.compile();
  for (word round = 0; round < 20; ++round) {
    one.expect_right(round);
    two.expect_right(round);
  }
}

TEST_P(residents, are_refused_where_they_cannot_be) {
  executor e({.devices = {where()}});
  graph g(e);
  const auto refused = [&](const std::vector<port>& ports, const resident_options& o,
                           const std::string& part) {
    expect_error([&] { g.resident("n", plus{1}, ports, o); }, part);
  };
  refused(through(), {.thread_blocks = 0}, "resident node 'n': 0 thread blocks were asked for");
  const auto some_words = block_template::variable<word>(10);
  refused({{"a", some_words}, {"b", some_words}}, {},
          "port 'a' is records of unsigned int, up to 10");
  refused({{.name = "a", .shape = array(), .sticky = true}, {"b", array()}}, {},
          "port 'a' is sticky");
  refused({{.name = "a", .shape = array(), .deadline = std::chrono::seconds(1)}, {"b", array()}},
          {}, "port 'a' is one with a deadline");
  refused({{"a", array()}}, {}, "1 ports were named");
  refused(through(), {.idle_timeout = std::chrono::microseconds(0)}, "idle_timeout 0 us");
  refused(through(), {.idle_timeout = std::chrono::hours(2)}, "at most an hour");
  const node n = g.resident("n", plus{1}, through());
  expect_error([&] { g.also_kernel(n, plus{1}); }, "node 'n' is resident");
}

TEST_P(residents, that_change_what_others_read_are_refused) {
  executor e({.devices = {where()}});
  graph g(e);
  const node first = g.resident("first", plus{1}, through());
  const node changed = g.resident("changed", add_in_place{1}, {{"a", array()}});
  const node read = g.resident("read", plus{1}, through());
  g.connect(first["b"], changed["a"]);
  g.connect(first["b"], read["a"]);
  const auto from = g.source<word>(first["a"]);
  const auto to = g.sink<word>(changed["a"]), other = g.sink<word>(read["b"]);
  expect_error([&] { g.compile(); }, "resident node 'changed' changes in place what others read");
  expect_error([&] { g.compile(); }, "changes in place");  // nothing is left of the first time
}

TEST_P(residents, that_have_no_room_are_refused) {
  if (!where().is_cuda()) GTEST_SKIP() << "lanes of the host take turns";
  executor e({.devices = {where()}});
  chain c(e, 3, {.thread_blocks = 1000});
  expect_error([&] { c.compile(); }, "give them fewer thread blocks");
}

}  // namespace
}  // namespace grosr::flow
