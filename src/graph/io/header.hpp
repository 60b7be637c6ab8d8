// What stands in front of the edges in a file of text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/io/lines.hpp"
#include "graph/io/text.hpp"

namespace grosr::graphs {

/// Takes lines until it knows how the others look.
class header_reader {
 public:
  explicit header_reader(text_format format) : format_(format) {}

  /// Reads a line (without its end; `number` counts from 1). True: the header is complete. The
  /// first line of an edge list with an edge is its own header, and must be read again. Throws
  /// bad_line.
  bool take(std::string_view line, std::uint64_t number);

  /// At the end of the file, where none of the lines completed it. Throws bad_line if one had to.
  void finish();

  bool holds_edge() const { return format_ == text_format::edge_list; }
  const line_form& form() const { return form_; }
  bool undirected() const { return undirected_; }
  /// How many edges must follow, if that is known.
  std::optional<std::uint64_t> edges() const { return edges_; }
  std::uint64_t declared_in() const { return declared_in_; }

 private:
  bool matrix_line(std::string_view line, std::uint64_t number);
  void banner(std::string_view line);
  bool dimacs_line(std::string_view line, std::uint64_t number);
  bool list_line(std::string_view line, std::uint64_t number);
  void declare(std::uint64_t vertices, std::uint64_t edges, std::string_view words,
               std::uint64_t number);

  const text_format format_;
  bool has_banner_ = false, undirected_ = false;
  line_form form_;
  std::optional<std::uint64_t> edges_;
  std::uint64_t declared_in_ = 0;
};

}  // namespace grosr::graphs
