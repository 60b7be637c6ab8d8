// Flow graphs: what is pushed is served once, whatever the shape of the graph, the width of its
// functions and the size of its channels; and then wait() returns.
#include "grosr/flow/element_graph.hpp"

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(graphs);

element_graph_options small_graph() {
  element_graph_options o;
  o.runtime.memory_limit = std::size_t{16} << 20;
  o.runtime.sms = 2;
  return o;
}

/// Adds what comes.
template <grosr::width W>
struct adder {
  using element = std::uint32_t;
  static constexpr grosr::width width = W;
  std::uint64_t* sum;
  GROSR_DEVICE int operator()(const std::uint32_t& v, auto& context) const {
    if (context.size() != (W == width::lane ? 1 : W == width::warp ? 32 : run::block_threads))
      return -1;
    context.sync();
    if (context.rank() == 0) simt::atomic_ref(*sum).fetch_add(std::uint64_t{v}, simt::relaxed);
    return 0;
  }
};

/// Sends what comes to one of three.
struct sorter {
  using element = std::uint32_t;
  channel<std::uint32_t> to[3];
  GROSR_DEVICE void operator()(const std::uint32_t& v, auto& context) const {
    to[v % 3].push(context, v);
  }
};

/// The thesis's example: a cycle, whose leaves count.
struct fib_node {
  using element = std::uint32_t;
  channel<std::uint32_t> next;
  std::uint64_t* result;
  std::uint32_t at_once;
  GROSR_DEVICE void operator()(const std::uint32_t& n, auto& context) const {
    if (n < 2) {
      if (n == 1) simt::atomic_ref(*result).fetch_add(std::uint64_t{1}, simt::relaxed);
      return;
    }
    if (at_once) {
      if (auto two = next.reserve(context, 2)) {
        two[0] = n - 1;
        two.write(1, n - 2);
        two.ready(context);
        return;
      }
    }
    next.push(context, n - 1);
    next.push(context, n - 2);
  }
};

/// Passes on until it has gone `hops` rounds.
struct hop {
  std::uint32_t value, hops;
};
struct pass_on {
  using element = hop;
  channel<hop> next;
  channel<std::uint32_t> out;
  GROSR_DEVICE void operator()(const hop& h, auto& context) const {
    if (h.hops == 0) return out.push(context, h.value);
    next.push(context, hop{h.value, h.hops - 1});
  }
};

/// Fails for odd ones.
struct picky {
  using element = std::uint32_t;
  GROSR_DEVICE int operator()(const std::uint32_t& v, auto&) const {
    return v % 2 != 0 ? -static_cast<int>(v) : 0;
  }
};

/// Never comes to rest.
struct echo {
  using element = std::uint32_t;
  channel<std::uint32_t> self;
  GROSR_DEVICE void operator()(const std::uint32_t& v, auto& context) const {
    if (!context.aborted()) self.push(context, v);
  }
};

/// Sends on what comes, and then does not end until the gate opens.
struct busy {
  using element = std::uint32_t;
  const std::uint32_t* gate;  ///< pinned
  channel<std::uint32_t> next;
  GROSR_DEVICE void operator()(const std::uint32_t& v, auto& context) const {
    next.push(context, v);
    simt::atomic_ref<std::uint32_t, simt::scope::system> word(const_cast<std::uint32_t&>(*gate));
    simt::wait_until([&] { return word.load(simt::acquire) != 0 || context.aborted(); },
                     simt::forever, nullptr, "the gate");
  }
};

// Few graphs: each is a kernel.
using all_kinds = element_graph<sorter, adder<width::lane>, adder<width::warp>, adder<width::block>,
                                fib_node, pass_on, picky, on_host<std::uint32_t>>;
using long_ones = element_graph<echo, busy, on_host<std::uint32_t>>;

