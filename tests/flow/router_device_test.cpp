// Routers and functions that take batches: every element reaches its target once, however it is
// collected, and a batch holds what was pushed, and nothing else.
#include "grosr/flow/element_graph.hpp"

#include <numeric>

#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(routers);

element_graph_options small_graph() {
  element_graph_options o;
  o.runtime.memory_limit = std::size_t{16} << 20;
  o.runtime.sms = 2;
  return o;
}

struct item {
  static constexpr grosr::element_layout layout = grosr::element_layout::columns;
  std::uint64_t value;
  std::uint32_t key;
};

GROSR_DEVICE void add(std::uint64_t& to, std::uint64_t n) {
  simt::atomic_ref<std::uint64_t>(to).fetch_add(n, simt::relaxed);
}

/// Sends a number where it belongs.
struct scatter {
  using element = std::uint32_t;
  router<item> to;
  std::uint32_t beyond;  ///< added to the target
  GROSR_DEVICE void operator()(const std::uint32_t& v, auto& context) const {
    const std::uint32_t target = v % to.size();
    to.push(context, target + beyond, item{v, target});
  }
};

/// Target `key`: adds up, and counts what is not its own.
struct gather {
  using element = item;
  std::uint64_t *sum, *strays;
  std::uint32_t key;
  GROSR_DEVICE void operator()(const item& e, auto&) const {
    if (e.key != key) return add(*strays, 1);
    add(*sum, e.value);
  }
};

/// Takes batches: [0] adds up elements, [1] counts them, [2] batches, [3] the largest. Fails, in
/// one thread, where the value is `bad`.
template <grosr::width W, std::uint32_t Lot>
struct takes_batches {
  using element = item;
  static constexpr grosr::width width = W;
  static constexpr std::uint32_t batch = Lot;
  std::uint64_t* result;
  std::uint64_t bad;
  GROSR_DEVICE int operator()(const grosr::batch<item>& some, auto& context) const {
    int status = 0;
    // Each thread takes elements whose places others have looked up.
    for (std::uint32_t i = context.size() - 1 - context.rank(); i < some.size();
         i += context.size()) {
      const item e = some[i];
      add(result[0], e.value);
      add(result[1], 1);
      if (e.value == bad) status = -7;
    }
    if (context.rank() != 0) return status;
    add(result[2], 1);
    simt::atomic_ref<std::uint64_t> most(result[3]);
    std::uint64_t had = most.load(simt::relaxed);
    while (had < some.size() && !most.compare_exchange(had, some.size(), simt::relaxed)) {
    }
    return status;
  }
};
using of_warps = takes_batches<width::warp, 256>;
using of_blocks = takes_batches<width::block, 1024>;

/// Pushes what there is room for, and counts the rest.
struct attempt {
  using element = std::uint32_t;
  channel<item> to;
  std::uint64_t* refused;
  GROSR_DEVICE int operator()(const std::uint32_t& v, auto& context) const {
    if (!to.try_push(context, item{v, 0})) add(*refused, 1);
    if (to.reserve(context, 0) || to.reserve(context, 33)) return -1;
    auto three = to.reserve(context, 3);
    if (!three) {
      add(*refused, 3);
    } else {
      for (std::uint32_t i = 0; i < 3; ++i) three.write(i, item{v, 0});
      three.ready(context);
      if (three || three.size() != 0) return -2;
    }
    three.ready(context);  // there is nothing left to be made ready
    return 0;
  }
};

using routing = element_graph<scatter, gather, route<item>, of_warps, of_blocks, attempt>;

std::vector<std::uint32_t> numbers(std::size_t n) {
  std::vector<std::uint32_t> v(n);
  std::iota(v.begin(), v.end(), 1u);
  return v;
}

