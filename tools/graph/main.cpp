// grosr-graph, which `grosr graph` starts: a command each for an algorithm, and two for files.
#include <memory>

#include <fmt/format.h>

#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "graph/files.hpp"
#include "graph/measure.hpp"

namespace grosr::tool {
namespace {

/// What the parsed command line asks for; returns the exit code.
using action = std::function<int()>;

void add_algorithm(CLI::App& graph, const std::shared_ptr<graph_algorithm>& what, action& chosen) {
  auto* command = graph.add_subcommand(what->name(), what->summary());
  auto o = std::make_shared<graph_run_options>();
  o->add_to(*command, *what);
  what->add_options(*command);
  command->footer(fmt::format("{}\n\n{}", what->footer(), graph_help));
  command->callback([=, &chosen] { chosen = [=] { return run_on_graph(*what, *o); }; });
}

void add_convert(CLI::App& graph, action& chosen) {
  auto* command =
      graph.add_subcommand("convert", "Write a graph in the binary format, which loads fastest");
  struct options {
    graph_arguments graph;
    std::string to;
  };
  auto o = std::make_shared<options>();
  o->graph.add_to(*command);
  o->graph.add_weights_to(*command);
  command->add_option("OUT", o->to, "The file to write")->required()->type_name("");
  command->footer(
      fmt::format("Examples:\n"
                  "  grosr graph convert roads.mtx.gz roads.csr\n"
                  "  grosr graph convert kronecker:22 kronecker-22.csr --random-weights 1\n\n{}",
                  graph_help));
  command->callback([=, &chosen] { chosen = [=] { return convert_graph(o->graph, o->to); }; });
}

void add_info(CLI::App& graph, action& chosen) {
  auto* command = graph.add_subcommand("info", "Say what a graph is, and how fast it loads");
  struct options {
    graph_arguments graph;
    std::optional<std::string> json;
  };
  auto o = std::make_shared<options>();
  o->graph.add_to(*command);
  command->add_option("--json", o->json, "Also write it to FILE; - is standard output")
      ->type_name("FILE");
  command->footer(
      fmt::format("Examples:\n"
                  "  grosr graph info roads.mtx.gz\n"
                  "  grosr graph info web-Google.txt --undirected --json web.json\n\n{}",
                  graph_help));
  command->callback([=, &chosen] { chosen = [=] { return describe_graph(o->graph, o->json); }; });
}

int refuse_nothing() {
  std::string names;
  for (const auto& what : graph_algorithms()) names += what->name() + ", ";
  throw usage_error(fmt::format("no command was given; there are {}convert and info", names));
}

}  // namespace
}  // namespace grosr::tool

int main(int argc, char** argv) {
  using namespace grosr::tool;
  CLI::App program{
      "Graphs from files and generators: searches, shortest paths, components, ranks, conversion",
      "grosr graph"};
  action chosen;
  program.require_subcommand(0, 1);
  for (const auto& what : graph_algorithms()) add_algorithm(program, what, chosen);
  add_convert(program, chosen);
  add_info(program, chosen);
  program.footer(
      fmt::format("Examples:\n"
                  "  grosr graph bfs grid:1000x1000 --check\n"
                  "  grosr graph bfs roads.gr.gz --source 1 --output distances.txt\n"
                  "  grosr graph convert roads.mtx roads.csr\n"
                  "  grosr graph info kronecker:20\n\n{}",
                  graph_help));
  return run_program(program, argc, argv, [&] { return chosen ? chosen() : refuse_nothing(); });
}
