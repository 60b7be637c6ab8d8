// Nodes that run as one: which do, that nothing else changes by it, and what is said when one
// fails.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "support/devices.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(stretches);

struct double_in_place {
  GROSR_DEVICE void operator()(point p, inout<word> a) const { a[p.index] *= 2; }
};

constexpr std::size_t n = 200;
block_template array() { return block_template::of<word>(n); }
const std::vector<port> through() { return {{"a", array()}, {"b", array()}}; }

std::vector<word> numbers(word first) { return tested::numbers(first, n); }

/// Names of nodes, those that run as one in brackets.
std::string parts(const graph& g) {
  std::string text, last;
  for (const node_stats& s : g.nodes()) {
    if (s.name.find(" nodes)") != std::string::npos) continue;
    if (s.stretch != last) {
      text += last.empty() ? "" : "]";
      text += s.stretch.empty() ? "" : "[";
    }
    text += s.name + " ";
    last = s.stretch;
  }
  return last.empty() ? text : text + "]";
}

TEST_P(stretches, run_chains_as_one) {
  executor e({.devices = {where()}});
  graph g(e);
  std::vector<node> all;
  for (word i = 0; i < 50; ++i) {
    all.push_back(g.kernel(std::string("n").append(std::to_string(i)), plus{i}, through()));
    if (i != 0) g.connect(all[i - 1]["b"], all[i]["a"]);
  }
  const auto from = g.source<word>(all.front()["a"], {.capacity = 4});
  const auto to = g.sink<word>(all.back()["b"], {.capacity = 4});
  const plan& p = g.compile();
  EXPECT_NE(p.text().find("stretch n0 to n49 (50 nodes): runs as one"), std::string::npos)
      << p.text();
  // Two buffers of its own, and what lies in two channels and beside them.
  EXPECT_EQ(p.bytes(1), (2u + 7u + 7u) * 1024);
  for (word round = 0; round < 20; round += 4) {
    for (word k = 0; k < 4; ++k) from.push(numbers(round + k));
    for (word k = 0; k < 4; ++k) {
      const auto got = to.pull_elements();
      for (word i = 0; i < n; ++i) ASSERT_EQ(got[i], round + k + i + 49 * 50 / 2);
    }
  }
  for (const node_stats& s : g.nodes()) EXPECT_EQ(s.runs, 20u);
  for (const block_channel_stats& c : g.channels()) EXPECT_EQ(c.blocks, 20u);
  EXPECT_LE(e.memory().bytes(1), p.bytes(1));
}

TEST_P(stretches, change_in_place_only_what_nobody_else_reads) {
  executor e({.devices = {where()}});
  graph g(e);
  const node first = g.kernel("first", plus{1}, through());
  const node changed = g.kernel("changed", double_in_place{}, {{"a", array()}});
  const node again = g.kernel("again", double_in_place{}, {{"a", array()}});
  const node read = g.kernel("read", plus{10}, through());
  const node joined =
      g.kernel("joined", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}});
  g.connect(first["b"], changed["a"]);
  g.connect(first["b"], read["a"]);
  g.connect(changed["a"], again["a"]);
  g.connect(again["a"], joined["a"]);
  g.connect(read["b"], joined["b"]);
  const auto from = g.source<word>(first["a"]);
  const auto to = g.sink<word>(joined["c"]), seen = g.sink<word>(changed["a"]);
  g.compile();
  EXPECT_EQ(parts(g), "[first changed again read joined ]");
  for (word round = 0; round < 10; ++round) {
    from.push(numbers(round));
    const auto c = to.pull_elements(), s = seen.pull_elements();
    for (word i = 0; i < n; ++i) {
      ASSERT_EQ(s[i], 2 * (i + round + 1));
      ASSERT_EQ(c[i], 4 * (i + round + 1) + i + round + 11);
    }
  }
}

