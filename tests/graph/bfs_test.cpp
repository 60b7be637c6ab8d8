// Breadth-first search on the resident runtime finds what the CPU finds, in every phase.
#include "grosr/graph/bfs.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "grosr/graph/detail/labels.hpp"
#include "grosr/graph/reference/check.hpp"
#include "shapes.hpp"
#include "small_graphs.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

GROSR_DEVICE_SUITE(bfs_on);
using testing::scaled;

/// Numbers so small that little graphs meet hubs, full rings and full queues.
wave_tuning tiny() {
  wave_tuning t;
  t.share_above = 4;
  t.heavy = 40;
  t.much = t.much_if_all_fit = 64;
  t.few_vertices = 2;
  t.few_edges = 16;
  return t;
}

std::string wrong(const device& d, const csr_graph& g, const search_options& o,
                  std::vector<vertex> sources) {
  const device_graph on(d, g);
  bfs search(on, o);
  for (const vertex s : sources) {
    search.run(s);
    std::string w = wrong_bfs(g, s, search.distances(), search.parents());
    if (!w.empty()) return "from " + std::to_string(s) + ": " + w;
  }
  return "";
}

TEST_P(bfs_on, small_graphs) {
  for_small_graphs(24, 8, 40, [&](const csr_graph& g) {
    if (g.vertices() == 0) return;
    search_options o;
    EXPECT_EQ(wrong(where(), g, o, {0, g.vertices() - 1}), "");
  });
}

TEST_P(bfs_on, chains) {
  for (const vertex n : {1u, 2u, 127u, 400u})
    EXPECT_EQ(wrong(where(), chain(n), {}, {0, n - 1, n / 2}), "") << n;
}

/// Where ways part, meet and end, one warp alone follows some and hands over to the block.
TEST_P(bfs_on, paths_that_part_and_meet) {
  for (std::uint64_t i = 0; i < scaled(30, 8); ++i) {
    std::mt19937 random(static_cast<std::uint32_t>(i));
    const vertex n = 200 + random() % 400, every = 3 + random() % 60;
    std::vector<test_edge> edges;
    for (vertex v = 0; v + 1 < n; ++v)
      if (random() % 200 != 0) edges.push_back({v, v + 1});
    for (vertex v = every; v < n; v += every)
      edges.push_back({v, static_cast<vertex>(random() % n)});
    // A hub at the end of a way, whose vertices go on.
    for (vertex v = 0; i % 3 == 0 && v < 150; ++v)
      edges.push_back({n - 1, static_cast<vertex>(random() % n)});
    search_options o;
    if (i % 2 != 0) o.tuning = tiny();
    ASSERT_EQ(wrong(where(), make_graph(n, edges, random() % 4 == 0), o, {0, n / 2, n - 1}), "")
        << "graph " << i;
  }
}

TEST_P(bfs_on, grids_shared_among_members) {
  search_options o;
  EXPECT_EQ(wrong(where(), grid(24), o, {0, 300}), "");
  o.tuning = tiny();
  EXPECT_EQ(wrong(where(), grid(24), o, {0, 300, 575}), "");
  o.tuning.much = o.tuning.much_if_all_fit = 500;
  EXPECT_EQ(wrong(where(), grid(40), o, {0, 777}), "");
}

TEST_P(bfs_on, hubs_in_both_directions) {
  for (const bool directed : {false, true}) {
    const csr_graph g = hubs(1500, 5, directed);
    search_options o;
    EXPECT_EQ(wrong(where(), g, o, {0, 700}), "");
    o.tuning = tiny();
    EXPECT_EQ(wrong(where(), g, o, {0, 700, 3}), "");
    o.tuning.alpha = 1'000'000;  // bottom-up at once
    EXPECT_EQ(wrong(where(), g, o, {0, 700}), "");
  }
}

TEST_P(bfs_on, queues_too_small_for_a_level) {
  for (const bool directed : {false, true}) {
    const csr_graph g = hubs(1500, 5, directed);
    search_options o;
    o.tuning = tiny();
    o.tuning.alpha = 1;
    for (const std::uint32_t capacity : {40u, 150u}) {
      o.capacity = capacity;
      EXPECT_EQ(wrong(where(), g, o, {0, 700}), "") << capacity;
    }
  }
}

// Members run ahead of each other, and a wave ends while some hold farther entries than others.
TEST_P(bfs_on, waves_that_end_anywhere) {
  for (std::uint64_t i = 0; i < scaled(60, 10); ++i) {
    std::mt19937 random(static_cast<std::uint32_t>(i));
    const vertex n = 100 + random() % 900;
    const csr_graph g = random() % 2 != 0
                            ? random_graph(random, n, n * 2, random() % 2 != 0, weights::none)
                            : hubs(n, 1 + random() % 9, random() % 2 != 0);
    search_options o;
    o.tuning.share_above = 2 + random() % 30;
    o.tuning.much = o.tuning.much_if_all_fit = 10 + random() % 400;
    o.tuning.heavy = random() % 200;
    o.tuning.few_vertices = random() % 100;
    o.tuning.few_edges = random() % 500;
    o.tuning.alpha = 1 + random() % 100;
    o.tuning.beta = 1 + random() % 100;
    o.tuning.dense = 1 + random() % 12;
    o.tuning.many = random() % 3 == 0 ? 1 + random() % 40 : 1024;
    if (random() % 4 == 0) o.capacity = 30 + random() % 100;
    ASSERT_EQ(wrong(where(), g, o, {0, n / 2}), "") << "graph " << i;
  }
}

