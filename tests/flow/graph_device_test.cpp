// Graphs of functions on the host and on devices: what comes out is what plain calls would give,
// whatever is full, shared, late, or fails.
#include "grosr/flow/graph.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "flow/functions.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(flow_graphs);

struct wait_at_gate {
  word* gate;  // pinned
  GROSR_DEVICE void operator()(point, in<word> a, out<word> b) const {
    simt::wait_until(
        [&] { return simt::atomic_ref<word, simt::scope::system>(*gate).load(simt::acquire) != 0; },
        simt::forever, nullptr, "the gate");
    b[0] = a[0];
  }
};
struct transpose {
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> b) const {
    b(p.x, p.y) = a(p.y, p.x);
  }
};

const auto add_up = [](in<word> a, out<word> total) {
  total[0] = std::accumulate(a.begin(), a.end(), word{0});
};

constexpr std::size_t n = 300;
const block_template array() { return block_template::of<word>(n); }
const block_template one() { return block_template::of<word>(1); }
std::vector<word> numbers(word first, std::size_t count = n) {
  return tested::numbers(first, count);
}

TEST_P(flow_graphs, move_blocks_from_function_to_function) {
  for (const unsigned threads : {0u, 1u, 3u}) {
    executor e(on(where(), threads));
    graph g(e);
    const node scale = g.kernel("scale", times{3}, {{"a", array()}, {"b", array()}});
    const node again = g.kernel("again", times{5}, {{"a", array()}, {"b", array()}});
    const node sum = g.host("sum", add_up, {{"a", array()}, {"total", one()}});
    g.connect(scale["b"], again["a"]);
    g.connect(again["b"], sum["a"]);
    const auto from = g.source<word>(scale["a"]);
    const auto to = g.sink<word>(sum["total"]);
    g.compile();
    for (word i = 0; i < 20; ++i) {
      const auto all = numbers(i);
      from.push(all);
      EXPECT_EQ(to.pull_elements()[0], 15 * std::accumulate(all.begin(), all.end(), word{0}));
    }
    g.wait();
    const auto channels = g.channels();
    // Into the device, not between its functions, and out of it again.
    EXPECT_EQ(channels[2].copies.copies, 20u);
    EXPECT_EQ(channels[0].copies.copies, 0u);
    EXPECT_EQ(channels[0].copies.avoided, 20u);
    EXPECT_EQ(channels[1].copies.copies, 20u);
    EXPECT_EQ(channels[0].from, "scale.b");
    EXPECT_EQ(g.nodes()[2].runs, 20u);
  }
}

TEST_P(flow_graphs, know_rows_and_columns) {
  executor e(on(where()));
  graph g(e);
  const node turn =
      g.kernel("turn", transpose{},
               {{"a", block_template::of<word>(7, 5)}, {"b", block_template::of<word>(5, 7)}});
  const auto from = g.source<word>(turn["a"]);
  const auto to = g.sink<word>(turn["b"]);
  g.compile();
  from.push(numbers(0, 35));
  const auto got = to.pull_elements();
  for (word y = 0; y < 7; ++y)
    for (word x = 0; x < 5; ++x) ASSERT_EQ(got[y * 5 + x], x * 7 + y);
}

// One output feeds three: two that read, and one that changes what it gets.
TEST_P(flow_graphs, share_blocks_and_copy_what_is_changed) {
  for (const bool on_host : {false, true}) {
    executor e(on(where()));
    graph g(e);
    const node first = g.kernel("first", times{2}, {{"a", array()}, {"b", array()}});
    const node change = on_host ? g.host("change",
                                         [](inout<word> a) {
                                           for (word& x : a) x += 7;
                                         },
                                         {{"a", array()}})
                                : g.kernel("change", add_in_place{7}, {{"a", array()}});
    const node left = g.kernel("left", times{10}, {{"a", array()}, {"b", array()}});
    g.connect(first["b"], change["a"]);
    g.connect(first["b"], left["a"]);
    const auto from = g.source<word>(first["a"]);
    const auto plain = g.sink<word>(first["b"], {.capacity = 4}),
               changed = g.sink<word>(change["a"]), larger = g.sink<word>(left["b"]);
    g.compile();
    for (word round = 0; round < 10; ++round) {
      from.push(numbers(round));
      const auto p = plain.pull_elements(), c = changed.pull_elements(), l = larger.pull_elements();
      for (word i = 0; i < n; ++i) {
        ASSERT_EQ(p[i], 2 * (i + round));
        ASSERT_EQ(c[i], 2 * (i + round) + 7);
        ASSERT_EQ(l[i], 20 * (i + round));
      }
    }
  }
}

