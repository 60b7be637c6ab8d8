// Outputs that have as many elements as the function finds when it runs.
#include <algorithm>
#include <string>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/simt/atomic.hpp"
#include "support/devices.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(counted_outputs);

constexpr std::size_t n = 300;
block_template some() { return block_template::variable<word>(n); }
block_template one() { return block_template::of<word>(1); }

/// Keeps what is less than a limit, in any order.
struct keep_below {
  word limit;
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> kept, out<word> count) const {
    if (a[p.index] < limit)
      kept[simt::atomic_ref(count[0]).fetch_add(1u, simt::relaxed)] = a[p.index];
  }
};
struct split {
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> even, out<word> odd, out<word> evens,
                               out<word> odds) const {
    const out<word>& to = a[p.index] % 2 == 0 ? even : odd;
    word& count = a[p.index] % 2 == 0 ? evens[0] : odds[0];
    to[simt::atomic_ref(count).fetch_add(1u, simt::relaxed)] = a[p.index];
  }
};
struct claim_too_many {
  GROSR_DEVICE void operator()(point p, in<word>, out<word>, out<word> count) const {
    if (p.index == 0) count[0] = n + 1;
  }
};

const std::vector<port> filter_ports() {
  return {
      {"a", some()}, {.name = "kept", .shape = some(), .count_port = "count"}, {"count", one()}};
}

std::vector<word> sorted(std::vector<word> v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST_P(counted_outputs, have_what_was_found) {
  executor e(on(where()));
  graph g(e);
  const node keep = g.kernel("keep", keep_below{100}, filter_ports());
  const node more = g.kernel("more", plus{1000}, {{"a", some()}, {"b", some()}});
  g.connect(keep["kept"], more["a"], {.capacity = 2});
  const auto from = g.source<word>(keep["a"], {.capacity = 3});
  const auto to = g.sink<word>(more["b"], {.capacity = 3});
  const auto counts = g.sink<word>(keep["count"], {.capacity = 8});
  g.compile();
  for (word round = 0; round < 40; round += 2) {
    from.push(numbers(round * 5, n - round));
    from.push(numbers(round * 5 + 5, round));
    for (word k = round; k < round + 2; ++k) {
      const word first = k * 5, there = k % 2 == 0 ? n - k : k - 1;
      const word kept = first >= 100 ? 0 : std::min(there, 100 - first);
      EXPECT_EQ(counts.pull_elements()[0], kept);
      EXPECT_EQ(sorted(to.pull_elements()), numbers(first + 1000, kept));
    }
  }
  g.wait();
}

TEST_P(counted_outputs, may_be_several_and_need_no_channel_for_their_counts) {
  executor e(on(where()));
  graph g(e);
  const node halves = g.kernel("halves", split{},
                               {{"a", some()},
                                {.name = "even", .shape = some(), .count_port = "evens"},
                                {.name = "odd", .shape = some(), .count_port = "odds"},
                                {"evens", one()},
                                {"odds", one()}});
  const auto from = g.source<word>(halves["a"]);
  const auto even = g.sink<word>(halves["even"]), odd = g.sink<word>(halves["odd"]);
  const plan& p = g.compile();
  for (word round = 0; round < 20; ++round) {
    std::vector<word> given(n), expected[2];
    for (word i = 0; i < n; ++i) {
      given[i] = (i * 7 + round * i) % 1000;
      expected[given[i] % 2].push_back(given[i]);
    }
    from.push(given);
    EXPECT_EQ(sorted(even.pull_elements()), sorted(expected[0]));
    EXPECT_EQ(sorted(odd.pull_elements()), sorted(expected[1]));
  }
  EXPECT_LE(e.memory().bytes(1), p.bytes(1));
}

TEST_P(counted_outputs, come_from_the_host_too) {
  executor e(on(where()));
  graph g(e);
  const node keep = g.host(
      "keep",
      [](in<word> a, out<word> kept, out<word> count) {
        for (const word x : a)
          if (x < 50) kept[count[0]++] = x;
      },
      filter_ports());
  const node more = g.kernel("more", plus{1}, {{"a", some()}, {"b", some()}});
  g.connect(keep["kept"], more["a"]);
  const auto from = g.source<word>(keep["a"]);
  const auto to = g.sink<word>(more["b"]);
  g.compile();
  for (word round = 0; round < 60; round += 10) {
    from.push(numbers(round, n));
    EXPECT_EQ(to.pull_elements(), numbers(round + 1, round < 50 ? 50 - round : 0));
  }
}

TEST_P(counted_outputs, are_of_streams_that_count) {
  executor e(on(where()));
  graph g(e);
  const node keep = g.on_stream(
      "keep",
      [](simt::stream& s, in<word> a, out<word> kept, out<word> count) {
        simt::copy_bytes(s, kept.data, a.data, a.count * sizeof(word));
        simt::copy_bytes(s, count.data, a.data, sizeof(word));
      },
      filter_ports());
  const auto from = g.source<word>(keep["a"]);
  const auto to = g.sink<word>(keep["kept"]);
  g.compile();
  for (const word count : {5u, 0u, 300u, 1u}) {
    from.push(numbers(count, n));
    EXPECT_EQ(to.pull_elements(), numbers(count, count));
  }
}

TEST_P(counted_outputs, of_too_many_fail) {
  executor e(on(where()));
  graph g(e, {.name = "g"});
  const node bad = g.kernel("bad", claim_too_many{}, filter_ports());
  const auto from = g.source<word>(bad["a"]);
  const auto to = g.sink<word>(bad["kept"]);
  g.compile();
  from.push(numbers(0, n));
  expect_error(
      [&] { to.pull(); },
      "graph 'g': node 'bad' failed in run 1: 301 elements were set for a block of records "
      "of");
}

TEST_P(counted_outputs, of_a_graph_that_ends_are_lost) {
  executor e(on(where()));
  for (int i = 0; i < 20; ++i) {
    graph g(e);
    const node keep = g.kernel("keep", keep_below{100}, filter_ports());
    const auto from = g.source<word>(keep["a"], {.capacity = 4});
    const auto to = g.sink<word>(keep["kept"]);
    g.compile();
    for (word k = 0; k < 4; ++k) from.push(numbers(k, n));
    if (i % 2 == 0) to.pull();
  }
}

TEST_P(counted_outputs, are_refused_without_a_count) {
  executor e(on(where()));
  graph g(e);
  const auto filter = [&](const std::string& name, const block_template& kept,
                          const block_template& count, const std::string& at) {
    g.kernel(name, keep_below{1},
             {{"a", some()}, {.name = "kept", .shape = kept, .count_port = at}, {"count", count}});
  };
  expect_error([&] { filter("x", some(), one(), "length"); }, "port 'x.kept'");
  expect_error([&] { filter("x", some(), one(), "a"); }, "output of one std::uint32_t");
  expect_error([&] { filter("x", some(), block_template::of<word>(2), "count"); },
               "output of one std::uint32_t");
  expect_error([&] { filter("x", block_template::of<word>(n), one(), "count"); },
               "only an output of variable records or bytes");
}

}  // namespace
}  // namespace grosr::flow