// What comes from outside and is changed is the program's block still, where the program keeps it.
TEST_P(stretches, leave_what_the_program_keeps) {
  executor e({.devices = {where()}});
  graph g(e);
  const node changed = g.kernel("changed", double_in_place{}, {{"a", array()}});
  const node more = g.kernel("more", plus{1}, through());
  g.connect(changed["a"], more["a"]);
  const auto from = g.source<word>(changed["a"]);
  const auto to = g.sink<word>(more["b"]);
  g.compile();
  EXPECT_EQ(parts(g), "[changed more ]");
  const datablock kept = from.make();
  {
    const auto w = kept.write<word>();
    std::iota(w.begin(), w.end(), 0u);
  }
  for (int round = 0; round < 3; ++round) {
    from.push(kept);
    const auto got = to.pull_elements();
    for (word i = 0; i < n; ++i) ASSERT_EQ(got[i], 2 * i + 1);
  }
  EXPECT_EQ(kept.read<word>()[7], 7u);
}

// first -> by_host -> last, and first -> last: were first and last one, it would wait for itself.
TEST_P(stretches, do_not_go_round_what_lies_between) {
  executor e({.devices = {where()}});
  graph g(e);
  const node first = g.kernel("first", plus{1}, through());
  const node more = g.kernel("more", plus{1}, through());
  const node by_host = g.host(
      "by_host", [](in<word> a, out<word> b) { std::copy(a.begin(), a.end(), b.begin()); },
      through());
  const node last =
      g.kernel("last", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}});
  const node after = g.kernel("after", plus{1}, through());
  g.connect(first["b"], more["a"]);
  g.connect(more["b"], by_host["a"]);
  g.connect(by_host["b"], last["a"]);
  g.connect(first["b"], last["b"]);
  g.connect(last["c"], after["a"]);
  const auto from = g.source<word>(first["a"]);
  const auto to = g.sink<word>(after["b"]);
  g.compile();
  EXPECT_EQ(parts(g), "[first more ]by_host [last after ]");
  for (word round = 0; round < 10; ++round) {
    from.push(numbers(round));
    EXPECT_EQ(to.pull_elements()[5], 2 * (5 + round) + 4);
  }
}

// In a stencil two neighbours cannot be one, as what one gives others does not need what the other
// one takes; all of them can.
TEST_P(stretches, are_made_of_stencils) {
  executor e({.devices = {where()}});
  graph g(e);
  const std::vector<port> joins = {{"a", array()}, {"b", array()}, {"c", array()}};
  std::vector<node> first, second;
  for (int t = 0; t < 4; ++t) {
    first.push_back(g.kernel(std::string("f").append(std::to_string(t)), sum_of_two{}, joins));
    second.push_back(g.kernel(std::string("s").append(std::to_string(t)), sum_of_two{}, joins));
    if (t == 0) continue;
    g.connect(first[t - 1]["c"], first[t]["a"]);
    g.connect(second[t - 1]["c"], first[t]["b"]);
    g.connect(second[t - 1]["c"], second[t]["b"]);
  }
  for (int t = 0; t < 4; ++t) g.connect(first[t]["c"], second[t]["a"]);
  const auto x = g.source<word>(first[0]["a"]), y = g.source<word>(first[0]["b"]),
             z = g.source<word>(second[0]["b"]);
  const auto to = g.sink<word>(second[3]["c"]);
  g.compile();
  EXPECT_EQ(parts(g), "[f0 s0 f1 s1 f2 s2 f3 s3 ]");
  for (word round = 0; round < 10; ++round) {
    x.push(numbers(round));
    y.push(numbers(3));
    z.push(numbers(2 * round));
    word f = 7 + round + 7 + 3, s = f + 7 + 2 * round;
    for (int t = 1; t < 4; ++t) {
      f += s;
      s += f;
    }
    EXPECT_EQ(to.pull_elements()[7], s);
  }
}

