// What searches are compared with is right as well: other ways to drive a breadth-first search.
#include "baselines/graph/bfs_kernel.hpp"
#include "baselines/graph/bfs_launched.hpp"
#include "baselines/graph/bfs_tasks.hpp"
#include "grosr/graph/bfs.hpp"
#include "grosr/graph/reference/check.hpp"
#include "shapes.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::graphs {
namespace {

GROSR_DEVICE_SUITE(bfs_drivers_on);

/// Whether graph `number` of 4 is searched by launches: thousands of fibers, most of which find
/// nothing to do. Sanitizers follow them for one graph.
bool launches_for(std::uint64_t number) {
  return testing::slowdown == 1 || number == testing::first_of_slice(4, 1);
}

TEST_P(bfs_drivers_on, every_other_driver) {
  for (const driver how : {driver::waits, driver::ahead, driver::loop, driver::cooperative}) {
    if (how == driver::loop && !where().is_cuda()) continue;
    std::uint64_t number = 0;
    for (const csr_graph& g : {grid(8), chain(30), hubs(300, 4, false), hubs(300, 4, true)}) {
      if (!launches_for(++number)) continue;
      const device_graph on(where(), g);
      for (const unsigned blocks : {0u, where().is_cuda() ? 3u : 1u}) {
        launched_bfs search(on, how, blocks);
        for (const vertex s : {vertex{0}, g.vertices() / 2}) {
          search.run(s);
          EXPECT_EQ(wrong_bfs(g, s, search.distances(), search.parents()), "") << name_of(how);
        }
      }
    }
  }
}

TEST_P(bfs_drivers_on, a_kernel_of_its_own) {
  for (const csr_graph& g :
       {grid(8), grid(40), chain(30), hubs(300, 4, false), hubs(300, 4, true)}) {
    const device_graph on(where(), g);
    for (const unsigned blocks : {1u, 3u, 0u}) {
      if (blocks == 3 && where().properties().sms <= 3) continue;  // as many as there can be
      kernel_bfs search(on, blocks);
      for (const vertex s : {vertex{0}, g.vertices() / 2, vertex{1}}) {
        search.run(s);
        EXPECT_EQ(wrong_bfs(g, s, search.distances(), search.parents()), "") << blocks << " blocks";
      }
    }
  }
}

TEST_P(bfs_drivers_on, a_task_a_vertex) {
  for (const csr_graph& g : {grid(8), chain(30), hubs(300, 4, false), hubs(300, 4, true)}) {
    const device_graph on(where(), g);
    bfs right(on);
    task_bfs search(on);
    for (const vertex s : {vertex{0}, g.vertices() / 2}) {
      right.run(s);
      search.run(s);
      EXPECT_EQ(search.distances(), right.distances()) << g.vertices() << " vertices, from " << s;
    }
  }
}

TEST_P(bfs_drivers_on, a_loop_needs_a_gpu) {
  const csr_graph g = chain(3);
  const device_graph on(where(), g);
  if (!where().is_cuda()) {
    EXPECT_THROW(launched_bfs(on, driver::loop), grosr::error);
  }
}

}  // namespace
}  // namespace grosr::graphs
