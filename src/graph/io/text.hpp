// Files of text: Matrix Market, DIMACS, edge lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/io/source.hpp"
#include "grosr/graph/csr_graph.hpp"
#include "grosr/graph/io/input.hpp"

namespace grosr::graphs {

/// How files are read. Tests set other sizes, to see what happens at their bounds.
struct reading {
  unsigned threads = 1;
  std::uint64_t memory = ~std::uint64_t{0};   ///< free
  std::size_t chunk = std::size_t{32} << 20;  ///< bytes of text read at a time
  std::size_t piece = std::size_t{16} << 10;  ///< bytes of text that are worth a thread
};

enum class text_format { none, matrix_market, dimacs, edge_list };

/// Tells the format by the first bytes.
text_format format_of(std::string_view head);

/// "Matrix Market" and so on.
const char* name_of(text_format format);

/// Throws error(bad_input) that begins with the file's name and, where one is to blame, the line.
csr_graph read_text(source& from, text_format format, symmetry edges, const reading& how,
                    host_threads& threads, left_out& dropped);

}  // namespace grosr::graphs