// What one source gives to several is all there when one of them has it.
TEST_P(stretches, take_what_a_source_gives_to_several) {
  executor e({.devices = {where()}});
  graph g(e);
  const std::vector<port> joins = {{"a", array()}, {"b", array()}, {"c", array()}};
  const node first = g.kernel("first", plus{1}, through());
  const node last = g.kernel("last", sum_of_two{}, joins);
  g.connect(first["b"], last["a"]);
  const auto from = g.source<word>({first["a"], last["b"]});
  const auto early = g.sink<word>(first["b"]), to = g.sink<word>(last["c"]);
  g.compile();
  EXPECT_EQ(parts(g), "[first last ]");
  for (word round = 0; round < 10; ++round) {
    from.push(numbers(round));
    EXPECT_EQ(early.pull_elements()[5], round + 6);
    EXPECT_EQ(to.pull_elements()[5], 2 * (round + 5) + 1);
  }
}

TEST_P(stretches, are_not_made_of_what_may_differ) {
  executor e({.devices = {where()}});
  const auto built = [&](const graph_options& o, const channel_options& c, stream_work work) {
    auto g = std::make_unique<graph>(e, o);
    const node first = g->kernel("first", plus{1}, through());
    const node second = g->on_stream(
        "second",
        [](simt::stream& s, in<word> a, out<word> b) {
          simt::copy_bytes(s, b.data, a.data, n * 4);
        },
        through(), work);
    g->connect(first["b"], second["a"], c);
    const auto from = g->source<word>(first["a"]);
    const auto to = g->sink<word>(second["b"]);
    g->compile();
    from.push(numbers(0));
    EXPECT_EQ(to.pull_elements()[9], 10u);
    return parts(*g);
  };
  EXPECT_EQ(built({}, {}, stream_work::same_always), "[first second ]");
  EXPECT_EQ(built({}, {}, stream_work::each_time), "first second ");
  EXPECT_EQ(built({.stretches = false}, {}, stream_work::same_always), "first second ");
  EXPECT_EQ(built({.errors = on_error::go_on}, {}, stream_work::same_always), "first second ");
  EXPECT_EQ(built({}, {.full = when_full::latest}, stream_work::same_always), "first second ");
}

// On a GPU a function that always does the same is asked again only for blocks that lie elsewhere;
// all runs copy what lies there then.
TEST_P(stretches, follow_blocks_to_other_addresses) {
  executor e({.devices = {where()}});
  graph g(e);
  std::atomic<int> called{0};
  const auto copy = [&](simt::stream& s, in<word> a, out<word> b) {
    ++called;
    simt::copy_bytes(s, b.data, a.data, n * 4);
  };
  std::vector<node> all;
  for (word i = 0; i < 5; ++i) {
    all.push_back(g.on_stream(std::string("n").append(std::to_string(i)), copy, through(),
                              stream_work::same_always));
    if (i != 0) g.connect(all[i - 1]["b"], all[i]["a"]);
  }
  const auto from = g.source<word>(all.front()["a"], {.capacity = 3});
  const auto to = g.sink<word>(all.back()["b"], {.capacity = 3});
  g.compile();
  std::vector<datablock> held;
  for (word round = 0; round < 20; ++round) {
    from.push(numbers(round));
    held.push_back(to.pull());  // so that each run has another block
    EXPECT_EQ(held.back().read<word>()[3], round + 3);
  }
  for (word round = 0; round < 20; ++round) EXPECT_EQ(held[round].read<word>()[1], round + 1);
  if (where().is_cuda()) {
    EXPECT_LE(called, 2 * 5 + 19 * 2);
  }
}

TEST_P(stretches, say_that_they_cannot_be_a_graph) {
  executor e({.devices = {where()}});
  graph g(e);
  const auto waits = [](simt::stream& s, in<word> a, out<word> b) {
    s.wait();
    simt::copy_bytes(s, b.data, a.data, n * 4);
  };
  const node first = g.on_stream("first", waits, through(), stream_work::same_always);
  const node last = g.kernel("last", plus{1}, through());
  g.connect(first["b"], last["a"]);
  const auto from = g.source<word>(first["a"]);
  const auto to = g.sink<word>(last["b"]);
  g.compile();
  for (word round = 0; round < 3; ++round) {
    from.push(numbers(round));
    EXPECT_EQ(to.pull_elements()[3], round + 4);
  }
  g.wait();
  if (where().is_cuda()) {
    ASSERT_EQ(g.events().size(), 1u);
    EXPECT_NE(g.events()[0].find("cannot be a CUDA graph"), std::string::npos) << g.events()[0];
  }
}