TEST_P(graphs, fan_out_to_every_width) {
  auto& sums = keep<std::uint64_t>(3);
  sums.copy_from(std::vector<std::uint64_t>(3));
  all_kinds g(where(), small_graph());
  const auto in = g.channel<std::uint32_t>({.name = "in"});
  const auto a = g.channel<std::uint32_t>({.capacity = 64, .name = "lanes"});
  const auto b = g.channel<std::uint32_t>({.capacity = 64, .batch = 4, .name = "warps"});
  const auto c = g.channel<std::uint32_t>({.capacity = 64, .name = "blocks"});
  g.connect(in, sorter{{a, b, c}});
  g.connect(a, adder<width::lane>{sums.data()});
  g.connect(b, adder<width::warp>{sums.data() + 1});
  g.connect(c, adder<width::block>{sums.data() + 2});
  std::vector<std::uint32_t> values(scaled(900, 300) / 3 * 3);
  std::iota(values.begin(), values.end(), 0u);
  std::vector<std::uint64_t> expected(3);
  for (int round = 0; round < 2; ++round) {
    g.push(in, values);
    g.wait();
    for (std::uint32_t v : values) expected[v % 3] += v;
    EXPECT_EQ(contents(sums), expected);
  }
  EXPECT_TRUE(g.errors().empty());
  const auto s = g.stats();
  ASSERT_EQ(s.size(), 4u);
  EXPECT_EQ(s[0].from_host, 2 * values.size());
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(s[i].pushed + s[i].refused + s[i].alone, 2 * values.size() / 3) << s[i].name;
    EXPECT_EQ(s[i].waiting, 0u);
    EXPECT_EQ(s[i].batches * s[i].batch, s[i].pushed + s[i].padded);
  }
  const std::string dot = g.to_dot();
  for (const char* piece :
       {"digraph", "\"lanes: ", "f0 -> c1;", "f0 -> c2;", "f0 -> c3;", "c0 -> f0;"})
    EXPECT_NE(dot.find(piece), std::string::npos) << piece << " is not in\n" << dot;
  EXPECT_EQ(dot.find("f1 ->"), std::string::npos) << dot;
}

std::uint64_t fib_of(std::uint32_t n) {
  std::uint64_t a = 0, b = 1;
  for (; n != 0; --n) a = std::exchange(b, a + b);
  return a;
}

TEST_P(graphs, a_cycle_in_bounded_memory) {
  auto& result = keep<std::uint64_t>(1);
  const std::uint32_t n = scaled_depth(19, 12);
  for (std::uint32_t capacity : {64u, 1024u, 16384u})
    for (std::uint32_t at_once : {0u, 1u}) {
      result.copy_from(std::vector<std::uint64_t>(1));
      all_kinds g(where(), small_graph());
      const auto c = g.channel<std::uint32_t>({.capacity = capacity, .name = "fib"});
      g.connect(c, fib_node{c, result.data(), at_once});
      g.push(c, n);
      g.wait();
      EXPECT_EQ(contents(result)[0], fib_of(n)) << capacity;
      EXPECT_LE(g.scheduler_stats().memory, small_graph().runtime.memory_limit);
      EXPECT_EQ(g.scheduler_stats().rejected, 0u);
      // What went through the channel, and what went past it, is all that there was.
      const channel_stats s = g.stats().at(0);
      const std::string dot = g.to_dot();
      EXPECT_NE(dot.find("\"fib: " + std::to_string(s.pushed + s.from_host) + "\""),
                std::string::npos)
          << dot;
      const std::uint64_t past = s.refused + s.alone;
      const bool shown =
          dot.find("past fib, as tasks: " + std::to_string(past) + "\"") != std::string::npos;
      EXPECT_EQ(shown, past != 0) << dot;
    }
}

TEST_P(graphs, functions_of_the_host_take_part) {
  element_graph_options o = small_graph();
  o.host_records = 32;
  std::atomic<std::uint64_t> sum{0}, count{0};
  const auto n = static_cast<std::uint32_t>(scaled(400, 100));
  all_kinds g(where(), o);
  const auto a = g.channel<hop>({.capacity = 64}), b = g.channel<hop>({.capacity = 64});
  const auto out = g.channel<std::uint32_t>({.name = "out"});
  g.connect(a, pass_on{b, out});
  g.connect(b, pass_on{a, out});
  g.connect(out, [&](std::span<const std::uint32_t> values) {
    std::vector<hop> more;
    for (std::uint32_t v : values) {
      sum += v;
      ++count;
      if (v < n) more.push_back({v + n, 2});  // once more round
    }
    g.push(a, more);
  });
  std::vector<hop> hops;
  for (std::uint32_t i = 0; i < n; ++i) hops.push_back({i, i % 5});
  g.push(a, hops);
  g.wait();
  EXPECT_EQ(count, 2u * n);
  EXPECT_EQ(sum, std::uint64_t{n} * (n - 1) + std::uint64_t{n} * n);
}

TEST_P(graphs, several_threads_may_wait) {
  std::atomic<std::uint32_t> count{0};
  all_kinds g(where(), small_graph());
  const auto a = g.channel<hop>(), b = g.channel<hop>();
  const auto out = g.channel<std::uint32_t>();
  g.connect(a, pass_on{b, out});
  g.connect(b, pass_on{a, out});
  g.connect(out, [&](std::span<const std::uint32_t> values) {
    for (std::uint32_t v : values) {
      ++count;
      if (v != 0) g.push(a, hop{v - 1, 1});  // the host's part of a cycle
    }
  });
  for (std::uint32_t round = 1; round <= 20; ++round) {
    g.push(a, hop{4, 1});
    std::vector<std::thread> waiters;
    std::atomic<std::uint32_t> early{0};
    for (int i = 0; i < 3; ++i)
      waiters.emplace_back([&] {
        g.wait();
        if (count != 5 * round) ++early;
      });
    for (std::thread& t : waiters) t.join();
    EXPECT_EQ(early, 0u) << round;
  }
}

