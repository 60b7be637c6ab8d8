// Edges out of lines of text. Lines end in '\n', so numbers are read without a look at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "grosr/graph/io/build.hpp"

namespace grosr::graphs {

/// What is wrong with a line, and what to do; without the line's number.
struct bad_line {
  std::string what;
};

/// How the lines of a file look that hold its edges.
struct line_form {
  bool arcs = false;    ///< begin with "a "; and "c" begins comments: DIMACS
  bool commas = false;  ///< one may stand between numbers: edge lists
  bool weighted = false;
  vertex first = 0;            ///< the number of the first vertex
  std::uint64_t vertices = 0;  ///< at most
  std::string is;              ///< "a line is FROM TO"
  std::string limit;           ///< says of a number that is too large why it is: "line 5 says ..."
  std::string no_weight;       ///< said of lines without a weight, where there must be one
  std::string one_weight;      ///< and of those with one, where there must be none
};

/// An edge whose vertices count from 0.
struct weighted_edge {
  edge ends;
  float weight;
};

/// Reads the line at `at`, and leaves `at` on its '\n'. False: it is empty, or a comment. Throws
/// bad_line.
bool read_line(const char*& at, const char* end, const line_form& form, weighted_edge& e);

/// What came of some lines.
struct lines_read {
  std::uint64_t lines = 0, edges = 0;
  std::uint64_t vertices = 0;  ///< one more than the greatest that has an edge
  std::string wrong;           ///< with the last of the lines; else empty
};

/// Appends the edges of all lines.
lines_read read_lines(std::string_view lines, const line_form& form, edge_list& to);

/// The number of the line, from 1, that holds edge n, from 0, of lines without an error in front of
/// it.
std::uint64_t line_of_edge(std::string_view lines, const line_form& form, std::uint64_t n);

/// As errors show what they found at `at`: a word in quotes.
std::string quoted(const char* at, const char* end);

/// A whole number at `at`, which moves behind it. False: there is none, or it has 64 bits or more.
bool read_number(const char*& at, const char* end, std::uint64_t& n);

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline void skip_blanks(const char*& at) {
  while (is_blank(*at)) ++at;
}

}  // namespace grosr::graphs
