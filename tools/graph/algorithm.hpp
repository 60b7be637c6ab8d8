// An algorithm as `grosr graph` offers it. One a file here; graph_algorithms() has them all.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "grosr/graph/bfs.hpp"
#include "grosr/graph/device_graph.hpp"
#include "grosr/graph/io/input.hpp"
#include "grosr/graph/io/results_file.hpp"
#include "measure/row.hpp"

namespace grosr::tool {

/// An algorithm that is ready to run on a graph that is on the device.
class graph_job {
 public:
  virtual ~graph_job() = default;
  virtual void run(const graphs::progress_callback& between) = 0;
  virtual void fetch() = 0;  ///< brings the result of the last run, which the rest is about
  virtual std::string wrong() const = 0;    ///< what is wrong with it; empty: nothing
  virtual double edges() const = 0;         ///< edges that a run is said to have gone along
  virtual std::string outcome() const = 0;  ///< "from vertex 1: 265 vertices reached"
  virtual void add_values(row& r) const = 0;
  virtual void add_result(nlohmann::ordered_json& result) const = 0;
  virtual void write(graphs::results_file& to) const = 0;  ///< a line a vertex
  /// What the last run did when: "traceEvents" of the Trace Event Format. Where traces().
  virtual void add_trace(nlohmann::ordered_json&) const {}
  virtual std::size_t bytes() const = 0;  ///< device memory besides the graph and the runtime's
  virtual std::size_t runtime_bytes() const = 0;
};

/// The command. One lives as long as the program, and its options with it.
class graph_algorithm {
 public:
  virtual ~graph_algorithm() = default;
  virtual std::string name() const = 0;      ///< "bfs"
  virtual std::string summary() const = 0;   ///< "Breadth-first search: ..."
  virtual std::string lines() const = 0;     ///< of --output: "vertex distance parent"
  virtual std::string checking() const = 0;  ///< what --check does
  virtual std::string footer() const = 0;    ///< of the help: what numbers mean, examples
  virtual bool takes_weights() const { return false; }
  virtual bool traces() const { return false; }
  virtual void add_options(CLI::App& command) = 0;
  /// Before the graph is loaded: refuses options that are wrong for every graph, by usage_error.
  virtual void read_options() = 0;
  /// Refuses those that are wrong for this one, and frees of it what the algorithm does not need.
  virtual void prepare(graphs::loaded& input) = 0;
  virtual std::unique_ptr<graph_job> start(const graphs::csr_graph& g,
                                           const graphs::device_graph& on) = 0;
};

std::unique_ptr<graph_algorithm> make_bfs_command();
std::unique_ptr<graph_algorithm> make_sssp_command();
std::unique_ptr<graph_algorithm> make_cc_command();
std::unique_ptr<graph_algorithm> make_pagerank_command();

inline std::vector<std::shared_ptr<graph_algorithm>> graph_algorithms() {
  std::vector<std::shared_ptr<graph_algorithm>> all;
  all.push_back(make_bfs_command());
  all.push_back(make_sssp_command());
  all.push_back(make_cc_command());
  all.push_back(make_pagerank_command());
  return all;
}

}  // namespace grosr::tool
