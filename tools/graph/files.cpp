#include "graph/files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/text.hpp"
#include "grosr/graph/io/results_file.hpp"
#include "grosr/graph/statistics.hpp"
#include "grosr/version.hpp"
#include "measure/json_file.hpp"
#include "measure/samples.hpp"

namespace grosr::tool {

namespace fs = std::filesystem;

int convert_graph(const graph_arguments& graph, const std::string& to) {
  const graphs::input_options how = graph.options();
  refuse_own_input(one_line(to), to, graph.name);
  std::error_code bad;
  if (!fs::is_fifo(to, bad))  // known before it is loaded
    before_work([&] { graphs::results_file(one_line(to), to); });
  const graphs::loaded input = load_graph(graph.name, how);
  const double seconds =
      timed([&] {
        before_work([&] { graphs::write_binary(input.g, to, {how.threads, shown_progress()}); });
      }) /
      1e6;
  const auto bytes = fs::is_regular_file(to, bad) ? fs::file_size(to, bad) : 0;
  fmt::print("{}: {}; {}\n", one_line(input.what), size_text(input.g), load_text(input));
  fmt::print("{}: {}written in {}\n", one_line(to),
             bytes == 0 ? "" : only_unit("bytes", static_cast<double>(bytes)) + ", ",
             only_unit("s", seconds));
  return exit_ok;
}

int describe_graph(const graph_arguments& graph, const std::optional<std::string>& json) {
  const graphs::input_options how = graph.options();
  if (json) refuse_own_input(fmt::format("--json {}", one_line(*json)), *json, graph.name);
  json_file file(json);
  const graphs::loaded input = load_graph(graph.name, how);
  const graphs::csr_graph& g = input.g;
  const graphs::graph_statistics f = graphs::statistics_of(g, {how.threads, shown_progress()});
  nlohmann::ordered_json j{{"graph", input.what},
                           {"commit", commit()},
                           {"vertices", g.vertices()},
                           {"edges", g.edges()},
                           {"directed", g.directed},
                           {"weighted", g.weighted()},
                           {"first_vertex", g.first},
                           {"greatest_degree", f.greatest_degree},
                           {"greatest_degree_vertex", std::uint64_t{g.first} + f.greatest},
                           {"vertices_without_edges", f.without_edges},
                           {"dropped_loops", input.dropped.loops},
                           {"dropped_duplicates", input.dropped.duplicates},
                           {"load_s", input.seconds}};
  if (input.bytes != 0) {
    j["file_bytes"] = input.bytes;
    j["load_gb_per_s"] = load_gb_per_s(input);
  }
  file.write(j);
  if (file.to_stdout()) return exit_ok;
  fmt::print("{}: {}\n", one_line(input.what), size_text(g));
  if (g.vertices() != 0) {
    const std::uint64_t first = g.first;
    fmt::print("  vertices are called {} to {}; {} have no edges\n", first,
               first + g.vertices() - 1, grouped(f.without_edges));
    fmt::print("  greatest degree: {}, of vertex {}{}\n", grouped(f.greatest_degree),
               first + f.greatest, g.directed ? "; edges out of it count" : "");
  }
  fmt::print("  dropped: {} loops, {} duplicates\n", grouped(input.dropped.loops),
             grouped(input.dropped.duplicates));
  fmt::print("  loaded in {}", only_unit("s", input.seconds));
  if (input.bytes != 0)
    fmt::print(": {} at {}", only_unit("bytes", static_cast<double>(input.bytes)),
               only_unit("gb_per_s", load_gb_per_s(input)));
  fmt::print("\n");
  return exit_ok;
}

}  // namespace grosr::tool
