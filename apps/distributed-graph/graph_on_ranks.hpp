// Algorithms on a graph whose vertices lie on several ranks, which send each other messages.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grosr/graph/csr_graph.hpp"
#include "ranks/placement.hpp"

namespace grosr::distributed {

enum class algorithm : std::uint8_t { pagerank, shortest_paths, colouring };

using ranks::placement;

/// The ranks have the vertices in turn, each with the edges that leave it.
/// Made for one algorithm: others may not be run. After a run, its results.
class graph_on_ranks {
 public:
  /// Copies the graph. A graph that is coloured has each edge in both directions. Throws
  /// grosr::error.
  graph_on_ranks(const placement& p, const graphs::csr_graph& g, algorithm what);
  ~graph_on_ranks();

  /// As graphs::pagerank.
  void pagerank(float damping, float tolerance);
  std::vector<float> ranks() const;

  /// As graphs::sssp, with its delta; infinity: not reached.
  void shortest_paths(graphs::vertex source, float delta = 0);
  std::vector<float> distances() const;

  /// As first_fit() in colours.hpp.
  void colour();
  std::vector<std::uint32_t> colours() const;

  /// How often the host waited for all ranks in the last run.
  std::uint32_t rounds() const;
  std::vector<net::rank_stats> stats() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::distributed
