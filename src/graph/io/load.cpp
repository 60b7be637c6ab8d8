// From a name to a graph.
#include <fmt/format.h>

#include <chrono>
#include <new>
#include <stdexcept>

#include "graph/io/binary.hpp"
#include "graph/io/build.hpp"
#include "graph/io/generate.hpp"
#include "graph/io/lines.hpp"
#include "graph/io/memory.hpp"
#include "graph/io/read.hpp"
#include "graph/io/words.hpp"
#include "grosr/graph/io/input.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::graphs {
namespace {

csr_graph read_file(const std::string& path, symmetry edges, const reading& how,
                    host_threads& threads, loaded& result) {
  source from(path, threads);
  result.bytes = from.file_bytes();
  const auto what = [&](std::string_view format) {
    result.what = fmt::format("{} ({})", from.name(), format);
  };
  if (from.head().empty())
    throw error(errc::bad_input,
                fmt::format("{}: is empty; give a file with a graph", from.name()));
  if (is_binary(from.head())) {
    what("binary");
    return read_binary(from, how, threads);
  }
  const text_format format = format_of(from.head());
  if (format == text_format::none) {
    const std::string_view head = from.head();
    throw error(
        errc::bad_input,
        fmt::format("{}:1: {} begins no graph; give Matrix Market, DIMACS (.gr), an edge list or "
                    "GROSR's binary "
                    "format, also compressed with gzip",
                    from.name(), quoted(head.data(), head.data() + head.size())));
  }
  what(name_of(format));
  return read_text(from, format, edges, how, threads, result.dropped);
}

/// Every edge of a directed graph the other way too.
csr_graph both_ways(csr_graph g, const reading& how, const std::string& name, host_threads& threads,
                    left_out& dropped) {
  const size_of_graph size{g.vertices(), g.entries(), g.weighted(), true};
  require(size, size.to_build(), how.memory, name);
  const vertex n = g.vertices(), first = g.first;
  edge_list edges = edges_of(g, threads);
  g = {};
  csr_graph both = build(std::move(edges), n, false, dropped, threads);
  both.first = first;
  return both;
}

}  // namespace

loaded load(const std::string& name, const input_options& options, const reading& how) {
  const auto began = std::chrono::steady_clock::now();
  const std::string shown = one_line(name);
  loaded result;
  host_threads threads(how.threads, options.watch);
  try {
    const host_threads::stage stage(threads, fmt::format("loading {}", shown));
    if (auto g = generate(name, threads, how.memory, result.dropped)) {
      result.g = std::move(*g);
      result.what = shown;
    } else {
      result.g = read_file(name, options.edges, how, threads, result);
    }
    if (options.edges == symmetry::undirected && result.g.directed)
      result.g = both_ways(std::move(result.g), how, shown, threads, result.dropped);
    result.kept_weights = options.random_weights != 0 && result.g.weighted();
    if (options.random_weights != 0 && !result.g.weighted()) {
      const size_of_graph size{result.g.vertices(), result.g.entries()};
      require(size, 4 * size.edges, how.memory, shown);
      give_random_weights(result.g, options.random_weights, threads);
    }
  } catch (const std::bad_alloc&) {
    throw error(errc::bad_input,
                fmt::format("{}: needs more memory than there is; take a smaller graph, or a "
                            "machine with more",
                            shown));
  } catch (const std::length_error&) {
    throw error(
        errc::bad_input,
        fmt::format("{}: needs more memory than there can be; take a smaller graph", shown));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

loaded load(const std::string& file_or_generator, const input_options& options) {
  reading how;
  how.threads = host_threads(options.threads, options.watch).count();
  how.memory = available_memory();
  return load(file_or_generator, options, how);
}

}  // namespace grosr::graphs
