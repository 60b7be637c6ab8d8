// Several runs of a node on a device at a time: what comes out is the same, and in order.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using testing::scaled;

GROSR_DEVICE_SUITE(runs_in_flight);

constexpr std::size_t n = 500;
block_template array() { return block_template::of<word>(n); }
const std::vector<port> through() { return {{"a", array()}, {"b", array()}}; }

/// It leaves what it read in memory of its own for a while, where other runs would meet it.
struct slowly_plus {
  word what;
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> b) const {
    word x = a[p.index];
    b[p.index] = 0;
    for (word i = 0; i < 100; ++i) x = x * 3 + 1;
    for (word i = 0; i < 100; ++i) x = (x - 1) * 2863311531u;  // divides by 3, modulo 2^32
    b[p.index] = x + what;
  }
};

struct two_ways {
  graph g;
  source<word> from;
  sink<word> to;

  two_ways(executor& e, unsigned in_flight, bool stretches)
      : g(e, {.stretches = stretches, .runs_in_flight = in_flight}),
        from(make(g, array())),
        to(g.sink<word>(last, {.capacity = 4})) {}

  source<word> make(graph& of, const block_template& t) {
    const node first = of.kernel("first", slowly_plus{1}, through());
    const node left = of.kernel("left", slowly_plus{2}, through());
    const node right = of.kernel("right", slowly_plus{3}, through());
    const node both = of.kernel("both", sum_of_two{}, {{"a", t}, {"b", t}, {"c", t}});
    const node changed = of.kernel("changed", add_in_place{5}, {{"a", t}});
    of.connect(first["b"], left["a"]);
    of.connect(first["b"], right["a"]);
    of.connect(left["b"], both["a"]);
    of.connect(right["b"], both["b"]);
    of.connect(both["c"], changed["a"]);
    last = changed["a"];
    return of.source<word>(first["a"], {.capacity = 4});
  }

  port_ref last;
};

TEST_P(runs_in_flight, give_what_runs_one_after_the_other_give) {
  for (const unsigned in_flight : {1u, 2u, 3u, 8u})
    for (const bool stretches : {true, false})
      for (const unsigned threads : {0u, 2u}) {
        executor e(on(where(), threads));
        two_ways w(e, in_flight, stretches);
        const plan& p = w.g.compile();
        const word rounds = static_cast<word>(scaled(60, 12));
        for (word pushed = 0, pulled = 0; pulled < rounds;) {
          if (pushed < rounds && pushed - pulled < 6) {
            w.from.push(numbers(pushed * 1000, n));
            ++pushed;
            continue;
          }
          const auto got = w.to.pull_elements();
          for (word i = 0; i < n; ++i)
            ASSERT_EQ(got[i], 2 * (pulled * 1000 + i) + 12)
                << in_flight << " in flight, round " << pulled;
          ++pulled;
        }
        w.g.wait();
        EXPECT_LE(e.memory().bytes(1), p.bytes(1));
      }
}

TEST_P(runs_in_flight, count_in_the_plan) {
  executor e({.devices = {where()}});
  std::size_t before = 0;
  for (const unsigned in_flight : {1u, 2u, 8u}) {
    two_ways w(e, in_flight, true);
    const std::size_t bytes = w.g.compile().bytes(1);
    EXPECT_GT(bytes, before);
    before = bytes;
  }
}

TEST_P(runs_in_flight, are_one_to_eight) {
  executor e({.devices = {where()}});
  for (const unsigned wrong : {0u, 9u})
    expect_error([&] { graph g(e, {.name = "many", .runs_in_flight = wrong}); },
                 "graph 'many': " + std::to_string(wrong) +
                     " runs in flight were asked for; there are 1 to 8");
}

// A cycle feeds itself: each run waits for what the one before it made, whatever may be in flight.
TEST_P(runs_in_flight, go_round_cycles_one_after_the_other) {
  executor e(on(where(), 1));
  graph g(e, {.runs_in_flight = 4});
  const node sum = g.kernel("sum", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}});
  datablock first = e.memory().make(array());
  for (word& v : first.write<word>()) v = 0;
  g.connect(sum["c"], sum["b"], first);
  const auto from = g.source<word>(sum["a"], {.capacity = 4});
  const auto to = g.sink<word>(sum["c"], {.capacity = 4});
  g.compile();
  std::vector<word> expected(n, 0);
  for (word round = 0; round < 20; ++round) {
    const auto more = numbers(round, n);
    from.push(more);
    const auto got = to.pull_elements();
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] += more[i];
      ASSERT_EQ(got[i], expected[i]) << "round " << round;
    }
  }
}

// The thread that pushes puts runs on a device where those of the executor are away.
TEST_P(runs_in_flight, begin_while_all_threads_are_in_functions_of_the_host) {
  executor e(on(where(), 1));
  const auto one = block_template::of<word>(1);
  graph host(e, {.name = "host"}), device(e, {.name = "device"});
  std::atomic<bool> is_in{false}, open{false};
  const node waits = host.host("waits",
                               [&](in<word>) {
                                 is_in = true;
                                 while (!open) std::this_thread::yield();
                               },
                               {{"a", one}});
  const auto to_host = host.source<word>(waits["a"]);
  const node adds = device.kernel("adds", plus{1}, through());
  const auto from = device.source<word>(adds["a"]);
  const auto to = device.sink<word>(adds["b"]);
  host.compile();
  device.compile();
  to_host.push(std::vector<word>{1});
  while (!is_in) std::this_thread::yield();
  for (word round = 0; round < 3; ++round) {
    from.push(numbers(round, n));
    const datablock got = to.pull();
    EXPECT_EQ(got.read<word>()[n - 1], round + n);
  }
  open = true;
  host.wait();
  device.wait();
}

}  // namespace
}  // namespace grosr::flow
