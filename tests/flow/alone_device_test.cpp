// Elements that nothing else joins go on as tasks of their own, past the channel, and near: what is
// pushed is served once, also when there are many, and when nobody else would be served meanwhile.
#include <chrono>
#include <vector>

#include "grosr/flow/element_graph.hpp"
#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(alone);

/// Passes an element on `left` times; and on every `every`-th way another one, which is not.
struct relay {
  struct element {
    std::uint32_t left, every;
  };
  channel<element> next;
  std::uint64_t* served;
  GROSR_DEVICE void operator()(const element& e, auto& context) const {
    simt::atomic_ref(*served).fetch_add(std::uint64_t{1}, simt::relaxed);
    if (e.left == 0) return;
    next.push(context, element{e.left - 1, e.every});
    if (e.every != 0 && e.left % e.every == 0) next.push(context, element{0, 0});
  }
};

/// No function of it uses the stage, so that its tasks may be near.
using relays = element_graph<relay>;

element_graph_options small(unsigned sms = 2) {
  element_graph_options o;
  o.runtime.memory_limit = std::size_t{16} << 20;
  o.runtime.sms = sms;
  return o;
}

struct ring {
  relays graph;
  channel<relay::element> there, back;
  ring(const device& d, const element_graph_options& o, std::uint64_t* served)
      : graph(d, o), there(graph.channel<relay::element>()), back(graph.channel<relay::element>()) {
    graph.connect(there, relay{back, served});
    graph.connect(back, relay{there, served});
  }
  channel_stats sum() const {
    channel_stats all;
    for (const channel_stats& s : graph.stats()) {
      all.from_host += s.from_host;
      all.pushed += s.pushed;
      all.refused += s.refused;
      all.alone += s.alone;
      EXPECT_EQ(s.waiting, 0u);
    }
    return all;
  }
};

TEST_P(alone, chains_of_single_elements) {
  auto& served = keep<std::uint64_t>(1);
  const std::uint32_t hops = scaled(4000, 200);
  ring r(where(), small(), served.data());
  std::uint64_t expected = 0;
  for (const std::uint32_t chains : {1u, 3u, 40u, 1u})
    for (const std::uint32_t every : {0u, 7u}) {
      r.graph.push(r.there, std::vector<relay::element>(chains, {hops / chains, every}));
      r.graph.wait();
      const std::uint32_t ways = hops / chains;
      expected += std::uint64_t{chains} * (1 + ways + (every != 0 ? ways / every : 0));
      ASSERT_EQ(contents(served)[0], expected) << chains << " chains, every " << every;
    }
  EXPECT_TRUE(r.graph.errors().empty());
  const channel_stats s = r.sum();
  EXPECT_EQ(s.from_host + s.pushed + s.refused + s.alone, expected);
  EXPECT_EQ(s.refused, 0u);
  EXPECT_GT(s.pushed, 0u);  // what was not the first of its run
  // At small scales sanitizers run, under which no run is short.
  if (where().is_cuda() && scale() > 0.1) {
    EXPECT_GT(s.alone, hops / 2);
  }
}

// Where all workers have work, elements are collected.
TEST_P(alone, many_chains_at_once) {
  auto& served = keep<std::uint64_t>(1);
  const std::uint32_t chains = scaled(4096, 64), hops = 20;
  ring r(where(), small(), served.data());
  r.graph.push(r.there, std::vector<relay::element>(chains, {hops, 3}));
  r.graph.wait();
  EXPECT_EQ(contents(served)[0], std::uint64_t{chains} * (1 + hops + hops / 3));
  const channel_stats s = r.sum();
  EXPECT_EQ(s.from_host + s.pushed + s.refused + s.alone, contents(served)[0]);
}

/// Goes on until what it pushed beside, long after it began, has been served.
struct waits_for_another {
  using element = std::uint32_t;
  channel<std::uint32_t> next, other;
  std::uint32_t* done;
  GROSR_DEVICE void operator()(const std::uint32_t& step, auto& context) const {
    simt::atomic_ref<std::uint32_t> word(*done);
    if (step == 0) word.store(1, simt::relaxed);
    if (word.load(simt::relaxed) != 0) return;
    next.push(context, step + 1);
    if (step == 500) other.push(context, 0);
  }
};

// A chain that goes on holds nobody up whom it pushed into a channel, though nobody else looks
// there.
TEST_P(alone, what_is_pushed_beside_is_served) {
  auto& done = keep<std::uint32_t>(1);
  element_graph_options o = small();
  o.limit = std::chrono::seconds(60);
  element_graph<waits_for_another> g(where(), o);
  const auto next = g.channel<std::uint32_t>({.patience_us = 0}),
             other = g.channel<std::uint32_t>({.patience_us = 0});
  g.connect(next, waits_for_another{next, other, done.data()});
  g.connect(other, waits_for_another{next, other, done.data()});
  for (int round = 0; round < 3; ++round) {
    done.copy_from(std::vector<std::uint32_t>(1));
    g.push(next, 1u);
    g.wait();
    EXPECT_EQ(contents(done)[0], 1u);
  }
  if (where().is_cuda() && scale() > 0.1) {  // as above
    EXPECT_GT(g.stats()[0].alone, 0u);
  }
}

TEST(alone_seeded, in_1000_schedules) {
  std::uint32_t round = 0;
  std::uint64_t went_alone = 0;
  simt::buffer<std::uint64_t> served(device(), simt::space::device, 1);
  for_seeds(1000, [&] {
    const std::uint32_t n = round++, chains = 1 + n % 3, every = n % 4;
    served.copy_from(std::vector<std::uint64_t>(1));
    ring r(device(), small(1 + n % 2), served.data());
    for (std::uint64_t again = 1; again <= 2; ++again) {
      r.graph.push(r.there, std::vector<relay::element>(chains, {12, every}));
      r.graph.wait();
      std::vector<std::uint64_t> got(1);
      served.copy_to(got);
      EXPECT_EQ(got[0], again * chains * (13 + (every != 0 ? 12 / every : 0)));
    }
    went_alone += r.sum().alone;
  });
  if (scale() >= 1) {  // in a few schedules of a thousand
    EXPECT_GT(went_alone, 0u);
  }
}

}  // namespace
}  // namespace grosr::testing