// Blocks lie in the same few places again and again; when there is a CUDA graph for each, functions
// are not called any more.
TEST_P(stretches, find_blocks_where_they_were) {
  executor e({.devices = {where()}});
  graph g(e);
  std::atomic<int> called{0};
  const auto copy = [&](simt::stream& s, in<word> a, out<word> b) {
    ++called;
    simt::copy_bytes(s, b.data, a.data, n * 4);
  };
  std::vector<node> all;
  for (word i = 0; i < 4; ++i) {
    all.push_back(g.on_stream(std::string("n").append(std::to_string(i)), copy, through(),
                              stream_work::same_always));
    if (i != 0) g.connect(all[i - 1]["b"], all[i]["a"]);
  }
  const auto from = g.source<word>(all.front()["a"], {.capacity = 2});
  const auto to = g.sink<word>(all.back()["b"], {.capacity = 2});
  g.compile();
  int called_before = 0;
  for (word round = 0; round < 200; ++round) {
    if (round == 100) called_before = called;
    from.push(numbers(round));
    const auto got = to.pull_elements();
    ASSERT_EQ(got[0], round);
    ASSERT_EQ(got[n - 1], round + n - 1);
  }
  if (where().is_cuda()) {
    EXPECT_EQ(called, called_before);
  }
}

// Functions that put different things into a stream, each with blocks of its own from outside,
// which lie elsewhere in each run.
TEST_P(stretches, follow_blocks_of_several_functions) {
  executor e({.devices = {where()}});
  graph g(e);
  const auto twice = [](simt::stream& s, in<word> a, in<word> b, out<word> c) {
    simt::copy_bytes(s, c.data, a.data, n * 2);
    simt::copy_bytes(s, c.data + n / 2, b.data + n / 2, n * 2);
  };
  const std::vector<port> joins = {{"a", array()}, {"b", array()}, {"c", array()}};
  std::vector<node> all;
  std::vector<source<word>> beside;
  for (word i = 0; i < 8; ++i) {
    const std::string name = std::string("n").append(std::to_string(i));
    all.push_back(i % 2 == 0 ? g.kernel(name, sum_of_two{}, joins)
                             : g.on_stream(name, twice, joins, stream_work::same_always));
    beside.push_back(g.source<word>(all[i]["b"]));
    if (i != 0) g.connect(all[i - 1]["c"], all[i]["a"]);
  }
  const auto from = g.source<word>(all[0]["a"]);
  const auto to = g.sink<word>(all[7]["c"]);
  g.compile();
  EXPECT_EQ(parts(g), "[n0 n1 n2 n3 n4 n5 n6 n7 ]");
  std::vector<datablock> held;
  for (word round = 0; round < 30; ++round) {
    std::vector<word> expected = numbers(round);
    from.push(numbers(round));
    for (word i = 0; i < 8; ++i) {
      const std::vector<word> b = numbers(100 * i + round);
      beside[i].push(b);
      for (std::size_t k = 0; k < n; ++k)
        expected[k] = i % 2 == 0 ? expected[k] + b[k] : k < n / 2 ? expected[k] : b[k];
    }
    held.push_back(to.pull());
    const auto got = held.back().read<word>();
    ASSERT_EQ(std::vector<word>(got.begin(), got.end()), expected);
    if (round % 3 == 2) held.erase(held.begin());
  }
  EXPECT_TRUE(g.events().empty());
}

TEST_P(stretches, name_the_node_that_fails) {
  executor e({.devices = {where()}});
  graph g(e);
  const node good = g.kernel("good", plus{1}, through());
  std::atomic<bool> fails{false};
  const node bad = g.on_stream(
      "bad",
      [&](simt::stream& s, in<word> a, out<word> b) {
        if (fails) throw std::runtime_error("as asked");
        simt::copy_bytes(s, b.data, a.data, n * 4);
      },
      through(), stream_work::same_always);
  g.connect(good["b"], bad["a"]);
  const auto from = g.source<word>(good["a"]);
  const auto to = g.sink<word>(bad["b"]);
  g.compile();
  fails = true;
  from.push(numbers(0));
  const error thrown = testing::error_of([&] { to.pull(); });
  EXPECT_NE(std::string(thrown.what())
                .find("node 'good to bad (2 nodes)' failed in run 1: node 'bad' of it: as asked"),
            std::string::npos)
      << thrown.what();
}

