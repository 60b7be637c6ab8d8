// Blocks that are pushed into several sources at once: all of them, or none.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "support/devices.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(push_all);

constexpr std::size_t n = 100;
block_template array() { return block_template::of<word>(n); }

struct adder {
  graph g;
  node sum;
  source<word> a, b;
  sink<word> c;

  explicit adder(executor& e, const std::string& name = "adder", unsigned capacity = 1)
      : g(e, {.name = name}),
        sum(g.kernel("sum", sum_of_two{}, {{"a", array()}, {"b", array()}, {"c", array()}})),
        a(g.source<word>(sum["a"], {.capacity = capacity})),
        b(g.source<word>(sum["b"], {.capacity = capacity})),
        c(g.sink<word>(sum["c"])) {
    g.compile();
  }
};

datablock block(const any_source& of, word first) {
  datablock made = of.make();
  word next = first;
  for (word& v : made.write<word>()) v = next++;
  return made;
}

TEST_P(push_all, gives_each_source_its_block) {
  for (const unsigned threads : {0u, 2u}) {
    executor e(on(where(), threads));
    adder x(e);
    for (word round = 0; round < 20; ++round) {
      std::vector<block_for> both{{x.a, block(x.a, round)}, {x.b, block(x.b, 100)}};
      flow::push_all(both);
      for (const block_for& pushed : both) EXPECT_FALSE(pushed.block);
      const auto got = x.c.pull_elements();
      for (word i = 0; i < n; ++i) ASSERT_EQ(got[i], round + 100 + 2 * i);
    }
    flow::push_all(std::span<block_for>());
    flow::push_all({{x.a, block(x.a, 1)}, {x.b, block(x.b, 2)}});
    EXPECT_EQ(x.c.pull_elements()[0], 3u);
  }
}

TEST_P(push_all, pushes_nothing_where_one_channel_is_full) {
  executor e(on(where(), 1));
  adder x(e);
  x.a.push(block(x.a, 1));  // at the input
  x.a.push(block(x.a, 2));  // in the channel, which is full then
  std::vector<block_for> both{{x.b, block(x.b, 3)}, {x.a, block(x.a, 4)}};
  EXPECT_FALSE(push_all_for(both, std::chrono::milliseconds(20)));
  EXPECT_FALSE(push_all_for(both, std::chrono::nanoseconds(0)));
  for (const block_for& kept : both) EXPECT_TRUE(kept.block);
  EXPECT_EQ(x.g.channels()[1].blocks, 0u);
  std::atomic<bool> pushed{false};
  std::thread late([&] {
    flow::push_all(both);
    pushed = true;
  });
  EXPECT_FALSE(x.c.pull_for(std::chrono::milliseconds(20)));
  EXPECT_FALSE(pushed);
  x.b.push(block(x.b, 10));
  EXPECT_EQ(x.c.pull_elements()[0], 11u);
  EXPECT_EQ(x.c.pull_elements()[0], 5u);  // the second of a, and what the other thread pushed
  late.join();
  EXPECT_TRUE(pushed);
}

// Who waits for room in all channels leaves room that it cannot use yet to others.
TEST_P(push_all, leaves_room_to_others_while_it_waits_for_more) {
  executor e(on(where(), 1));
  graph g(e);
  const auto through = std::vector<port>{{"a", array()}, {"b", array()}};
  const node x = g.kernel("x", plus{1}, through), y = g.kernel("y", plus{1}, through);
  const auto to_x = g.source<word>(x["a"]), to_y = g.source<word>(y["a"]);
  const auto of_x = g.sink<word>(x["b"]), of_y = g.sink<word>(y["b"]);
  g.compile();
  const auto fill = [&](const source<word>& s) {
    while (s.push_for(block(s, 0), std::chrono::milliseconds(200))) {
    }
  };
  fill(to_x);
  fill(to_y);
  std::vector<block_for> both{{to_x, block(to_x, 1)}, {to_y, block(to_y, 1)}};
  std::atomic<bool> pushed{false};
  std::thread waits_for_both([&] { flow::push_all(both); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::thread waits_for_x([&] {
    to_x.push(block(to_x, 2));
    pushed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  of_x.pull();
  for (int i = 0; i < 1000 && !pushed; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(pushed);
  for (int i = 0; i < 2; ++i) {
    of_x.pull();
    of_y.pull();
  }
  waits_for_both.join();
  waits_for_x.join();
}

TEST_P(push_all, refuses_what_does_not_belong_together) {
  executor e(on(where(), 1));
  adder x(e, "one"), y(e, "other");
  std::vector<block_for> of_two{{x.a, block(x.a, 1)}, {y.b, block(y.b, 1)}};
  expect_error([&] { flow::push_all(of_two); },
               "sources of the graphs 'one' and 'other' were given");
  std::vector<block_for> twice{{x.a, block(x.a, 1)}, {x.a, block(x.a, 2)}};
  expect_error([&] { flow::push_all(twice); }, "the source of sum.a was given twice");
  std::vector<block_for> none{{x.a, block(x.a, 1)}, {x.b, datablock()}};
  expect_error([&] { flow::push_all(none); }, "no block was given");
  std::vector<block_for> small{{x.a, block(x.a, 1)},
                               {x.b, e.memory().make(block_template::of<word>(3))}};
  expect_error([&] { flow::push_all(small); }, "and it takes");
  for (const block_channel_stats& c : x.g.channels()) EXPECT_EQ(c.blocks, 0u);
}

TEST_P(push_all, ends_with_the_graph) {
  executor e(on(where(), 1));
  adder x(e);
  x.a.push(block(x.a, 1));
  x.a.push(block(x.a, 2));
  std::vector<block_for> both{{x.a, block(x.a, 3)}, {x.b, block(x.b, 4)}};
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    x.g.stop();
  });
  expect_error([&] { flow::push_all(both); }, "has ended");
  ends.join();
}

}  // namespace
}  // namespace grosr::flow
