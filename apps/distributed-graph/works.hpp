// An algorithm to be measured: on the ranks of a world, and beside it by other means.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph_on_ranks.hpp"
#include "measure/row.hpp"

namespace grosr::distributed {

/// What only one of the algorithms needs.
struct parameters {
  graphs::vertex source = 0;
  float delta = 0;          ///< of graph_on_ranks::shortest_paths()
  float tolerance = 1e-4f;  ///< of PageRank
};

/// Made once for a graph; may run many times.
class work {
 public:
  virtual ~work() = default;
  /// The same by other means, before anything is on the ranks: `beside_what()`. Times of runs, us.
  virtual std::vector<double> beside(unsigned repeats) = 0;
  virtual std::string beside_what() const = 0;
  virtual void begin() = 0;  ///< copies the graph to the ranks
  virtual void run() = 0;
  virtual void fetch() = 0;               ///< brings the results of the last run
  virtual std::string wrong() const = 0;  ///< what is wrong with them; empty: nothing
  virtual double edges() const = 0;       ///< that a run is said to have gone along
  virtual void add_values(tool::row& r) const = 0;
  virtual std::uint32_t rounds() const = 0;
  virtual std::vector<net::rank_stats> stats() const = 0;
};

struct named_work {
  const char *name, *text;
  bool symmetric;  ///< of a graph that has each edge in both directions
  std::unique_ptr<work> (*make)(const placement& p, const graphs::csr_graph& g,
                                const parameters& how);
};
const std::vector<named_work>& all_works();

}  // namespace grosr::distributed
