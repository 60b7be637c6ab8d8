// What the system says about memory, and what graphs need.
#include "graph/io/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "graph/io/words.hpp"
#include "grosr/graph/csr_graph.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::graphs {
namespace {

constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

std::uint64_t number_in(const char* path) {
  std::uint64_t n = unknown;
  std::ifstream file(path);
  return file >> n ? n : unknown;  // "max" is no number
}

}  // namespace

// Edges are scattered into entries, and freed; of these the ones that stay are copied.
std::uint64_t size_of_graph::to_build() const {
  const std::uint64_t edge = weighted ? 12 : 8, entry = weighted ? 8 : 4;
  return 8 * vertices + std::max(edges * edge + entries() * entry, entries() * entry * 2);
}

std::uint64_t size_of_graph::finished() const {
  return 4 * vertices + entries() * (weighted ? 8 : 4);
}

std::uint64_t available_memory() {
  std::uint64_t available = unknown;
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    std::uint64_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) available = kib * 1024;
    std::getline(file, unit);
  }
  const std::uint64_t most = number_in("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (most != unknown && used != unknown)
    available = std::min(available, most - std::min(most, used));
  return available;
}

void require(const size_of_graph& size, std::uint64_t bytes, std::uint64_t available,
             const std::string& where) {
  if (size.vertices > most_vertices)
    throw error(errc::bad_input, fmt::format("{}: {} vertices; a graph has {} at most", where,
                                             grouped(size.vertices), grouped(most_vertices)));
  if (size.edges > most_entries || size.entries() > most_entries)
    throw error(errc::bad_input,
                fmt::format("{}: {} {}edges; a graph has {} at most", where, grouped(size.edges),
                            size.undirected ? "undirected " : "",
                            grouped(size.undirected ? most_entries / 2 : most_entries)));
  if (bytes > available)
    throw error(
        errc::bad_input,
        fmt::format("{}: {} vertices and {} edges need {} of memory, of which {} is free; take a "
                    "smaller graph, "
                    "or a machine with more",
                    where, grouped(size.vertices), grouped(size.edges), bytes_text(bytes),
                    bytes_text(available)));
}

}  // namespace grosr::graphs