TEST_P(flow_graphs, keep_what_is_sticky) {
  executor e(on(where()));
  graph g(e);
  const node sum =
      g.kernel("sum", sum_of_two{},
               {{"a", array()}, {.name = "b", .shape = array(), .sticky = true}, {"c", array()}});
  const auto a = g.source<word>(sum["a"]), b = g.source<word>(sum["b"]);
  const auto c = g.sink<word>(sum["c"]);
  g.compile();
  b.push(numbers(100));
  for (word i = 0; i < 5; ++i) {
    a.push(numbers(i));
    EXPECT_EQ(c.pull_elements()[3], 103 + i + 3);
  }
  // The newest of several.
  for (const word first : {1000u, 2000u, 3000u}) b.push(numbers(first));
  a.push(numbers(0));
  EXPECT_EQ(c.pull_elements()[3], 3006u);
}

TEST_P(flow_graphs, bring_as_many_elements_as_were_written) {
  executor e(on(where()));
  graph g(e);
  const auto some = block_template::variable<word>(n);
  const node odd = g.host("odd",
                          [](in<word> a, out<word> b) {
                            std::size_t k = 0;
                            for (const word x : a)
                              if (x % 2 != 0) b[k++] = x;
                            b.set_count(k);
                          },
                          {{"a", some}, {"b", some}});
  const node sum = g.host("sum", add_up, {{"a", some}, {"total", one()}});
  g.connect(odd["b"], sum["a"]);
  const auto from = g.source<word>(odd["a"]);
  const auto to = g.sink<word>(sum["total"]);
  g.compile();
  from.push(numbers(0, 10));
  EXPECT_EQ(to.pull_elements()[0], 25u);
  from.push(numbers(0, 4));
  EXPECT_EQ(to.pull_elements()[0], 4u);
  expect_error([&] { from.push(numbers(0, n + 1)); }, "set at most");
}

TEST_P(flow_graphs, run_kernels_over_as_many_elements_as_came) {
  executor e(on(where()));
  graph g(e);
  const auto some = block_template::variable<word>(n);
  const node scale = g.kernel("scale", times{3}, {{"a", some}, {"b", some}});
  const node changed = g.kernel("changed", add_in_place{1}, {{"a", some}});
  const node sum = g.host("sum", add_up, {{"a", some}, {"total", one()}});
  g.connect(scale["b"], changed["a"]);
  g.connect(changed["a"], sum["a"]);
  const auto from = g.source<word>(scale["a"]);
  const auto to = g.sink<word>(sum["total"]);
  g.compile();
  for (const word count : {4u, 0u, 300u}) {
    from.push(numbers(0, count));
    EXPECT_EQ(to.pull_elements()[0], 3 * count * (count - 1) / 2 + count) << count;
  }
  graph small(e);
  const node cut =
      small.kernel("cut", times{3}, {{"a", some}, {"b", block_template::variable<word>(9)}});
  const auto in_ = small.source<word>(cut["a"]);
  const auto out_ = small.sink<word>(cut["b"]);
  small.compile();
  in_.push(numbers(0, 10));
  expect_error([&] { out_.pull(); }, "10 elements are at the first port");
}

