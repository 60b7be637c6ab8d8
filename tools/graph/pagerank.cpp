// `grosr graph pagerank`.
#include "grosr/graph/pagerank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/errors.hpp"
#include "cli/text.hpp"
#include "graph/algorithm.hpp"
#include "grosr/graph/reference/check.hpp"

namespace grosr::tool {
namespace {

using graphs::csr_graph, graphs::vertex;

/// The shortest number that is this float, for JSON, which knows only doubles.
double as_written(float number) { return std::stod(fmt::format("{}", number)); }

class pagerank_job final : public graph_job {
 public:
  pagerank_job(const csr_graph& g, const graphs::device_graph& on,
               const graphs::pagerank_options& o)
      : g_(g), options_(o), search_(on, o) {}

  void run(const graphs::progress_callback& between) override { search_.run(between); }
  void fetch() override {
    rank_ = search_.ranks();
    rounds_ = search_.rounds();
    best_ = static_cast<vertex>(std::max_element(rank_.begin(), rank_.end()) - rank_.begin());
  }
  std::string wrong() const override {
    constexpr double rounding = 1e-5;
    return graphs::wrong_ranks(g_, options_.damping, rank_, options_.tolerance + rounding);
  }
  double edges() const override { return static_cast<double>(g_.edges()); }
  std::string outcome() const override {
    return fmt::format("{} vertices; vertex {} has the highest rank, {:.3g}",
                       grouped(g_.vertices()), number(best_), rank_[best_]);
  }
  void add_values(row& r) const override { r.set("rounds", rounds_); }
  void add_result(nlohmann::ordered_json& result) const override {
    result["damping"] = as_written(options_.damping);
    result["tolerance"] = as_written(options_.tolerance);
    result["rounds"] = rounds_;
    result["highest"] = number(best_);
    result["highest_rank"] = rank_[best_];
  }
  void write(graphs::results_file& to) const override {
    for (vertex v = 0; v < g_.vertices(); ++v) {
      to.field(number(v));
      to.field(rank_[v]);
      to.end_line();
    }
  }
  std::size_t bytes() const override { return search_.bytes(); }
  std::size_t runtime_bytes() const override { return search_.stats().memory; }

 private:
  std::uint64_t number(vertex v) const { return std::uint64_t{g_.first} + v; }  // the input's

  const csr_graph& g_;
  const graphs::pagerank_options options_;
  graphs::pagerank search_;
  std::vector<float> rank_;
  std::uint32_t rounds_ = 0;
  vertex best_ = 0;
};

/// A number from `least` to below `below`, which "nan" is not.
float read_share(const char* what, const std::string& text, float least, float below) {
  float number = 0;
  const auto end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end || !(number >= least && number < below))
    throw usage_error(
        fmt::format("{} is \"{}\"; give a number from {} to below {}, as 32-bit floats "
                    "have them",
                    what, one_line(text), least, below));
  return number;
}

class pagerank_command final : public graph_algorithm {
 public:
  std::string name() const override { return "pagerank"; }
  std::string summary() const override {
    return "PageRank: how often somebody is at a vertex who follows edges at random";
  }
  std::string lines() const override { return "vertex rank, as the input numbers them"; }
  std::string checking() const override { return "ranks, by power iteration on the CPU"; }
  std::string footer() const override {
    return "Ranks add up to 1. What vertices without edges out would pass on goes to all evenly.\n"
           "Edges per second are the graph's edges over the time (median) of a run.\n\n"
           "Examples:\n"
           "  grosr graph pagerank web-Google.txt --output ranks.txt\n"
           "  grosr graph pagerank kronecker:20 --tolerance 1e-6 --check";
  }
  void add_options(CLI::App& command) override {
    command
        .add_option("--damping", damping_,
                    "How likely an edge is followed, instead of going anywhere; 0.85")
        ->type_name("D");
    command
        .add_option("--tolerance", tolerance_,
                    "How much all ranks together may be wrong, from 1e-7; 1e-4")
        ->type_name("T");
  }
  void read_options() override {
    if (damping_) options_.damping = read_share("--damping", *damping_, 0, 1);
    if (tolerance_) options_.tolerance = read_share("--tolerance", *tolerance_, 1e-7f, 1);
  }
  void prepare(graphs::loaded& input) override { input.g.weight = graphs::huge_vector<float>(); }
  std::unique_ptr<graph_job> start(const csr_graph& g, const graphs::device_graph& on) override {
    return std::make_unique<pagerank_job>(g, on, options_);
  }

 private:
  std::optional<std::string> damping_, tolerance_;
  graphs::pagerank_options options_;
};

}  // namespace

std::unique_ptr<graph_algorithm> make_pagerank_command() {
  return std::make_unique<pagerank_command>();
}

}  // namespace grosr::tool
