// Searches a graph through an installed GROSR.
#include <cstdio>
#include <grosr/graph/bfs.hpp>
#include <grosr/graph/io/input.hpp>
#include <grosr/graph/reference/check.hpp>

int main() {
  const grosr::graphs::loaded input = grosr::graphs::load("grid:20x30");
  const grosr::graphs::device_graph on(grosr::device::best(), input.g);
  grosr::graphs::bfs search(on);
  search.run(0);
  const auto wrong = grosr::graphs::wrong_bfs(input.g, 0, search.distances(), search.parents());
  std::printf("%s: %s\n", input.what.c_str(), wrong.empty() ? "right" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}
