#include "grosr/graph/statistics.hpp"

#include <atomic>
#include <mutex>

#include "graph/host_threads.hpp"

namespace grosr::graphs {

graph_statistics statistics_of(const csr_graph& g, const host_work& how) {
  host_threads threads(how);
  const host_threads::stage stage(threads, "counting edges");
  huge_vector<unsigned char> entered;
  if (g.directed) {
    entered.assign(g.vertices(), 0);
    parallel_for(threads, g.entries(), [&](std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t i = first; i < last; ++i)
        std::atomic_ref(entered[g.column[i]]).store(1, std::memory_order_relaxed);
    });
  }
  graph_statistics all;
  std::mutex adding;
  parallel_for(threads, g.vertices(), [&](std::uint64_t first, std::uint64_t last) {
    graph_statistics some;
    for (std::uint64_t v = first; v < last; ++v) {
      const std::uint32_t degree = g.row[v + 1] - g.row[v];
      if (degree == 0 && (!g.directed || entered[v] == 0)) ++some.without_edges;
      if (some.greatest == no_vertex || degree > some.greatest_degree) {
        some.greatest_degree = degree;
        some.greatest = static_cast<vertex>(v);
      }
    }
    const std::lock_guard lock(adding);
    all.without_edges += some.without_edges;
    if (all.greatest == no_vertex || some.greatest_degree > all.greatest_degree ||
        (some.greatest_degree == all.greatest_degree && some.greatest < all.greatest)) {
      all.greatest_degree = some.greatest_degree;
      all.greatest = some.greatest;
    }
  });
  return all;
}

}  // namespace grosr::graphs