TEST_P(graphs, end_with_work_left_and_a_host_that_is_slow) {
  element_graph_options o = small_graph();
  o.limit = std::chrono::milliseconds(100);
  o.host_records = 32;
  const auto began = std::chrono::steady_clock::now();
  {
    all_kinds g(where(), o);
    const auto out = g.channel<std::uint32_t>();
    g.connect(out, [](std::span<const std::uint32_t>) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    g.push(out, std::vector<std::uint32_t>(5000));
    EXPECT_EQ(error_of([&] { g.wait(); }).code(), errc::watchdog);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST_P(graphs, refuse_records_that_no_ring_can_have) {
  element_graph_options o = small_graph();
  o.host_records = 48;
  all_kinds g(where(), o);
  const error e = error_of(
      [&] { g.connect(g.channel<std::uint32_t>(), [](std::span<const std::uint32_t>) {}); });
  EXPECT_EQ(e.code(), errc::invalid_option);
  EXPECT_NE(std::string(e.what()).find("host_records: a capacity of 48"), std::string::npos);
}

TEST_P(graphs, stop_waits_for_the_host) {
  std::atomic<std::uint32_t> count{0};
  all_kinds g(where(), small_graph());
  const auto out = g.channel<std::uint32_t>();
  g.connect(out, [&](std::span<const std::uint32_t> v) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    count += static_cast<std::uint32_t>(v.size());
  });
  g.push(out, std::vector<std::uint32_t>(1000));
  g.stop(std::chrono::seconds(60));
  EXPECT_EQ(count, 1000u);
  EXPECT_EQ(error_of([&] { g.push(out, 1u); }).code(), errc::stopped);
}

// However fast they push: what was pushed before is served, and nothing after it is taken.
TEST_P(graphs, stop_does_not_wait_for_those_who_push) {
  std::atomic<std::uint64_t> pushed{0}, served{0};
  all_kinds g(where(), small_graph());
  const auto out = g.channel<std::uint32_t>();
  g.connect(out, [&](std::span<const std::uint32_t> v) { served += v.size(); });
  std::vector<std::thread> pushers;
  for (int i = 0; i < 2; ++i)
    pushers.emplace_back([&] {
      const std::vector<std::uint32_t> some(300);
      const error e = error_of([&] {
        for (;;) {
          g.push(out, some);
          pushed += some.size();
        }
      });
      EXPECT_EQ(e.code(), errc::stopped) << e.what();
    });
  while (pushed < 3000) std::this_thread::yield();
  EXPECT_NO_THROW(g.stop(std::chrono::seconds(60)));
  for (std::thread& t : pushers) t.join();
  EXPECT_EQ(served, pushed);
}

TEST_P(graphs, of_another_graph_is_no_place_for_elements) {
  all_kinds g(where(), small_graph()), other(where(), small_graph());
  const auto in = g.channel<std::uint32_t>(), theirs = other.channel<std::uint32_t>();
  g.connect(in, sorter{{theirs, theirs, {}}});
  g.push(in, std::vector<std::uint32_t>{1, 2, 3, 4});
  const error e = error_of([&] { g.wait(); });
  EXPECT_EQ(e.code(), errc::misuse);
  EXPECT_NE(std::string(e.what()).find("4 elements"), std::string::npos) << e.what();
  g.wait();  // said once
}

TEST_P(graphs, what_the_host_throws_arrives) {
  all_kinds g(where(), small_graph());
  const auto c = g.channel<std::uint32_t>();
  g.connect(c, [](std::span<const std::uint32_t>) { throw error(errc::misuse, "no more"); });
  g.push(c, 1u);
  EXPECT_STREQ(error_of([&] { g.wait(); }).what(), "no more");
  {
    all_kinds others(where(), small_graph());
    const auto thrower = others.channel<std::uint32_t>();
    EXPECT_EQ(error_of([&] {
                others.connect(thrower, std::function<void(std::span<const std::uint32_t>)>());
              }).code(),
              errc::misuse);
    others.connect(thrower, [&](std::span<const std::uint32_t>) {
      EXPECT_EQ(error_of([&] { others.wait(); }).code(), errc::misuse);
      throw std::runtime_error("not one of ours");
    });
    others.push(thrower, 1u);
    EXPECT_THROW(others.wait(), std::runtime_error);
  }
}

TEST_P(graphs, failures_are_kept_with_their_elements) {
  all_kinds g(where(), small_graph());
  const auto in = g.channel<std::uint32_t>(), out = g.channel<std::uint32_t>();
  g.connect(in, sorter{{out, out, out}});
  g.connect(out, picky{});
  g.push(in, std::vector<std::uint32_t>{1, 2, 3, 4, 5});
  g.wait();
  EXPECT_EQ(g.errors().size(), 3u);
  std::uint32_t seen = 0;
  for (const task_error& e : g.errors()) {
    std::uint32_t v = 0;
    ASSERT_GE(e.arguments.size(), 12u);
    __builtin_memcpy(&v, e.arguments.data() + 8, sizeof v);
    EXPECT_EQ(e.code, -static_cast<int>(v));
    EXPECT_EQ(e.type, "grosr::testing::picky");  // not serve_one<...>
    seen |= 1u << v;
  }
  EXPECT_EQ(seen, 1u << 1 | 1u << 3 | 1u << 5);
}

TEST_P(graphs, one_that_never_rests_says_which_channel_grows) {
  element_graph_options o = small_graph();
  o.limit = std::chrono::milliseconds(200);
  auto g = std::make_unique<long_ones>(where(), o);
  const auto in = g->channel<std::uint32_t>({.name = "calm"});
  const auto c = g->channel<std::uint32_t>({.name = "rounds"});
  g->connect(in, echo{c});
  g->connect(c, echo{c});
  g->push(in, 1u);
  const error e = error_of([&] { g->wait(); });
  EXPECT_EQ(e.code(), errc::watchdog);
  EXPECT_NE(std::string(e.what()).find("'rounds'"), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("echo"), std::string::npos) << e.what();
  EXPECT_THROW(g->stop(std::chrono::milliseconds(1)), error);
}

TEST_P(graphs, wrong_ones_are_named) {
  auto said = [](const error& e) { return std::string(e.what()); };
  all_kinds g(where(), small_graph());
  const auto in = g.channel<std::uint32_t>({.name = "in"});
  const auto out = g.channel<std::uint32_t>({.name = "out"});
  g.connect(in, sorter{{out, out, out}});
  EXPECT_NE(said(error_of([&] { g.execute(); })).find("'out' has no function"), std::string::npos);
  EXPECT_NE(said(error_of([&] { g.push(in, 1u); })).find("'out' has no function"),
            std::string::npos);
  EXPECT_NE(said(error_of([&] { g.connect(in, picky{}); })).find("'in' has a function already"),
            std::string::npos);
  EXPECT_NE(said(error_of([&] { g.channel<std::uint32_t>({.capacity = 33}); })).find("33"),
            std::string::npos);
  g.connect(out, picky{});
  g.push(in, 2u);
  g.wait();
  EXPECT_NE(said(error_of([&] { g.channel<std::uint32_t>(); })).find("began to run"),
            std::string::npos);
  all_kinds other(where(), small_graph());
  EXPECT_NE(said(error_of([&] { other.push(in, 1u); })).find("no channels"), std::string::npos);
}

// Small graphs, where all comes to rest again and again: nothing is forgotten then.
TEST(graphs_seeded, in_1000_schedules) {
  std::uint32_t round = 0;
  simt::buffer<std::uint64_t> result(device(), simt::space::device, 2);
  for_seeds(1000, [&] {
    const std::uint32_t n = round++;
    result.copy_from(std::vector<std::uint64_t>(2));
    element_graph_options o = small_graph();
    o.runtime.sms = 1 + n % 2;
    all_kinds g(device(), o);
    const auto calls = g.channel<std::uint32_t>({.capacity = 64, .batch = 1u << n % 6});
    const auto sorted = g.channel<std::uint32_t>(), sums = g.channel<std::uint32_t>();
    g.connect(calls, fib_node{calls, result.data(), n % 3 == 0 ? 1u : 0u});
    g.connect(sorted, sorter{{sums, sums, sums}});
    g.connect(sums, adder<width::lane>{result.data() + 1});
    for (std::uint64_t again = 1; again <= 3; ++again) {
      g.push(calls, 7u);
      g.push(sorted, std::vector<std::uint32_t>{1, 2, 3});
      g.wait();
      std::vector<std::uint64_t> got(2);
      result.copy_to(got);
      EXPECT_EQ(got[0], again * 13);
      EXPECT_EQ(got[1], again * 6);
    }
  });
}

/// Elements that nobody would complete to a batch are served while their producer is busy.
TEST_P(graphs, few_elements_do_not_wait_for_a_busy_producer) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  gate[0] = 0;
  std::atomic<std::uint32_t> came{0};
  long_ones g(where(), small_graph());
  const auto in = g.channel<std::uint32_t>(), out = g.channel<std::uint32_t>();
  g.connect(in, busy{gate.data(), out});
  g.connect(
      out, [&](std::span<const std::uint32_t> v) { came += static_cast<std::uint32_t>(v.size()); });
  g.push(in, 7u);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (came == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(came, 1u);
  simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
  g.wait();
}

}  // namespace
}  // namespace grosr::testing
