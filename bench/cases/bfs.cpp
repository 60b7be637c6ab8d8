// `grosr bench bfs`: breadth-first search. GROSR's search on the resident runtime, beside the same
// steps driven by launches, a CUDA graph and a cooperative kernel, the same search as a kernel of
// its own, a task a vertex, and a search on the CPU; and shortest paths, beside launches.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>

#include "baselines/graph/bfs_kernel.hpp"
#include "baselines/graph/bfs_launched.hpp"
#include "baselines/graph/bfs_openmp.hpp"
#include "baselines/graph/bfs_tasks.hpp"
#include "baselines/graph/sssp_launched.hpp"
#include "cases/benches.hpp"
#include "cli/text.hpp"
#include "grosr/graph/bfs.hpp"
#include "grosr/graph/io/input.hpp"
#include "grosr/graph/reference/check.hpp"
#include "grosr/graph/sssp.hpp"

namespace grosr::tool {
namespace {

using graphs::csr_graph;
using graphs::vertex;
using distances = std::vector<std::uint32_t>;

graphs::loaded load(const std::string& generator, std::uint64_t weights = 0) {
  const progress shown("loading " + generator);
  const auto pulse = [](const graphs::work_progress&) { progress::pulse(); };
  return graphs::load(generator, {.random_weights = weights, .watch = pulse});
}

/// One way to search, on one graph.
struct contender {
  std::string name;
  bool by_launches;  ///< that the CPU or the GPU's front end makes
  std::function<void(vertex)> run;
  std::function<distances()> get;
  std::shared_ptr<void> keeps;
};

/// `tasks`: also a task a vertex. Where a vertex can be reached by long ways first, it takes
/// minutes.
std::vector<contender> others(const session& s, const graphs::device_graph& on, const csr_graph& g,
                              bool tasks) {
  using graphs::driver;
  std::vector<contender> all;
  if (tasks) {
    const auto search = std::make_shared<graphs::task_bfs>(on);
    all.push_back({"a task a vertex, which spawns its neighbours", false,
                   [=](vertex v) { search->run(v); }, [=] { return search->distances(); }, search});
  }
  for (const unsigned blocks : {1u, 0u}) {
    const auto search = std::make_shared<graphs::kernel_bfs>(on, blocks);
    all.push_back({blocks == 1 ? "the same waves and steps, one kernel of one block"
                               : "the same waves and steps, one kernel",
                   false, [=](vertex v) { search->run(v); }, [=] { return search->distances(); },
                   search});
  }
  for (const driver how : {driver::waits, driver::ahead, driver::loop, driver::cooperative}) {
    if (how == driver::loop && !s.gpu()) continue;
    // Small frontiers are served best by small grids, where the size is not chosen level by level.
    const bool fixed = how == driver::loop || how == driver::cooperative;
    for (const unsigned blocks : {0u, 32u}) {
      if (blocks != 0 && (!fixed || !s.gpu())) continue;
      const auto search = std::make_shared<graphs::launched_bfs>(on, how, blocks);
      all.push_back({name_of(how) + (blocks != 0 ? fmt::format(", {} blocks", blocks) : ""),
                     how != driver::cooperative,
                     [=](vertex v) { search->run(v, [] { progress::pulse(); }); },
                     [=] { return search->distances(); }, search});
    }
  }
  const auto cpu = std::make_shared<graphs::openmp_bfs>(g);
  all.push_back({fmt::format("{} CPU threads", cpu->threads()), false,
                 [=](vertex v) { cpu->run(v); },
                 [=] { return distances(cpu->distance().begin(), cpu->distance().end()); }, cpu});
  return all;
}

struct goals {
  double us_per_level = 0, over_waits = 0, over_ahead = 0, over_best = 0, over_launches = 0,
         over_cooperative = 0, us = 0;
};

std::uint32_t levels_of(const distances& d) {
  std::uint32_t most = 0;
  for (const std::uint32_t x : d)
    if (x != ~0u) most = std::max(most, x);
  return most;
}

template <class Search>
row& add_memory(row& r, const Search& search, const graphs::device_graph& on) {
  return r.set("graph_bytes", static_cast<double>(on.bytes()))
      .set("search_bytes", static_cast<double>(search.bytes()))
      .set("runtime_bytes", static_cast<double>(search.stats().memory));
}

/// From one corner, as often as the plan says.
void from_one(session& s, const std::string& generator, const goals& goal) {
  const graphs::loaded l = load(generator);
  const graphs::device_graph on(s.where, l.g);
  distances right;
  double ours = 0;
  row r(generator);
  {
    graphs::bfs search(on);
    const samples us = s.repeat(generator + ": GROSR", {2, 11, 5.0}, [&] {
      return timed([&] { search.run(0, [] { progress::pulse(); }); });
    });
    right = search.distances();
    ours = us.median();
    const std::uint32_t levels = levels_of(right);
    r.time(us).set("levels", levels).set("level_us", levels != 0 ? ours / levels : ours);
    const std::string wrong = graphs::wrong_bfs(l.g, 0, right, search.parents());
    r.check(wrong.empty(), wrong);
    add_memory(r, search, on);
  }
  double best = 0, launches = 0, cooperative = 0, waits = 0, ahead = 0;
  for (const contender& c : others(s, on, l.g, generator.starts_with("chain:"))) {
    const samples us = s.repeat(generator + ": " + c.name, {1, s.sized(5u, 3u), 5.0},
                                [&] { return timed([&] { c.run(0); }); });
    r.baseline(c.name, "median_us", us.median())
        .check(c.get() == right, c.name + ": other distances");
    const auto least = [&](double& of) { of = of == 0 ? us.median() : std::min(of, us.median()); };
    least(best);
    if (c.by_launches) least(launches);
    if (c.name.starts_with(name_of(graphs::driver::cooperative))) least(cooperative);
    if (c.name == name_of(graphs::driver::waits)) waits = us.median();
    if (c.name == name_of(graphs::driver::ahead)) ahead = us.median();
  }
  const auto compare = [&](const char* key, double other, double wanted, const char* what) {
    if (other == 0) return;
    r.set(key, other / ours);
    if (wanted != 0 && s.gpu()) r.at_least(key, wanted, what);
  };
  compare("over_waits_x", waits, goal.over_waits, "launches that are waited for");
  compare("over_ahead_x", ahead, goal.over_ahead, "launches ahead of what is known");
  compare("over_launches_x", launches, goal.over_launches, "the best of those by launches");
  compare("over_cooperative_x", cooperative, goal.over_cooperative, "the cooperative kernel");
  compare("over_best_x", best, goal.over_best, "the best of all others");
  if (goal.us_per_level != 0 && s.gpu()) r.at_most("level_us", goal.us_per_level);
  if (goal.us != 0 && s.gpu()) r.at_most("median_us", goal.us);
  s.out.add(r);
}

/// Shortest paths over random weights from one corner, beside Bellman-Ford by launches.
void paths_from_one(session& s, const std::string& generator, double goal) {
  const graphs::loaded l = load(generator, 1);
  const graphs::device_graph on(s.where, l.g);
  const std::string name = generator + ", shortest paths over random weights";
  row r(name);
  std::vector<float> right;
  double ours = 0, best = 0;
  {
    graphs::sssp search(on);
    const samples us = s.repeat(name + ": GROSR", {1, s.sized(7u, 3u), 5.0}, [&] {
      return timed([&] { search.run(0, [] { progress::pulse(); }); });
    });
    right = search.distances();
    const std::string wrong = graphs::wrong_shortest(l.g, 0, right, search.parents());
    ours = us.median();
    r.time(us).set("waves", search.waves()).check(wrong.empty(), wrong);
    add_memory(r, search, on);
  }
  for (const bool ahead : {false, true}) {
    graphs::launched_sssp search(on, ahead);
    const std::string how =
        std::string("Bellman-Ford, ") +
        (ahead ? "launches ahead of what is known" : "a launch a round, waited for");
    const samples us = s.repeat(name + ": " + how, {1, 3, 5.0}, [&] {
      return timed([&] { search.run(0, [] { progress::pulse(); }); });
    });
    r.baseline(how, "median_us", us.median())
        .check(search.distances() == right, how + ": other distances");
    best = best == 0 ? us.median() : std::min(best, us.median());
  }
  r.set("over_launches_x", best / ours);
  if (goal != 0 && s.gpu()) r.at_least("over_launches_x", goal, "the best of those by launches");
  s.out.add(r);
}

/// By Graph500's rule: from 64 random vertices with edges, once each, the harmonic mean of rates.
/// Right before each timed search comes one that is not, because the checks between them take so
/// long that GPUs go to rest.
void from_many(session& s, unsigned scale, double goal) {
  const std::string generator = fmt::format("kronecker:{}", scale);
  const graphs::loaded l = load(generator);
  const csr_graph& g = l.g;
  const graphs::device_graph on(s.where, g);
  const unsigned count = s.repeats != 0 ? s.repeats : s.sized(64u, 3u);
  std::vector<vertex> sources;
  for (std::mt19937 random(scale); sources.size() < count;) {
    const vertex v = static_cast<vertex>(random() % g.vertices());
    if (g.row[v] < g.row[v + 1]) sources.push_back(v);
  }
  std::vector<double> edges(count);
  const auto rate = [&](const std::vector<double>& us) {
    double sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += us[i] / edges[i];
    return count / sum * 1e6;
  };
  row r(fmt::format("{}, {} sources", generator, count));
  std::vector<std::uint64_t> sums(count);  // of what is right
  const auto sum_of = [](const distances& d) {
    std::uint64_t sum = 0;
    for (std::size_t v = 0; v < d.size(); ++v) sum += (v * 2 + 1) * (std::uint64_t{d[v]} + 7);
    return sum;
  };
  {
    graphs::bfs search(on);
    search.run(sources[0], [] { progress::pulse(); });
    std::vector<double> us(count);
    progress shown(generator + ": GROSR", count);
    for (unsigned i = 0; i < count; ++i) {
      search.run(sources[i], [] { progress::pulse(); });
      us[i] = timed([&] { search.run(sources[i], [] { progress::pulse(); }); });
      const distances d = search.distances();
      const std::string wrong = graphs::wrong_bfs(g, sources[i], d, search.parents());
      r.check(wrong.empty(), fmt::format("from {}: {}", sources[i], wrong));
      sums[i] = sum_of(d);
      for (vertex v = 0; v < g.vertices(); ++v)
        if (d[v] != ~0u) edges[i] += (g.row[v + 1] - g.row[v]) / 2.0;
      shown.next();
    }
    r.time(samples(us)).set("edges_per_s", rate(us));
    add_memory(r, search, on);
  }
  double best = 0;
  for (const contender& c : others(s, on, g, false)) {
    c.run(sources[0]);
    std::vector<double> us(count);
    progress shown(generator + ": " + c.name, count);
    for (unsigned i = 0; i < count; ++i) {
      c.run(sources[i]);
      us[i] = timed([&] { c.run(sources[i]); });
      r.check(sum_of(c.get()) == sums[i], c.name + ": other distances");
      shown.next();
    }
    r.baseline(c.name, "edges_per_s", rate(us));
    best = std::max(best, rate(us));
  }
  r.set("of_best_x", r.value("edges_per_s") / best);
  if (goal != 0 && s.gpu()) r.at_least("of_best_x", goal, "the best of all others");
  s.out.add(r);
}

}  // namespace

void bench_bfs(session& s) {
  if (const auto n = s.number(0)) {
    from_many(s, static_cast<unsigned>(*n), 0);
    return;
  }
  if (!s.gpu()) {
    from_one(s, "chain:300", {});
    from_one(s, "grid:20x20", {});
    paths_from_one(s, "grid:20x20", 0);
    from_many(s, 8, 0);
    return;
  }
  from_one(s, "chain:5000", {});
  from_one(s, "chain:10000", {});
  from_one(s, "chain:20000", {0.6, 15, 5, 2, 0, 2});
  from_one(s, "grid:1000x1000", {0, 0, 0, 0, 3, 1.3});
  from_one(s, "grid:4000x4000", {0, 0, 0, 1.3, 0, 0});
  from_one(s, "random:72120,degree=2", {.us = 100});
  paths_from_one(s, "grid:4000x4000", 3);
  for (unsigned scale = 10; scale <= 22; scale += 2) from_many(s, scale, 1);
}

}  // namespace grosr::tool
