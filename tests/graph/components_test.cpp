// Components on the resident runtime are those that union-find on the CPU finds.
#include "grosr/graph/components.hpp"

#include "grosr/graph/reference/check.hpp"
#include "small_graphs.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

GROSR_DEVICE_SUITE(components_on);
using testing::scaled;

std::string wrong(const device& d, const csr_graph& g) {
  const device_graph on(d, g);
  components search(on);
  for (unsigned i = 0; i < 2; ++i) {
    search.run();
    const std::string w = wrong_components(g, search.labels());
    if (!w.empty()) return w;
  }
  return "";
}

TEST_P(components_on, small_graphs) {
  for_small_graphs(60, 15, 40, [&](const csr_graph& g) { EXPECT_EQ(wrong(where(), g), ""); });
}

TEST_P(components_on, random_graphs_of_any_density) {
  for (std::uint64_t i = 0; i < scaled(20, 5); ++i) {
    std::mt19937 random(static_cast<std::uint32_t>(i));
    const vertex n = 1000 + random() % 4000;
    const csr_graph g =
        random_graph(random, n, n / 4 + random() % (2 * n), random() % 2 != 0, weights::none);
    ASSERT_EQ(wrong(where(), g), "") << "graph " << i;
  }
}

TEST_P(components_on, chains_and_hubs) {
  std::vector<test_edge> edges;
  for (vertex v = 0; v + 1 < 2000; ++v) edges.push_back({1999 - v, 1998 - v});
  for (vertex v = 2001; v < 4000; ++v) edges.push_back({v, 2000});
  for (const bool directed : {false, true})
    EXPECT_EQ(wrong(where(), make_graph(4100, edges, directed)), "");
}

}  // namespace
}  // namespace grosr::graphs
