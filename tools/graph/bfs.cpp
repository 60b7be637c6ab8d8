// `grosr graph bfs`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/text.hpp"
#include "graph/algorithm.hpp"
#include "graph/search_trace.hpp"
#include "graph/source.hpp"
#include "grosr/graph/reference/check.hpp"
#include "grosr/graph/reference/reference.hpp"

namespace grosr::tool {
namespace {

using graphs::csr_graph, graphs::vertex;

class bfs_job final : public graph_job {
 public:
  bfs_job(const csr_graph& g, const graphs::device_graph& on, vertex source)
      : g_(g), source_(source), search_(on) {}

  void run(const graphs::progress_callback& between) override { search_.run(source_, between); }
  void fetch() override;
  std::string wrong() const override { return graphs::wrong_bfs(g_, source_, distance_, parent_); }
  double edges() const override {
    return static_cast<double>(g_.directed ? entries_ : entries_ / 2);
  }
  std::string outcome() const override {
    return fmt::format("from vertex {}: {} of {} vertices reached, the farthest by {} edges",
                       number(source_), grouped(reached_), grouped(g_.vertices()),
                       grouped(levels_));
  }
  void add_values(row& r) const override {
    r.set("reached_vertices", reached_).set("levels", levels_).set("searched_edges", edges());
  }
  void add_result(nlohmann::ordered_json& result) const override {
    result["source"] = number(source_);
    result["reached"] = reached_;
    result["levels"] = levels_;
  }
  void write(graphs::results_file& to) const override;
  void add_trace(nlohmann::ordered_json& trace) const override {
    trace["traceEvents"] = search_events(search_.steps());
  }
  std::size_t bytes() const override { return search_.bytes(); }
  std::size_t runtime_bytes() const override { return search_.stats().memory; }

 private:
  std::uint64_t number(vertex v) const { return std::uint64_t{g_.first} + v; }  // the input's

  const csr_graph& g_;
  const vertex source_;
  graphs::bfs search_;
  std::vector<std::uint32_t> distance_;
  std::vector<vertex> parent_;
  std::uint32_t reached_ = 0, levels_ = 0;
  std::uint64_t entries_ = 0;  // of the vertices reached
};

void bfs_job::fetch() {
  distance_ = search_.distances();
  parent_ = search_.parents();
  reached_ = levels_ = 0;
  entries_ = 0;
  for (vertex v = 0; v < g_.vertices(); ++v) {
    if (distance_[v] == graphs::no_distance) continue;
    ++reached_;
    levels_ = std::max(levels_, distance_[v]);
    entries_ += g_.row[v + 1] - g_.row[v];
  }
}

void bfs_job::write(graphs::results_file& to) const {
  for (vertex v = 0; v < g_.vertices(); ++v) {
    to.field(number(v));
    if (distance_[v] == graphs::no_distance) {
      to.no_field();
      to.no_field();
    } else {
      to.field(distance_[v]);
      to.field(number(parent_[v]));
    }
    to.end_line();
  }
}

class bfs_command final : public graph_algorithm {
 public:
  std::string name() const override { return "bfs"; }
  std::string summary() const override {
    return "Breadth-first search: from one vertex to all that it leads to, by the fewest edges";
  }
  std::string lines() const override {
    return "vertex distance parent, as the input numbers them; - where it was not reached";
  }
  std::string checking() const override {
    return "distances and parents, by the rules of Graph500";
  }
  std::string footer() const override {
    return "Edges per second are counted as Graph500 does: edges of the component that was "
           "reached,\n"
           "over the time (median) of a search; in a directed graph, edges out of vertices "
           "reached.\n"
           "The time is from the call until labels are in device memory. The source's parent is\n"
           "itself. Weights are ignored.\n\n"
           "Examples:\n"
           "  grosr graph bfs kronecker:20 --check\n"
           "  grosr graph bfs USA-road-d.USA.gr.gz --source 1 --output distances.txt\n"
           "  grosr graph bfs soc-LiveJournal1.txt.gz --undirected --repeat 20 --json bfs.json\n"
           "  grosr graph bfs random:4M,degree=4 --trace bfs-trace.json";
  }
  bool traces() const override { return true; }
  void add_options(CLI::App& command) override { source_.add_to(command); }
  void read_options() override { source_.read(); }
  void prepare(graphs::loaded& input) override {
    begin_ = source_.choose(input);
    input.g.weight = graphs::huge_vector<float>();
  }
  std::unique_ptr<graph_job> start(const csr_graph& g, const graphs::device_graph& on) override {
    return std::make_unique<bfs_job>(g, on, begin_);
  }

 private:
  source_option source_;
  vertex begin_ = 0;
};

}  // namespace

std::unique_ptr<graph_algorithm> make_bfs_command() { return std::make_unique<bfs_command>(); }

}  // namespace grosr::tool