// Channels that were given room keep it: a program may fill one source before the other.
TEST_P(stretches, leave_channels_with_room_as_they_are) {
  executor e({.devices = {where()}});
  graph g(e);
  const node left = g.kernel("left", plus{1}, through());
  const node joined =
      g.kernel("joined", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}});
  const node after = g.kernel("after", plus{0}, through());
  g.connect(left["b"], joined["a"], {.capacity = 5});
  g.connect(joined["c"], after["a"]);
  const auto a = g.source<word>(left["a"]), b = g.source<word>(joined["b"]);
  const auto to = g.sink<word>(after["b"]);
  g.compile();
  EXPECT_EQ(parts(g), "left [joined after ]");
  for (word i = 0; i < 6; ++i) {
    datablock made = a.make();
    {
      const auto w = made.write<word>();
      std::iota(w.begin(), w.end(), i);
    }
    ASSERT_TRUE(a.push_for(std::move(made), std::chrono::seconds(20)));
  }
  for (word i = 0; i < 6; ++i) {
    b.push(numbers(100));
    EXPECT_EQ(to.pull_elements()[0], 101 + i);
  }
}

// The program answers what comes out of one node with what goes into the next.
TEST_P(stretches, do_not_go_round_through_the_program) {
  executor e({.devices = {where()}});
  graph g(e);
  const node first = g.kernel("first", plus{1}, through());
  const node more = g.kernel("more", plus{1}, through());
  const node second =
      g.kernel("second", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}});
  g.connect(first["b"], more["a"]);
  g.connect(more["b"], second["a"]);
  const auto from = g.source<word>(first["a"]), answer = g.source<word>(second["b"]);
  const auto asked = g.sink<word>(more["b"]), to = g.sink<word>(second["c"]);
  g.compile();
  EXPECT_EQ(parts(g), "[first more ]second ");
  for (word round = 0; round < 5; ++round) {
    from.push(numbers(round));
    const datablock seen = asked.pull_for(std::chrono::seconds(20));
    ASSERT_TRUE(seen);
    answer.push(numbers(seen.read<word>()[0]));
    EXPECT_EQ(to.pull_elements()[0], 2 * (round + 2));
  }
}

// More memory than there is: the graph is as it was, and compiles when there is more.
TEST_P(stretches, are_made_again_after_a_failure) {
  executor e({.devices = {where()}});
  const auto large = block_template::of<word>(n, 1, 1);
  graph g(e);
  const auto copy = [](simt::stream& s, in<word> a, out<word> b) {
    simt::copy_bytes(s, b.data, a.data, n * 4);
  };
  const node first =
      g.on_stream("first", copy, {{"a", large}, {"b", large}}, stream_work::same_always);
  const node last =
      g.on_stream("last", copy, {{"a", large}, {"b", large}}, stream_work::same_always);
  g.connect(first["b"], last["a"]);
  const auto from = g.source<word>(first["a"]);
  const auto huge = block_template::of<word>(0xffff'ffffu, 0xffff);  // a petabyte
  const node open = g.kernel("open", plus{1}, {{"a", huge}, {"b", huge}});
  const auto to = g.sink<word>(last["b"]);
  EXPECT_NE(std::string(testing::error_of([&] { g.compile(); }).what())
                .find("input open.a has no channel"),
            std::string::npos);
  const auto beside = g.source<word>(open["a"]);
  const auto other = g.sink<word>(open["b"]);
  EXPECT_THROW(g.compile(), error);  // out of memory
  EXPECT_THROW(g.compile(), error);
  EXPECT_EQ(parts(g), "first last open ");
  EXPECT_LE(e.memory().bytes(1), 16u * 1024);
}

}  // namespace
}  // namespace grosr::flow