bool has_step(const bfs& search, const std::string& name) {
  const std::vector<search_step> all = search.steps();
  return std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.name == name; });
}

// Where the rings hold all vertices twice, a wave goes on beyond what else would end it.
TEST_P(bfs_on, waves_go_on_where_all_vertices_fit) {
  std::mt19937 random(5);
  search_options o;
  o.members = 1;  // rings of two blocks, 1,024 entries
  o.tuning.much = 16;
  for (const vertex n : {300u, 3000u}) {
    const csr_graph g = random_graph(random, n, n * 3, false, weights::none);
    const device_graph on(where(), g);
    bfs search(on, o);
    for (const vertex source : {0u, n / 2}) {
      search.run(source);
      EXPECT_EQ(wrong_bfs(g, source, search.distances(), search.parents()), "");
      EXPECT_EQ(has_step(search, "inspect"), n == 3000) << n << " from " << source;
    }
  }
}

// 32 vertices of a round have 31 others each: all of the ring, and 480 more entries.
TEST_P(bfs_on, a_round_that_overfills_the_ring) {
  std::vector<test_edge> edges;
  vertex n = 1;
  for (vertex child = 0; child < 32; ++child) edges.push_back({0, n++});
  for (vertex v = 1; v <= 32; ++v)
    for (vertex child = 0; child < 31; ++child) edges.push_back({v, n++});
  for (vertex v = 33; v <= 1024; ++v) {
    edges.push_back({v, n});
    edges.push_back({n, n + 1});
    n += 2;
  }
  const csr_graph g = make_graph(n, edges, false);
  for (const std::uint32_t much : {160u, 448u}) {
    search_options o;
    o.tuning.much = o.tuning.much_if_all_fit = much;
    const device_graph on(where(), g);
    bfs search(on, o);
    search.run(0);
    EXPECT_EQ(wrong_bfs(g, 0, search.distances(), search.parents()), "") << much;
    EXPECT_TRUE(has_step(search, "inspect")) << much;
  }
}

TEST_P(bfs_on, one_member_is_enough) {
  search_options o;
  o.members = 1;
  o.tuning = tiny();
  EXPECT_EQ(wrong(where(), hubs(800, 3, false), o, {0, 5}), "");
}

// A leader waits a moment for the next search: some come in that time, some after it.
TEST_P(bfs_on, searches_follow_each_other_at_any_pace) {
  std::mt19937 random(7);
  for (const csr_graph& g : {chain(60), hubs(600, 4, false), hubs(300, 4, true)}) {
    const device_graph on(where(), g);
    bfs search(on, {});
    for (std::uint64_t i = 0; i < scaled(80, 12); ++i) {
      const vertex s = static_cast<vertex>(random() % g.vertices());
      search.run(s);
      ASSERT_EQ(wrong_bfs(g, s, search.distances(), search.parents()), "") << i << " from " << s;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3 * 150));
    }
  }
}

// Each search's distances are all less than those of the ones before, until labels are reset.
TEST(distance_offsets, go_down_and_begin_again) {
  for (const vertex n : {vertex{1}, vertex{1000}, vertex{1} << 30, ~vertex{0} - 1, ~vertex{0}}) {
    distance_offsets bases(n);
    unsigned fresh = 0;
    std::uint64_t before = 0;
    for (unsigned i = 0; i < 12; ++i) {
      const auto b = bases.next();
      EXPECT_EQ(bases.base(), b.base);
      EXPECT_LT(std::uint64_t{b.base} + n - 1, unreached);
      if (b.fresh != 0)
        ++fresh;
      else
        EXPECT_LT(std::uint64_t{b.base} + n, before) << n << " vertices, search " << i;
      before = b.base;
      if (i != 7) bases.ended();
      if (i == 0 || i == 8) {
        EXPECT_NE(b.fresh, 0u);  // the first one, and the one after a search that did not end
      }
    }
    EXPECT_EQ(fresh, n <= 1000 ? 2u : n == vertex{1} << 30 ? 5u : 12u);
  }
}

// One search is one task: what it does on the way tells that it goes on.
TEST_P(bfs_on, searches_longer_than_the_watchdog_waits) {
  using ms = std::chrono::milliseconds;
  search_options o;
  // One warp alone follows a chain for so many steps that sanitizers take a second for them.
  o.runtime.watchdog = ms(testing::slowdown == 1 ? 500 : 4000);
  const auto took = [&](vertex n) {
    const device_graph on(where(), chain(n));
    bfs search(on, o);
    const auto began = std::chrono::steady_clock::now();
    search.run(0);
    const auto ended = std::chrono::steady_clock::now();
    EXPECT_EQ(search.distances().back(), n - 1);
    return std::max(std::chrono::duration_cast<ms>(ended - began), ms(1));
  };
  std::int64_t n = 1'000;
  for (ms last; (last = took(static_cast<vertex>(n))) < o.runtime.watchdog * 3 / 2;) {
    ASSERT_FALSE(HasFailure());
    n *= std::max<std::int64_t>(2, o.runtime.watchdog * 2 / last);
    if (n > 2'000'000) GTEST_SKIP() << "a search is never that long here";
  }
}

}  // namespace
}  // namespace grosr::graphs
