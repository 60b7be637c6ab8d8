#include "graph/arguments.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/errors.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"

namespace grosr::tool {

const char* const graph_help =
    "GRAPH is a file - Matrix Market, DIMACS (.gr), an edge list or what `graph convert` wrote, "
    "also\n"
    "compressed with gzip - or a generator: chain:N, grid:ROWSxCOLUMNS[,removed=P][,seed=S],\n"
    "kronecker:SCALE[,factor=F][,seed=S], random:N[,degree=D][,seed=S].\n\n"
    "Exit code: 0; 1 if it failed or a result was wrong; 2 if nothing could be started; 130 on "
    "Ctrl-C.";

void graph_arguments::add_to(CLI::App& command) {
  command.add_option("GRAPH", name, "A file or a generator, see below")->required()->type_name("");
  command.add_flag("--undirected", undirected, "Take every edge both ways");
  command
      .add_option("--threads", threads,
                  "Threads that load it, 1 to 1024; one a processor by default")
      ->type_name("N");
}

void graph_arguments::add_weights_to(CLI::App& command) {
  command
      .add_option("--random-weights", random_weights,
                  "Give weights, uniform in (0, 1], to a graph without any; SEED is 1 or more")
      ->type_name("SEED");
}

graphs::input_options graph_arguments::options() const {
  graphs::input_options o;
  if (undirected) o.edges = graphs::symmetry::undirected;
  if (random_weights)
    o.random_weights = parse_number("--random-weights", *random_weights, 1, ~std::uint64_t{0} / 2);
  if (threads) o.threads = static_cast<unsigned>(parse_number("--threads", *threads, 1, 1024));
  return o;
}

std::string size_text(const graphs::csr_graph& g) {
  return fmt::format("{} vertices, {} edges, {}{}", grouped(g.vertices()), grouped(g.edges()),
                     g.directed ? "directed" : "undirected", g.weighted() ? ", weighted" : "");
}

std::string load_text(const graphs::loaded& input) {
  std::string text = "loaded in " + only_unit("s", input.seconds);
  if (input.bytes != 0) text += fmt::format(" ({})", only_unit("gb_per_s", load_gb_per_s(input)));
  if (input.dropped.loops != 0 || input.dropped.duplicates != 0)
    text += fmt::format("; dropped {} loops and {} duplicates", grouped(input.dropped.loops),
                        grouped(input.dropped.duplicates));
  if (input.kept_weights) text += "; it has weights, and --random-weights changed nothing";
  return text;
}

double load_gb_per_s(const graphs::loaded& input) {
  return input.seconds > 0 ? static_cast<double>(input.bytes) / input.seconds / 1e9 : 0;
}

graphs::loaded load_graph(const std::string& name, graphs::input_options how) {
  how.watch = shown_progress();
  return graphs::load(name, how);
}

graphs::work_watcher shown_progress() {
  struct line {
    std::string stage;
    std::optional<progress> shown;
  };
  return [all = std::make_shared<line>()](const graphs::work_progress& now) {
    if (!all->shown || all->stage != now.stage) {
      all->stage = now.stage;
      all->shown.emplace(all->stage, now.steps);
    }
    all->shown->at(now.done);
  };
}

void refuse_own_input(const std::string& asked, const std::string& path,
                      const std::string& graph_name) {
  std::error_code bad;
  if (std::filesystem::is_regular_file(path, bad) &&
      std::filesystem::equivalent(path, graph_name, bad))
    throw usage_error(
        fmt::format("{}: the graph itself is in that file; give another file", asked));
}

}  // namespace grosr::tool
