// distributed-graph: PageRank, shortest paths and colouring of a graph that lies on several ranks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/program.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "colours.hpp"
#include "grosr/graph/io/input.hpp"
#include "measure/report.hpp"
#include "measure/samples.hpp"
#include "ranks/messages.hpp"
#include "ranks/options.hpp"
#include "works.hpp"

namespace grosr::distributed {
namespace {

using ranks::number_or, tool::row;

struct graph_options {
  ranks::options where;
  std::optional<std::string> json, graph, weights, source, repeat, delta, tolerance;
  bool undirected = false;
  std::vector<std::string> algorithms;
};

row measure(const named_work& how, const placement& p, const graphs::csr_graph& g,
            const parameters& what, unsigned repeats) {
  const auto w = how.make(p, g, what);
  const tool::samples beside(w->beside(repeats));
  w->begin();
  row r(fmt::format("{}, {} rank{}", how.text, p.ranks, p.ranks == 1 ? "" : "s"));
  // The first run brings the kernels to the GPU.
  const unsigned before = p.where.is_cuda() ? 1 : 0;
  std::vector<double> us;
  for (unsigned i = 0; i < before + repeats; ++i) {
    const double time = tool::timed([&] { w->run(); });
    if (i >= before) us.push_back(time);
    tool::interrupt::check();
    w->fetch();
    const std::string wrong = w->wrong();
    r.check(wrong.empty(), wrong);
  }
  r.rate(tool::samples(us), "edges", w->edges());
  w->add_values(r);
  r.set("rounds", w->rounds());
  const ranks::messages all(w->stats());
  return all.add_to(r, "edge_words", all.words, std::max(w->edges(), 1.0) * (before + repeats))
      .baseline(w->beside_what(), "edges_per_s", w->edges() * 1e6 / beside.median());
}

/// A number from `least` to `most`, which "nan" is not.
float read_number(const char* what, const std::string& text, float least, float most) {
  float number = 0;
  const auto end = text.data() + text.size();
  const auto [at, bad] = std::from_chars(text.data(), end, number);
  if (bad != std::errc{} || at != end || !(number >= least && number <= most))
    throw tool::usage_error(fmt::format("{} is \"{}\"; give a number from {} to {}", what,
                                        tool::one_line(text), least, most));
  return number;
}

/// As source_option of `grosr graph` has it.
graphs::vertex choose_source(const std::optional<std::string>& asked, const graphs::loaded& input) {
  const graphs::csr_graph& g = input.g;
  const std::uint64_t first = g.first, last = first + g.vertices() - 1;
  if (asked)
    return static_cast<graphs::vertex>(tool::parse_number("--source", *asked, first, last) - first);
  const auto edge = std::upper_bound(g.row.begin(), g.row.end(), 0u);
  return edge == g.row.end() ? 0 : static_cast<graphs::vertex>(edge - g.row.begin() - 1);
}

graphs::loaded load(const graph_options& o, bool gpu) {
  graphs::input_options how;
  if (o.undirected) how.edges = graphs::symmetry::undirected;
  how.random_weights = number_or("--random-weights", o.weights, 1, 0, ~std::uint64_t{0} / 2);
  how.watch = [](const graphs::work_progress&) { tool::interrupt::check(); };
  graphs::loaded input = graphs::load(o.graph.value_or(gpu ? "kronecker:20" : "kronecker:8"), how);
  if (input.g.vertices() == 0)
    throw tool::usage_error(fmt::format(
        "--graph: {} has no vertices; give a graph with at least one", tool::one_line(input.what)));
  return input;
}

int run(const graph_options& o) {
  const placement p = o.where.read();
  const bool gpu = p.where.is_cuda();
  const auto repeats = number_or<unsigned>("--repeat", o.repeat, gpu ? 10 : 1, 1, 1000);
  tool::json_file json(o.json);
  const graphs::loaded input = load(o, gpu);
  const graphs::csr_graph& g = input.g;
  parameters what{.source = choose_source(o.source, input)};
  if (o.delta) what.delta = read_number("--delta", *o.delta, 1e-20f, 1e20f);
  if (o.tolerance) what.tolerance = read_number("--tolerance", *o.tolerance, 1e-7f, 0.5f);
  tool::report out("distributed-graph", p.where, std::move(json), tool::report::style::full);
  out.remark(fmt::format("{}: {} vertices, {} edges, {}{}", tool::one_line(input.what),
                         tool::grouped(g.vertices()), tool::grouped(g.edges()),
                         g.directed ? "directed" : "undirected", g.weighted() ? ", weighted" : ""));
  try {
    for (const named_work& how : all_works()) {
      if (!o.algorithms.empty() &&
          std::find(o.algorithms.begin(), o.algorithms.end(), how.name) == o.algorithms.end())
        continue;
      if (how.symmetric && g.directed)
        out.add(measure(how, p, both_ways(g), what, repeats));
      else
        out.add(measure(how, p, g, what, repeats));
    }
  } catch (const tool::interrupt::interrupted&) {
    out.interrupted();
    out.finish();
    return tool::exit_interrupted;
  } catch (const std::exception& e) {
    out.failed(e.what());
    out.finish();
    throw;
  }
  return out.finish();
}

}  // namespace
}  // namespace grosr::distributed

int main(int argc, char** argv) {
  using namespace grosr::distributed;
  CLI::App program{
      "PageRank, shortest paths and colouring of a graph whose vertices lie on several ranks, "
      "which "
      "send each other messages, in edges per second",
      "distributed-graph"};
  graph_options o;
  std::vector<std::string> algorithms;
  for (const named_work& w : all_works()) algorithms.push_back(w.name);
  program
      .add_option("--graph", o.graph,
                  "A file or a generator, as `grosr graph` takes them; kronecker:20 on GPUs, else "
                  "kronecker:8")
      ->type_name("GRAPH");
  program
      .add_option("--algorithm", o.algorithms,
                  "Run these alone: " + fmt::format("{}", fmt::join(algorithms, ", ")))
      ->check(CLI::IsMember(algorithms))
      ->type_name("A");
  program.add_flag("--undirected", o.undirected, "Take every edge both ways");
  program
      .add_option(
          "--random-weights", o.weights,
          "Weights, uniform in (0, 1], of a graph without any; 1 by default; 0: edges are 1 "
          "long")
      ->type_name("SEED");
  program
      .add_option("--source", o.source,
                  "The vertex that shortest paths begin at, as the input numbers them; by default "
                  "the first that an edge leaves")
      ->type_name("N");
  program
      .add_option("--delta", o.delta,
                  "How much farther shortest paths go before all ranks meet; by default chosen by "
                  "weights and degrees")
      ->type_name("D");
  program
      .add_option("--tolerance", o.tolerance,
                  "How much all ranks of PageRank together may be wrong, from 1e-7; 1e-4")
      ->type_name("T");
  o.where.add_device(program);
  o.where.add_ranks(program);
  o.where.add_link(program);
  program
      .add_option("--repeat", o.repeat,
                  "Measured runs of each algorithm, 1 to 1000; 10 on GPUs, else 1")
      ->type_name("N");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  program.footer(
      "Examples:\n"
      "  distributed-graph\n"
      "  distributed-graph --graph web-Google.txt --ranks 4 --json web.json\n"
      "  distributed-graph --graph grid:1000x1000 --algorithm sssp --ranks 16\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
