// Ranks on the resident runtime are as near to exact ones as was asked for.
#include "grosr/graph/pagerank.hpp"

#include <sys/resource.h>

#include "grosr/graph/reference/check.hpp"
#include "small_graphs.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

GROSR_DEVICE_SUITE(pagerank_on);
using testing::scaled;

std::string wrong(const device& d, const csr_graph& g, const pagerank_options& o) {
  const device_graph on(d, g);
  pagerank search(on, o);
  for (unsigned i = 0; i < 2; ++i) {
    search.run();
    // Floats are rounded besides.
    const std::string w = wrong_ranks(g, o.damping, search.ranks(), o.tolerance + 1e-5);
    if (!w.empty()) return w;
  }
  return "";
}

TEST_P(pagerank_on, small_graphs) {
  pagerank_options o;
  o.tolerance = 1e-3f;
  for_small_graphs(40, 10, 40, [&](const csr_graph& g) { EXPECT_EQ(wrong(where(), g, o), ""); });
}

TEST_P(pagerank_on, any_damping_any_tolerance) {
  const std::uint64_t count = scaled(16, testing::slowdown == 1 ? 4 : 1);
  const std::uint64_t first = testing::first_of_slice(16, count) - 1;
  for (std::uint64_t i = first; i < first + count; ++i) {
    std::mt19937 random(static_cast<std::uint32_t>(i));
    const vertex n = 100 + random() % 400;
    const csr_graph g =
        random_graph(random, n, n * (1 + random() % 4), random() % 2 != 0, weights::none);
    pagerank_options o;
    o.damping = std::array{0.0f, 0.5f, 0.85f, 0.95f}[i % 4];
    o.tolerance = random() % 2 != 0 ? 1e-2f : 1e-5f;
    ASSERT_EQ(wrong(where(), g, o), "") << "graph " << i;
  }
}

// The host backend's threads sleep while all of their lanes wait, not from step to step.
TEST(pagerank_on_host, does_not_sleep_through_its_rounds) {
  std::mt19937 random(5);
  const csr_graph g = random_graph(random, 1000, 10'000, false, weights::none);
  const device_graph on(device("host:0"), g);
  pagerank search(on);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  search.run();
  getrusage(RUSAGE_SELF, &after);
  EXPECT_GT(search.rounds(), 10u);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // where all waits are longer
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 30 * long{search.rounds()});
#endif
}

TEST_P(pagerank_on, hubs) {
  std::vector<test_edge> edges;
  std::mt19937 random(3);
  for (vertex v = 3; v < 400; ++v) {
    edges.push_back({v % 3, v});
    edges.push_back({v, static_cast<vertex>(random() % 400)});
  }
  for (const bool directed : {false, true})
    EXPECT_EQ(wrong(where(), make_graph(400, edges, directed), {}), "");
}

TEST_P(pagerank_on, refuses_what_cannot_be) {
  const csr_graph g = make_graph(2, {{0, 1}}, false);
  const device_graph on(where(), g);
  for (const float damping : {1.0f, -0.1f, std::nanf("")}) {
    pagerank_options o;
    o.damping = damping;
    EXPECT_THROW(pagerank(on, o), grosr::error);
  }
  pagerank_options o;
  o.tolerance = 0;
  EXPECT_THROW(pagerank(on, o), grosr::error);
}

}  // namespace
}  // namespace grosr::graphs
