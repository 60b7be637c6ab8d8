// Breadth-first search of a graph from a file or a generator, checked: `search roads.gr.gz`. Links
// grosr::graph.
#include <algorithm>
#include <cstdio>

#include <grosr/graph/bfs.hpp>
#include <grosr/graph/io/input.hpp>
#include <grosr/graph/reference/check.hpp>
#include <grosr/graph/reference/reference.hpp>

namespace graphs = grosr::graphs;

int main(int argc, char** argv) try {
  const graphs::loaded input = graphs::load(argc > 1 ? argv[1] : "grid:20x30");
  const graphs::device_graph on(grosr::device::best(), input.g);
  graphs::bfs search(on);
  search.run(0);
  const auto distances = search.distances();

  std::uint32_t levels = 0, reached = 0;
  for (const std::uint32_t d : distances) {
    if (d == graphs::no_distance) continue;
    ++reached;
    levels = std::max(levels, d);
  }
  const auto wrong = graphs::wrong_bfs(input.g, 0, distances, search.parents());
  std::printf("%s: %u of %u vertices reached, the farthest by %u edges%s%s\n", input.what.c_str(),
              reached, input.g.vertices(), levels, wrong.empty() ? "" : "; WRONG: ", wrong.c_str());
  return wrong.empty() ? 0 : 1;
} catch (const grosr::error& e) {
  std::fprintf(stderr, "search: %s\n", e.what());
  return 1;
}
