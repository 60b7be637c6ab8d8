// `grosr graph cc`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/text.hpp"
#include "graph/algorithm.hpp"
#include "grosr/graph/components.hpp"
#include "grosr/graph/reference/check.hpp"

namespace grosr::tool {
namespace {

using graphs::csr_graph, graphs::vertex;

class cc_job final : public graph_job {
 public:
  cc_job(const csr_graph& g, const graphs::device_graph& on) : g_(g), search_(on) {}

  void run(const graphs::progress_callback& between) override { search_.run(between); }
  void fetch() override {
    label_ = search_.labels();
    std::vector<vertex> size(label_.size());
    for (const vertex l : label_) ++size[l];
    components_ = static_cast<vertex>(size.size() - std::count(size.begin(), size.end(), 0u));
    largest_ = *std::max_element(size.begin(), size.end());
  }
  std::string wrong() const override { return graphs::wrong_components(g_, label_); }
  double edges() const override { return static_cast<double>(g_.edges()); }
  std::string outcome() const override {
    return fmt::format("{} components of {} vertices, the largest has {}", grouped(components_),
                       grouped(g_.vertices()), grouped(largest_));
  }
  void add_values(row& r) const override {
    r.set("components", components_).set("largest_vertices", largest_);
  }
  void add_result(nlohmann::ordered_json& result) const override {
    result["components"] = components_;
    result["largest"] = largest_;
  }
  void write(graphs::results_file& to) const override {
    for (vertex v = 0; v < g_.vertices(); ++v) {
      to.field(std::uint64_t{g_.first} + v);
      to.field(std::uint64_t{g_.first} + label_[v]);
      to.end_line();
    }
  }
  std::size_t bytes() const override { return search_.bytes(); }
  std::size_t runtime_bytes() const override { return search_.stats().memory; }

 private:
  const csr_graph& g_;
  graphs::components search_;
  std::vector<vertex> label_;
  vertex components_ = 0, largest_ = 0;
};

class cc_command final : public graph_algorithm {
 public:
  std::string name() const override { return "cc"; }
  std::string summary() const override {
    return "Connected components; of a directed graph the weakly connected ones";
  }
  std::string lines() const override {
    return "vertex component, which is the least vertex in it, as the input numbers them";
  }
  std::string checking() const override { return "all components, found again on the CPU"; }
  std::string footer() const override {
    return "Edges per second are the graph's edges over the time (median) of a run.\n\n"
           "Examples:\n"
           "  grosr graph cc soc-LiveJournal1.txt.gz --output components.txt\n"
           "  grosr graph cc random:1M,degree=2 --check";
  }
  void add_options(CLI::App&) override {}
  void read_options() override {}
  void prepare(graphs::loaded& input) override { input.g.weight = graphs::huge_vector<float>(); }
  std::unique_ptr<graph_job> start(const csr_graph& g, const graphs::device_graph& on) override {
    return std::make_unique<cc_job>(g, on);
  }
};

}  // namespace

std::unique_ptr<graph_algorithm> make_cc_command() { return std::make_unique<cc_command>(); }

}  // namespace grosr::tool