TEST_P(flow_graphs, may_be_ended_by_their_functions) {
  executor e(on(where()));
  graph g(e);
  const node ends = g.host("ends",
                           [&](in<word> a, out<word> b) {
                             if (a[0] == 3) g.stop();
                             b[0] = a[0];
                           },
                           {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(ends["a"]);
  const auto to = g.sink<word>(ends["b"]);
  g.compile();
  from.push(numbers(2, 1));
  EXPECT_EQ(to.pull_elements()[0], 2u);
  from.push(numbers(3, 1));
  expect_error([&] { to.pull(); }, "has ended");
}

TEST_P(flow_graphs, take_bytes_as_bytes_alone) {
  executor e(on(where()));
  graph g(e);
  const auto raw = block_template::bytes(100);
  expect_error([&] { g.kernel("words", times{1}, {{"a", raw}, {"b", raw}}); }, "up to 100 bytes");
  const node turn = g.host("turn",
                           [](in<char> a, out<char> b) {
                             std::reverse_copy(a.begin(), a.end(), b.begin());
                             b.set_count(a.count);
                           },
                           {{"a", raw}, {"b", raw}});
  expect_error([&] { g.source<word>(turn["a"]); }, "elements of unsigned int");
  const auto from = g.source<char>(turn["a"]);
  const auto to = g.sink<char>(turn["b"]);
  g.compile();
  const std::string text = "abc";
  from.push(std::span<const char>(text.data(), text.size()));
  const datablock b = to.pull();
  expect_error([&] { b.read<word>(); }, "as unsigned int");
  EXPECT_EQ(std::string(b.read<char>().data(), b.count()), "cba");
}

// ---- full ----

// Functions that wait for their inputs take no thread from those that could run.
TEST_P(flow_graphs, run_what_is_ready_while_inputs_are_on_their_way) {
  executor e(on(where(), 1));
  graph g(e);
  simt::buffer<word> gate(where(), simt::space::pinned, 1);
  const node slow = g.kernel("slow", wait_at_gate{gate.data()}, {{"a", one()}, {"b", one()}});
  const auto pass = [](in<word> a, out<word> b) { b[0] = a[0]; };
  const node behind = g.host("behind", pass, {{"a", one()}, {"b", one()}});
  const node beside = g.host("beside", pass, {{"a", one()}, {"b", one()}});
  g.connect(slow["b"], behind["a"]);
  const auto to_slow = g.source<word>(slow["a"]), to_beside = g.source<word>(beside["a"]);
  const auto late = g.sink<word>(behind["b"]), soon = g.sink<word>(beside["b"]);
  g.compile();
  to_slow.push(std::vector<word>{1});
  for (word i = 0; i < 5; ++i) {
    to_beside.push(std::vector<word>{i});
    EXPECT_EQ(soon.pull_elements()[0], i);
  }
  EXPECT_FALSE(late.try_pull());
  std::atomic_ref(gate[0]).store(1, std::memory_order_release);
  EXPECT_EQ(late.pull_elements()[0], 1u);
}

// What was short may take long: another thread takes what is queued meanwhile, though it sleeps.
TEST_P(flow_graphs, run_what_is_queued_while_a_short_function_waits_for_it) {
  executor e(on(where(), 2));
  graph g(e);
  std::atomic<int> came{0};
  std::atomic<bool> waits{false}, in_time{true};
  const node short_one = g.host("short",
                                [&](in<word> a, out<word> b) {
                                  const auto until =
                                      std::chrono::steady_clock::now() + std::chrono::seconds(20);
                                  const int before = came;
                                  for (; waits && came == before; std::this_thread::yield())
                                    if (std::chrono::steady_clock::now() > until) {
                                      in_time = false;
                                      break;
                                    }
                                  b[0] = a[0];
                                },
                                {{"a", one()}, {"b", one()}});
  const node other = g.host("other",
                            [&](in<word> a, out<word> b) {
                              ++came;
                              b[0] = a[0];
                            },
                            {{"a", one()}, {"b", one()}});
  const auto a = g.source<word>(short_one["a"]), b = g.source<word>(other["a"]);
  const auto c = g.sink<word>(short_one["b"]), d = g.sink<word>(other["b"]);
  g.compile();
  for (int round = 0; round < 4; ++round) {
    waits = false;
    for (word i = 0; i < 50; ++i) {
      a.push(numbers(i, 1));
      b.push(numbers(i, 1));
      EXPECT_EQ(c.pull_elements()[0], i);
      EXPECT_EQ(d.pull_elements()[0], i);
    }
    if (round % 2 != 0) std::this_thread::sleep_for(std::chrono::milliseconds(80));  // all sleep
    waits = true;
    a.push(numbers(7, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it waits now
    b.push(numbers(8, 1));
    EXPECT_EQ(c.pull_elements()[0], 7u);
    EXPECT_EQ(d.pull_elements()[0], 8u);
    ASSERT_TRUE(in_time) << "in round " << round;
  }
}

// ---- cycles, errors ----

TEST_P(flow_graphs, go_round_from_a_first_block) {
  executor e(on(where()));
  graph g(e);
  const node step =
      g.kernel("step", sum_of_two{}, {{"a", array()}, {"state", array()}, {"next", array()}});
  datablock zero = e.memory().make(array());
  for (word& x : zero.write<word>()) x = 0;
  g.connect(step["next"], step["state"], zero);
  const auto from = g.source<word>(step["a"]);
  const auto to = g.sink<word>(step["next"]);
  g.compile();
  word sum = 0;
  for (word i = 0; i < 10; ++i) {
    from.push(numbers(i));
    sum += i + 5;
    EXPECT_EQ(to.pull_elements()[5], sum);
  }
}

TEST_P(flow_graphs, end_or_go_on_when_a_function_throws) {
  for (const on_error how : {on_error::end_graph, on_error::go_on}) {
    executor e(on(where()));
    graph g(e, {.name = "tests", .errors = how});
    const node may_fail = g.host("may fail",
                                 [](in<word> a, out<word> b) {
                                   if (a[0] == 3) throw std::runtime_error("three is too many");
                                   b[0] = a[0];
                                 },
                                 {{"a", one()}, {"b", one()}});
    const auto from = g.source<word>(may_fail["a"], {.capacity = 10});
    const auto to = g.sink<word>(may_fail["b"], {.capacity = 10});
    g.compile();
    if (how == on_error::go_on) {
      for (word i = 0; i < 6; ++i) from.push(std::vector<word>{i});
      for (const word i : {0u, 1u, 2u, 4u, 5u}) EXPECT_EQ(to.pull_elements()[0], i);
      g.wait();
      EXPECT_EQ(g.nodes()[0].failures, 1u);
    } else {
      from.push(std::vector<word>{3});
      const std::string text = "graph 'tests': node 'may fail' failed in run 1: three is too many";
      expect_error([&] { to.pull(); }, text);
      expect_error([&] { from.push(std::vector<word>{4}); }, text);
      expect_error([&] { g.wait(); }, text);
      EXPECT_EQ(g.events(), std::vector<std::string>{text});
    }
  }
}

TEST_P(flow_graphs, wake_whoever_waits_when_they_end) {
  executor e(on(where()));
  graph g(e);
  const node pass = g.kernel("pass", times{1}, {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(pass["a"]);
  const auto to = g.sink<word>(pass["b"]);
  expect_error([&] { to.try_pull(); }, "not compiled");
  g.compile();
  std::thread waits([&] { expect_error([&] { to.pull(); }, "has ended"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  g.stop();
  waits.join();
  expect_error([&] { from.push(std::vector<word>{1}); }, "has ended");
  g.stop();
}

TEST_P(flow_graphs, may_go_while_threads_wait_for_them) {
  for (int round = 0; round < 20; ++round) {
    executor e(on(where()));
    auto g = std::make_unique<graph>(e);
    const node pass = g->kernel("pass", times{1}, {{"a", one()}, {"b", one()}});
    const auto from = g->source<word>(pass["a"]);
    const auto to = g->sink<word>(pass["b"]);
    g->compile();
    std::vector<std::thread> waits;
    for (int i = 0; i < 3; ++i)
      waits.emplace_back([&] { expect_error([&] { to.pull(); }, "has ended"); });
    if (round % 2 != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    g.reset();
    for (std::thread& t : waits) t.join();
    expect_error([&] { from.push(std::vector<word>{1}); }, "has ended");
  }
}

TEST_P(flow_graphs, may_go_while_a_thread_waits_for_their_end) {
  for (int round = 0; round < 2; ++round) {
    executor e(on(where(), 1));
    std::atomic<bool> runs{false}, ends{false};
    auto g = std::make_unique<graph>(e);
    const node waits = g->host("waits",
                               [&](in<word>) {
                                 runs = true;
                                 while (!ends) std::this_thread::yield();
                               },
                               {{"a", one()}});
    const auto from = g->source<word>(waits["a"]);
    g->compile();
    from.push(numbers(0, 1));
    while (!runs) std::this_thread::yield();
    graph* const plain = g.get();
    std::atomic<bool> begun{false};
    std::thread waiter([&] {
      begun = true;
      expect_error([&] { plain->wait(); }, "has ended");
    });
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::thread goes([&] { g.reset(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ends = true;
    goes.join();
    waiter.join();
  }
}

TEST_P(flow_graphs, do_not_wait_for_themselves) {
  executor e(on(where(), 1));
  graph g(e);
  std::function<void()> inside;
  const node pass = g.host("pass",
                           [&](in<word> a, out<word> b) {
                             inside();
                             b[0] = a[0];
                           },
                           {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(pass["a"]);
  const auto to = g.sink<word>(pass["b"]);
  g.compile();
  std::atomic<int> refused{0};
  inside = [&] {
    for (const std::function<void()>& call :
         {std::function<void()>([&] { to.pull(); }), std::function<void()>([&] { g.wait(); }),
          std::function<void()>([&] { from.push(from.make()); })})
      try {
        call();
      } catch (const error& e) {
        if (std::string(e.what()).find("by a node's function") != std::string::npos) ++refused;
      }
  };
  from.push(std::vector<word>{1});
  to.pull();
  EXPECT_EQ(refused, 3);
}

// What a device did not bring is not looked at.
TEST(flow_on_host, functions_do_not_run_on_what_failed) {
  executor e(on(device()));
  graph g(e);
  std::atomic<int> ran{0};
  const node bad = g.on_stream("bad",
                               [](simt::stream& s, in<word>, out<word>) {
                                 s.call_host([] { throw std::runtime_error("as asked"); });
                               },
                               {{"a", array()}, {"b", array()}});
  const node looks = g.host("looks",
                            [&](in<word>, out<word> b) {
                              ++ran;
                              b[0] = 1;
                            },
                            {{"a", array()}, {"b", one()}});
  g.connect(bad["b"], looks["a"]);
  const auto from = g.source<word>(bad["a"]);
  const auto to = g.sink<word>(looks["b"]);
  g.compile();
  from.push(numbers(0));
  expect_error([&] { to.pull(); }, "failed in run 1");
  EXPECT_EQ(ran, 0);
}

TEST_P(flow_graphs, are_checked_before_they_run) {
  executor e(on(where(), 0));
  graph g(e, {.name = "wrong"});
  expect_error(
      [&] {
        g.host("sum", add_up, {{"a", array()}});
      },
      "1 ports were named, and its function takes 2");
  expect_error([&] { g.host("sum", add_up, {{"a", array()}, {"a", one()}}); }, "two ports 'a'");
  expect_error(
      [&] {
        g.host("sum", add_up, {{"a", block_template::of<float>(3)}, {"t", one()}});
      },
      "its template is float[3], and the function takes elements of unsigned int");
  const node sum = g.host("sum", add_up, {{"a", array()}, {"total", one()}});
  const node scale = g.kernel("scale", times{3}, {{"a", array()}, {"b", array()}});
  const node second = g.kernel("second", times{3}, {{"a", array()}, {"b", array()}});
  expect_error(
      [&] {
        g.host("sum", add_up, {{"a", array()}, {"total", one()}});
      },
      "has a node 'sum'");
  expect_error([&] { scale["x"]; }, "no port 'x'; it has a, b");
  expect_error([&] { g.also_kernel(scale, times{4}); }, "has a function for devices already");
  expect_error([&] { g.also_host(scale, [](in<word>, inout<word>) {}); }, "takes other views");
  expect_error([&] { g.connect(scale["b"], sum["total"]); }, "the second is an output");
  expect_error([&] { g.connect(scale["a"], sum["a"]); }, "the first is an input");
  expect_error([&] { g.connect(sum["total"], scale["a"]); },
               "unsigned int[1] comes out, and unsigned int[300]");
  expect_error([&] { g.connect(scale["b"], sum["a"], {.capacity = 0}); }, "capacity 0");
  expect_error([&] { g.source<float>(scale["a"]); }, "elements of float");
  expect_error([&] { g.source<word>(scale["b"]); }, "make a sink");
  g.connect(scale["b"], second["a"]);
  g.connect(second["b"], scale["a"]);
  expect_error([&] { g.connect(second["b"], second["a"]); }, "has a channel already");
  const error e1 = testing::error_of([&] { g.compile(); });
  const std::string text = e1.what();
  for (const char* part : {"input sum.a has no channel", "output sum.total has no channel",
                           "the cycle scale -> second -> scale has no first block"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  {
    graph lasting(e);
    const node gives = lasting.host("gives", [](out<word> a) { a[0] = 1; }, {{"a", one()}});
    lasting.sink<word>(gives["a"], {.full = when_full::latest});
    expect_error([&] { lasting.compile(); }, "has no input, and its channel to sink is never full");
  }
  graph other(e);
  expect_error([&] { other.connect(scale["b"], sum["a"]); }, "a port of another graph");
  expect_error([&] { other.compile(); }, "has no nodes");
  expect_error([&] { executor x({.policy = "best"}); },
               "there are first_available, fifo, priority, data_aware");
  expect_error([&] { executor x({.depth = 0}); }, "depth 0");
}

TEST_P(flow_graphs, refuse_blocks_that_nobody_has_written) {
  executor e(on(where()));
  graph g(e);
  const node pass = g.kernel("pass", times{2}, {{"a", array()}, {"b", array()}});
  const node other = g.kernel("other", times{1}, {{"a", array()}, {"b", array()}});
  datablock b = e.memory().make(array());
  expect_error([&] { g.connect(pass["b"], other["a"], b); },
               "connect pass.b to other.a: the first block is one of unsigned int[" +
                   std::to_string(n) + "] that nobody has written");
  const auto from = g.source<word>(pass["a"]), idle = g.source<word>(other["a"]);
  const auto to = g.sink<word>(pass["b"]);
  g.sink<word>(other["b"]);
  g.compile();
  const std::string part = "push into pass.a: a block of unsigned int[" + std::to_string(n) +
                           "] was given that nobody has written; write it first";
  expect_error([&] { from.push(b); }, part);
  expect_error([&] { from.try_push(b); }, part);
  expect_error([&] { push_all({{from, b}, {idle, b}}); }, part);
  {
    const auto all = b.write<word>();
    for (word& x : all) x = 21;
  }
  from.push(b);
  EXPECT_EQ(to.pull_elements(), std::vector<word>(n, 42));
}

TEST_P(flow_graphs, refuse_blocks_of_another_template) {
  executor e(on(where()));
  graph g(e);
  const node pass = g.kernel("pass", times{1}, {{"a", array()}, {"b", array()}});
  const auto from = g.source<word>(pass["a"]);
  g.sink<word>(pass["b"]);
  const plan& p = g.compile();
  expect_error([&] { from.push(e.memory().make(one())); }, "a block of unsigned int[1] was given");
  expect_error([&] { from.push(datablock()); }, "no block");
  expect_error([&] { from.push(numbers(0, n - 1)); }, "which has all of them");
  executor elsewhere(on(where(), 0));
  expect_error([&] { from.push(elsewhere.memory().make(array())); }, "another executor's memory");
  expect_error(
      [&] {
        g.kernel("late", times{1}, {{"a", array()}, {"b", array()}});
      },
      "is compiled");
  EXPECT_NE(p.text().find("channel source -> pass.a: unsigned int[300], capacity 1"),
            std::string::npos)
      << p.text();
  EXPECT_NE(p.dot().find("digraph"), std::string::npos);
  EXPECT_NE(p.json().find("\"capacity\": 1"), std::string::npos);
}

TEST_P(flow_graphs, share_an_executor) {
  executor e(on(where(), 2));
  std::vector<std::unique_ptr<graph>> graphs;
  std::vector<source<word>> from;
  std::vector<sink<word>> to;
  for (word i = 0; i < 5; ++i) {
    graphs.push_back(std::make_unique<graph>(
        e, graph_options{.name = std::string("g").append(std::to_string(i))}));
    const node x = graphs.back()->kernel("x", times{i + 1}, {{"a", array()}, {"b", array()}});
    from.push_back(graphs.back()->source<word>(x["a"]));
    to.push_back(graphs.back()->sink<word>(x["b"]));
    graphs.back()->compile();
  }
  std::vector<std::thread> threads;
  for (word i = 0; i < 5; ++i)
    threads.emplace_back([&, i] {
      for (word r = 0; r < 30; ++r) {
        from[i].push(numbers(r));
        if (to[i].pull_elements()[2] != (r + 2) * (i + 1)) ADD_FAILURE();
      }
    });
  for (std::thread& t : threads) t.join();
  graphs.erase(graphs.begin() + 1);  // the others go on
  from[0].push(numbers(1));
  EXPECT_EQ(to[0].pull_elements()[0], 1u);
}

}  // namespace
}  // namespace grosr::flow
