// `grosr graph sssp`.
#include "grosr/graph/sssp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/text.hpp"
#include "graph/algorithm.hpp"
#include "graph/source.hpp"
#include "grosr/graph/reference/check.hpp"
#include "grosr/graph/reference/reference.hpp"

namespace grosr::tool {
namespace {

using graphs::csr_graph, graphs::vertex;

class sssp_job final : public graph_job {
 public:
  sssp_job(const csr_graph& g, const graphs::device_graph& on, vertex source)
      : g_(g), source_(source), search_(on) {}

  void run(const graphs::progress_callback& between) override { search_.run(source_, between); }
  void fetch() override {
    distance_ = search_.distances();
    parent_ = search_.parents();
    reached_ = 0;
    farthest_ = 0;
    entries_ = 0;
    for (vertex v = 0; v < g_.vertices(); ++v) {
      if (std::isinf(distance_[v])) continue;
      ++reached_;
      farthest_ = std::max(farthest_, distance_[v]);
      entries_ += g_.row[v + 1] - g_.row[v];
    }
  }
  std::string wrong() const override {
    return graphs::wrong_shortest(g_, source_, distance_, parent_);
  }
  double edges() const override {
    return static_cast<double>(g_.directed ? entries_ : entries_ / 2);
  }
  std::string outcome() const override {
    return fmt::format("from vertex {}: {} of {} vertices reached, the farthest at {}",
                       number(source_), grouped(reached_), grouped(g_.vertices()), farthest_);
  }
  void add_values(row& r) const override {
    r.set("reached_vertices", reached_)
        .set("searched_edges", edges())
        .set("waves", search_.waves());
  }
  void add_result(nlohmann::ordered_json& result) const override {
    result["source"] = number(source_);
    result["reached"] = reached_;
    result["farthest"] = farthest_;
  }
  void write(graphs::results_file& to) const override {
    for (vertex v = 0; v < g_.vertices(); ++v) {
      to.field(number(v));
      if (std::isinf(distance_[v])) {
        to.no_field();
        to.no_field();
      } else {
        to.field(distance_[v]);
        to.field(number(parent_[v]));
      }
      to.end_line();
    }
  }
  std::size_t bytes() const override { return search_.bytes(); }
  std::size_t runtime_bytes() const override { return search_.stats().memory; }

 private:
  std::uint64_t number(vertex v) const { return std::uint64_t{g_.first} + v; }  // the input's

  const csr_graph& g_;
  const vertex source_;
  graphs::sssp search_;
  std::vector<float> distance_;
  std::vector<vertex> parent_;
  std::uint32_t reached_ = 0;
  float farthest_ = 0;
  std::uint64_t entries_ = 0;  // of the vertices reached
};

class sssp_command final : public graph_algorithm {
 public:
  std::string name() const override { return "sssp"; }
  std::string summary() const override {
    return "Shortest paths: from one vertex to all that it leads to, by the least sum of weights";
  }
  std::string lines() const override {
    return "vertex distance parent, as the input numbers them; - where it was not reached";
  }
  std::string checking() const override { return "distances, bit for bit, and parents"; }
  std::string footer() const override {
    return "A distance is the least sum of 32-bit floats over all paths, added from the source "
           "on.\n"
           "Edges of a graph without weights are 1 long; --random-weights gives it some.\n\n"
           "Examples:\n"
           "  grosr graph sssp USA-road-d.USA.gr.gz --source 1 --output distances.txt\n"
           "  grosr graph sssp grid:1000x1000 --random-weights 1 --check";
  }
  bool takes_weights() const override { return true; }
  void add_options(CLI::App& command) override { source_.add_to(command); }
  void read_options() override { source_.read(); }
  void prepare(graphs::loaded& input) override { begin_ = source_.choose(input); }
  std::unique_ptr<graph_job> start(const csr_graph& g, const graphs::device_graph& on) override {
    return std::make_unique<sssp_job>(g, on, begin_);
  }

 private:
  source_option source_;
  vertex begin_ = 0;
};

}  // namespace

std::unique_ptr<graph_algorithm> make_sssp_command() { return std::make_unique<sssp_command>(); }

}  // namespace grosr::tool
