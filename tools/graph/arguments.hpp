// Which graph: the arguments that the commands of `grosr graph` have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/errors.hpp"
#include "grosr/graph/io/input.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::tool {

struct graph_arguments {
  std::string name;  ///< of a file or a generator
  bool undirected = false;
  std::optional<std::string> random_weights, threads;

  void add_to(CLI::App& command);
  void add_weights_to(CLI::App& command);
  /// Throws usage_error.
  graphs::input_options options() const;
};

/// "1,000 vertices, 1,998 edges, undirected".
std::string size_text(const graphs::csr_graph& g);

/// "loaded in 0.31 s (120 MB/s); dropped 3 loops and 17 duplicates".
std::string load_text(const graphs::loaded& input);

/// How fast the file was; 0 for generators.
double load_gb_per_s(const graphs::loaded& input);

/// Throws usage_error if `path` is the file that the graph comes from.
void refuse_own_input(const std::string& asked, const std::string& path,
                      const std::string& graph_name);

/// The graph of that name. Shows how far it is, and notices Ctrl-C.
graphs::loaded load_graph(const std::string& name, graphs::input_options how);

/// For as long as work goes on: shows how far it is, and notices Ctrl-C.
graphs::work_watcher shown_progress();

/// Calls f before anything is started: what GROSR throws then is a usage_error.
template <class F>
auto before_work(F&& f) {
  try {
    return f();
  } catch (const error& e) {
    throw usage_error(e.what());
  }
}

/// The end of the help of every command.
extern const char* const graph_help;

}  // namespace grosr::tool