TEST_P(routers, every_element_reaches_its_target) {
  const auto values = numbers(scaled(3000, 500));
  for (const aggregation how : {aggregation::direct, aggregation::indirect, aggregation::by_count})
    for (const std::uint32_t targets : {1u, 5u, 40u})
      for (const std::uint32_t capacity : {64u, 4096u}) {
        auto& sums = keep<std::uint64_t>(targets + 1);
        sums.copy_from(std::vector<std::uint64_t>(targets + 1));
        routing g(where(), small_graph());
        std::vector<channel<item>> to;
        for (std::uint32_t k = 0; k < targets; ++k) {
          to.push_back(g.channel<item>({.capacity = capacity}));
          g.connect(to[k], gather{sums.data() + k, sums.data() + targets, k});
        }
        const auto r = g.router(to, {.aggregation = how, .capacity = 1024});
        EXPECT_EQ(r.indirect(), how == aggregation::indirect ||
                                    (how == aggregation::by_count && targets > direct_targets));
        const auto in = g.channel<std::uint32_t>();
        g.connect(in, scatter{r, 0});
        std::vector<std::uint64_t> expected(targets + 1);
        for (int round = 1; round <= 2; ++round) {
          g.push(in, values);
          g.wait();
          for (const std::uint32_t v : values) expected[v % targets] += v;
          EXPECT_EQ(contents(sums), expected) << targets << " targets, round " << round;
        }
        EXPECT_EQ(g.stats()[0].waiting, 0u);
        EXPECT_TRUE(g.errors().empty());
      }
}

TEST_P(routers, are_drawn) {
  for (const aggregation how : {aggregation::direct, aggregation::indirect}) {
    routing g(where(), small_graph());
    std::vector<channel<item>> to{g.channel<item>({.name = "a"}), g.channel<item>({.name = "b"})};
    const auto r = g.router(to, {.aggregation = how, .name = "by key"});
    const auto in = g.channel<std::uint32_t>({.name = "in"});
    g.connect(in, scatter{r, 0});
    g.connect(to[0], gather{});
    g.connect(to[1], gather{});
    const std::string dot = g.to_dot();
    const auto edges = how == aggregation::direct
                           ? std::vector<const char*>{"f2 -> c0;", "f2 -> c1;"}
                           : std::vector<const char*>{"f3 -> c2;", "f2 -> c0;", "f2 -> c1;"};
    for (const char* edge : edges) EXPECT_NE(dot.find(edge), std::string::npos) << dot;
    EXPECT_EQ(dot.find("f3 -> c0"), std::string::npos) << dot;
  }
}

TEST_P(routers, wrong_ones_are_named) {
  auto said = [](const error& e) { return std::string(e.what()); };
  routing g(where(), small_graph());
  const auto out = g.channel<item>();
  const auto in = g.channel<std::uint32_t>();
  EXPECT_NE(said(error_of([&] { g.router(std::vector<channel<item>>{}); })).find("to 0 channels"),
            std::string::npos);
  EXPECT_NE(said(error_of([&] {
              g.router(std::vector<channel<item>>{{}}, {.aggregation = aggregation::indirect});
            })).find("not one of"),
            std::string::npos);
  EXPECT_NE(said(error_of([&] {
              g.router(std::vector<channel<std::uint32_t>>{in},
                       {.aggregation = aggregation::indirect});
            })).find("add route<T>"),
            std::string::npos);
  EXPECT_NE(
      said(error_of([&] { g.channel<item>({.capacity = 64, .batch = 128}); })).find("1 to 64"),
      std::string::npos);
  const auto large = g.channel<item>({.batch = 64, .name = "large"});
  EXPECT_NE(said(error_of([&] { g.connect(large, gather{}); })).find("'large' has batches of 64"),
            std::string::npos);
  g.connect(large, of_warps{});
  g.connect(out, gather{});
  g.connect(in, scatter{g.router(std::vector<channel<item>>{out}), 1});
  g.push(in, std::vector<std::uint32_t>{1, 2, 3});
  const error e = error_of([&] { g.wait(); });
  EXPECT_EQ(e.code(), errc::misuse);
  EXPECT_NE(said(e).find("3 elements"), std::string::npos) << e.what();
}

template <class Node>
void check_batches(const device& d, simt::buffer<std::uint64_t>& result, std::uint32_t batch,
                   std::size_t n) {
  result.copy_from(std::vector<std::uint64_t>(4));
  routing g(d, small_graph());
  const auto out = g.channel<item>({.capacity = 2048, .batch = batch, .name = "batches"});
  g.connect(out, Node{result.data(), 0});
  const auto in = g.channel<std::uint32_t>();
  g.connect(in, scatter{g.router(std::vector<channel<item>>{out}), 0});
  const auto values = numbers(n);
  g.push(in, values);
  g.wait();
  std::vector<std::uint64_t> got(4);
  result.copy_to(got);
  EXPECT_EQ(got[0], std::uint64_t{n} * (n + 1) / 2);
  EXPECT_EQ(got[1], n);
  const auto stats = g.stats()[0];
  EXPECT_EQ(stats.batch, batch != 0 ? batch : Node::batch);
  EXPECT_EQ(got[2], stats.batches + stats.refused);
  EXPECT_LE(got[3], stats.batch);
  EXPECT_EQ(stats.batches * stats.batch, stats.pushed + stats.padded);
}

