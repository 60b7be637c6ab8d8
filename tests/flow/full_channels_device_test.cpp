// Channels that are full, and inputs that are late: who waits, what is dropped, and what is said.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "support/devices.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(full_channels);

constexpr std::size_t n = 300;
const block_template array() { return block_template::of<word>(n); }
const block_template one() { return block_template::of<word>(1); }
std::vector<word> numbers(word first, std::size_t count = n) {
  return tested::numbers(first, count);
}

TEST_P(full_channels, hold_back_whoever_pushes_into_what_is_full) {
  executor e(on(where(), 2));
  graph g(e);
  std::atomic<bool> open{false};
  const node slow = g.host("slow",
                           [&](in<word> a, out<word> b) {
                             while (!open) std::this_thread::yield();
                             b[0] = a[0];
                           },
                           {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(slow["a"], {.capacity = 2});
  const auto to = g.sink<word>(slow["b"], {.capacity = 10});
  g.compile();
  datablock b = from.make();
  b.write<word>()[0] = 1;
  // One in the function, one at its input, two in the channel.
  int pushed = 0;
  while (pushed < 4 && from.push_for(b, std::chrono::seconds(60))) ++pushed;
  EXPECT_EQ(pushed, 4);
  EXPECT_FALSE(from.push_for(b, std::chrono::milliseconds(50)));
  EXPECT_FALSE(from.try_push(b));
  EXPECT_FALSE(to.try_pull());
  EXPECT_FALSE(to.pull_for(std::chrono::milliseconds(5)));
  EXPECT_EQ(g.channels()[0].blocks, 4u);
  std::thread late([&] { from.push(b); });
  open = true;
  late.join();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(to.pull().read<word>()[0], 1u);
  g.wait();
  EXPECT_EQ(g.channels()[1].blocks, 5u);
  EXPECT_EQ(g.channels()[0].dropped, 0u);
}

TEST_P(full_channels, that_no_memory_has_room_for_are_refused_at_once) {
  executor e(on(where(), 0));
  graph g(e);
  const node pass =
      g.host("pass", [](in<word> a, out<word> b) { b[0] = a[0]; }, {{"a", one()}, {"b", one()}});
  g.source<word>(pass["a"], {.capacity = 4'294'967'295u});
  g.sink<word>(pass["b"]);
  expect_error([&] { g.compile(); }, "lower the capacity of its channels");
}

TEST_P(full_channels, complete_when_there_is_room_for_what_they_made) {
  executor e(on(where(), 1));
  graph g(e);
  const node make =
      g.host("make", [](in<word> a, out<word> b) { b[0] = a[0]; }, {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(make["a"], {.capacity = 10});
  const auto to = g.sink<word>(make["b"], {.capacity = 2});
  g.compile();
  for (word i = 0; i < 8; ++i) from.push(std::vector<word>{i});
  g.wait();
  EXPECT_EQ(g.nodes()[0].runs, 3u);  // two in the channel, one that nobody takes yet
  for (word i = 0; i < 8; ++i) EXPECT_EQ(to.pull_elements()[0], i);
  g.wait();
  EXPECT_EQ(g.nodes()[0].runs, 8u);
}

TEST_P(full_channels, let_go_what_is_old_where_that_is_asked_for) {
  for (const when_full full : {when_full::drop_oldest, when_full::latest}) {
    executor e(on(where(), 0));
    graph g(e);
    const node pass =
        g.host("pass", [](in<word> a, out<word> b) { b[0] = a[0]; }, {{"a", one()}, {"b", one()}});
    const auto from = g.source<word>(pass["a"], {.capacity = 3, .full = full});
    const auto to = g.sink<word>(pass["b"], {.capacity = 20});
    g.compile();
    for (word i = 0; i < 10; ++i) from.push(std::vector<word>{i});
    g.wait();
    // 0 lies at the input; of the others those that the channel kept.
    std::vector<word> got;
    while (const datablock b = to.try_pull()) got.push_back(b.read<word>()[0]);
    const std::vector<word> expected = full == when_full::drop_oldest
                                           ? std::vector<word>{0, 7, 8, 9}
                                           : std::vector<word>{0, 7, 8, 9};
    if (full == when_full::drop_oldest) {
      EXPECT_EQ(got, expected);
    } else {
      EXPECT_EQ(got.front(), 0u);
      EXPECT_EQ(got.back(), 9u);
    }
    EXPECT_EQ(g.channels()[0].dropped, 10 - got.size());
  }
}

TEST_P(full_channels, say_which_input_is_late) {
  std::int64_t now = 0;
  executor_options o = on(where(), 0);
  o.clock = [&] { return now; };
  executor e(o);
  graph g(e, {.name = "late"});
  const node sum =
      g.kernel("sum", sum_of_two{},
               {{"a", array()},
                {.name = "b", .shape = array(), .deadline = std::chrono::milliseconds(3)},
                {"c", array()}});
  const auto a = g.source<word>(sum["a"]), b = g.source<word>(sum["b"]);
  const auto c = g.sink<word>(sum["c"]);
  g.compile();
  e.step();
  now += 10'000'000;  // nothing is waited for yet
  e.step();
  EXPECT_TRUE(g.events().empty());
  for (int round = 1; round <= 2; ++round) {
    a.push(numbers(0));
    now += 3'000'000;
    e.step();
    EXPECT_EQ(g.events().size(), round - 1u);
    now += 2'000'000;
    for (int i = 0; i < 3; ++i) e.step();
    ASSERT_EQ(g.events().size(), static_cast<unsigned>(round));  // once
    EXPECT_NE(g.events()[0].find("input sum.b has had no block for 5000 us"), std::string::npos)
        << g.events()[0];
    b.push(numbers(0));
    c.pull();
  }
}

// An output for which one channel has no room goes into the others.
TEST_P(full_channels, hold_nobody_back_for_a_channel_beside) {
  executor e(on(where()));
  graph g(e);
  const node first =
      g.host("first", [](in<word> a, out<word> b) { b[0] = a[0]; }, {{"a", one()}, {"b", one()}});
  const auto full = g.sink<word>(first["b"]);
  const node second =
      g.host("second", [](in<word> a, out<word> b) { b[0] = a[0]; }, {{"a", one()}, {"b", one()}});
  g.connect(first["b"], second["a"]);
  const auto from = g.source<word>(first["a"]);
  const auto to = g.sink<word>(second["b"]);
  g.compile();
  for (word i = 0; i < 2; ++i) {
    from.push(std::vector<word>{i});
    EXPECT_EQ(to.pull_elements()[0], i);
  }
  for (word i = 0; i < 2; ++i) EXPECT_EQ(full.pull_elements()[0], i);
}

TEST_P(full_channels, say_which_input_is_late_with_threads_that_sleep) {
  executor e(on(where(), 2));
  graph g(e);
  const node sum =
      g.kernel("sum", sum_of_two{},
               {{"a", array()},
                {.name = "b", .shape = array(), .deadline = std::chrono::milliseconds(1)},
                {"c", array()}});
  const auto a = g.source<word>(sum["a"]), b = g.source<word>(sum["b"]);
  const auto c = g.sink<word>(sum["c"]);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  g.compile();
  a.push(numbers(0));
  while (g.events().empty()) std::this_thread::yield();
  b.push(numbers(0));
  c.pull();
}

// A source of several inputs has room when all of them have.
TEST_P(full_channels, of_one_source_are_filled_together) {
  executor e(on(where()));
  graph g(e);
  const auto array = block_template::of<word>(4);
  const node slow = g.host("slow", [](in<word>, in<word>) {}, {{"a", array}, {"b", array}});
  const node quick = g.kernel("quick", plus{1}, {{"a", array}, {"b", array}});
  const auto both = g.source<word>({quick["a"], slow["a"]}, {.capacity = 2});
  const auto other = g.source<word>(slow["b"]);
  const auto to = g.sink<word>(quick["b"], {.capacity = 10});
  g.compile();
  for (word i = 0; i < 3; ++i) both.push(numbers(i, 4));  // one lies at the input
  EXPECT_FALSE(both.try_push([&] {
    datablock b = both.make();
    b.write<word>()[0] = 0;
    return b;
  }()));
  for (word i = 0; i < 3; ++i) EXPECT_EQ(to.pull_elements()[0], i + 1);
  std::thread frees([&] { other.push(numbers(0, 4)); });
  both.push(numbers(3, 4));
  frees.join();
  EXPECT_EQ(to.pull_elements()[0], 4u);
  graph h(e);
  const node two = h.host("two", [](in<word>, in<word>) {}, {{"a", array}, {"b", array}});
  expect_error([&] { h.source<word>(std::vector<port_ref>{}); }, "no input was named");
  expect_error(
      [&] {
        h.source<word>({two["a"], two["b"]}, {.full = when_full::latest});
      },
      "let them block");
}

}  // namespace
}  // namespace grosr::flow
