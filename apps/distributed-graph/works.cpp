#include "works.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/progress.hpp"
#include "colours.hpp"
#include "grosr/graph/pagerank.hpp"
#include "grosr/graph/reference/check.hpp"
#include "grosr/graph/reference/reference.hpp"
#include "grosr/graph/sssp.hpp"

namespace grosr::distributed {
namespace {

using graphs::csr_graph, graphs::vertex;

/// After a run that is not measured.
template <class Run>
std::vector<double> times_of(unsigned repeats, const Run& run) {
  run();
  std::vector<double> us;
  for (unsigned i = 0; i < repeats; ++i) us.push_back(tool::timed(run));
  return us;
}

template <algorithm What>
class work_on_ranks : public work {
 public:
  work_on_ranks(const placement& p, const csr_graph& g) : where_(p), g_(g) {}
  void begin() override { on_.emplace(where_, g_, What); }
  std::uint32_t rounds() const override { return on_->rounds(); }
  std::vector<net::rank_stats> stats() const override { return on_->stats(); }

 protected:
  const placement where_;
  const csr_graph& g_;
  std::optional<graph_on_ranks> on_;
};

class pagerank_work final : public work_on_ranks<algorithm::pagerank> {
 public:
  pagerank_work(const placement& p, const csr_graph& g, const parameters& how)
      : work_on_ranks(p, g) {
    options_.tolerance = how.tolerance;
  }
  std::vector<double> beside(unsigned repeats) override {
    const graphs::device_graph on(where_.where, g_);
    graphs::pagerank search(on, options_);
    return times_of(repeats, [&] { search.run([] { tool::progress::pulse(); }); });
  }
  std::string beside_what() const override { return "grosr graph pagerank, the whole device"; }
  void run() override { on_->pagerank(options_.damping, options_.tolerance); }
  void fetch() override { rank_ = on_->ranks(); }
  std::string wrong() const override {
    constexpr double rounding = 1e-5;
    return graphs::wrong_ranks(g_, options_.damping, rank_, options_.tolerance + rounding);
  }
  double edges() const override { return static_cast<double>(g_.edges()); }
  void add_values(tool::row&) const override {}

 private:
  graphs::pagerank_options options_;
  std::vector<float> rank_;
};

class shortest_paths_work final : public work_on_ranks<algorithm::shortest_paths> {
 public:
  shortest_paths_work(const placement& p, const csr_graph& g, const parameters& how)
      : work_on_ranks(p, g), how_(how), expected_(graphs::shortest_distances(g, how.source)) {
    std::uint64_t entries = 0;
    for (vertex v = 0; v < g.vertices(); ++v) {
      if (std::isinf(expected_[v])) continue;
      ++reached_;
      entries += g.row[v + 1] - g.row[v];
    }
    edges_ = static_cast<double>(g.directed ? entries : entries / 2);
  }
  std::vector<double> beside(unsigned repeats) override {
    const graphs::device_graph on(where_.where, g_);
    graphs::sssp search(on);
    return times_of(repeats, [&] { search.run(how_.source, [] { tool::progress::pulse(); }); });
  }
  std::string beside_what() const override { return "grosr graph sssp, the whole device"; }
  void run() override { on_->shortest_paths(how_.source, how_.delta); }
  void fetch() override { distance_ = on_->distances(); }
  std::string wrong() const override {
    for (vertex v = 0; v < g_.vertices(); ++v)
      if (distance_[v] != expected_[v])
        return fmt::format("vertex {} is at distance {} instead of {}", std::uint64_t{g_.first} + v,
                           distance_[v], expected_[v]);
    return {};
  }
  double edges() const override { return edges_; }
  void add_values(tool::row& r) const override { r.set("reached_vertices", reached_); }

 private:
  const parameters how_;
  const std::vector<float> expected_;
  std::vector<float> distance_;
  std::uint32_t reached_ = 0;
  double edges_ = 0;
};

class colouring_work final : public work_on_ranks<algorithm::colouring> {
 public:
  using work_on_ranks::work_on_ranks;
  std::vector<double> beside(unsigned repeats) override {
    return times_of(repeats, [&] { expected_ = first_fit(g_); });
  }
  std::string beside_what() const override { return "first fit on one thread of the CPU"; }
  void run() override { on_->colour(); }
  void fetch() override { colour_ = on_->colours(); }
  std::string wrong() const override { return wrong_colours(g_, colour_, expected_); }
  double edges() const override { return static_cast<double>(g_.edges()); }
  void add_values(tool::row& r) const override { r.set("colours", count_colours(colour_)); }

 private:
  std::vector<std::uint32_t> colour_, expected_;
};

}  // namespace

const std::vector<named_work>& all_works() {
  static const std::vector<named_work> works{
      {"pagerank", "PageRank", false,
       [](const placement& p, const csr_graph& g, const parameters& how) -> std::unique_ptr<work> {
         return std::make_unique<pagerank_work>(p, g, how);
       }},
      {"sssp", "shortest paths from one vertex", false,
       [](const placement& p, const csr_graph& g, const parameters& how) -> std::unique_ptr<work> {
         return std::make_unique<shortest_paths_work>(p, g, how);
       }},
      {"colouring", "colouring", true,
       [](const placement& p, const csr_graph& g, const parameters&) -> std::unique_ptr<work> {
         return std::make_unique<colouring_work>(p, g);
       }}};
  return works;
}

}  // namespace grosr::distributed