TEST_P(routers, functions_take_batches) {
  auto& result = keep<std::uint64_t>(4);
  for (const std::uint32_t batch : {1u, 32u, 64u, 0u})
    for (const std::size_t n : {std::size_t{1}, std::size_t{33}, scaled(3000, 400)}) {
      if (n > 100 * std::size_t{batch} && batch != 0) continue;  // a block for each element
      check_batches<of_warps>(where(), result, batch, n);
      check_batches<of_blocks>(where(), result, batch, n);
    }
}

TEST_P(routers, what_one_thread_returns_is_a_failure) {
  auto& result = keep<std::uint64_t>(8);
  result.copy_from(std::vector<std::uint64_t>(8));
  routing g(where(), small_graph());
  const auto warps = g.channel<item>(), blocks = g.channel<item>();
  g.connect(warps, of_warps{result.data(), 18});        // even ones
  g.connect(blocks, of_blocks{result.data() + 4, 17});  // odd ones
  const auto in = g.channel<std::uint32_t>();
  g.connect(in, scatter{g.router(std::vector<channel<item>>{warps, blocks}), 0});
  g.push(in, numbers(40));
  g.wait();
  EXPECT_EQ(g.errors().size(), 2u);
  g.push(warps, item{18, 0});  // by itself
  g.wait();
  EXPECT_EQ(g.errors().size(), 3u);
  for (const task_error& e : g.errors()) EXPECT_EQ(e.code, -7);
  g.stop(std::chrono::seconds(60));  // all workers have told what they counted
  EXPECT_EQ(g.scheduler_stats().failed, 3u);
}

TEST_P(routers, what_is_refused_is_not_there) {
  auto& result = keep<std::uint64_t>(8);
  result.copy_from(std::vector<std::uint64_t>(8));
  routing g(where(), small_graph());
  const auto to = g.channel<item>({.capacity = 64, .batch = 64});
  g.connect(to, of_blocks{result.data(), 0});
  const auto in = g.channel<std::uint32_t>();
  g.connect(in, attempt{to, result.data() + 4});
  const std::size_t n = scaled(2000, 300);
  g.push(in, numbers(n));
  g.wait();
  const auto got = contents(result);
  EXPECT_EQ(got[1] + got[4], 4 * n);
  EXPECT_GT(got[1], 0u);
  EXPECT_TRUE(g.errors().empty());
}

TEST(routers_seeded, in_100_schedules) {
  std::uint32_t round = 0;
  simt::buffer<std::uint64_t> sums(device(), simt::space::device, 4);
  for_seeds(100, [&] {
    const std::uint32_t n = round++;
    sums.copy_from(std::vector<std::uint64_t>(4));
    element_graph_options o = small_graph();
    o.runtime.sms = 1 + n % 2;
    routing g(device(), o);
    std::vector<channel<item>> to;
    for (std::uint32_t k = 0; k < 3; ++k) {
      to.push_back(g.channel<item>({.capacity = 64, .batch = n % 4 != 0 ? 0 : 2u << n % 5}));
      g.connect(to[k], gather{sums.data() + k, sums.data() + 3, k});
    }
    const auto in = g.channel<std::uint32_t>();
    g.connect(in, scatter{g.router(to, {.aggregation = n % 3 != 0 ? aggregation::indirect
                                                                  : aggregation::direct,
                                        .capacity = 1024}),
                          0});
    std::vector<std::uint64_t> expected(4), got(4);
    for (int again = 0; again < 2; ++again) {
      const auto values = numbers(1 + n % 150);
      g.push(in, values);
      g.wait();
      for (const std::uint32_t v : values) expected[v % 3] += v;
      sums.copy_to(got);
      EXPECT_EQ(got, expected);
    }
  });
}

}  // namespace
}  // namespace grosr::testing
