// Banners, sizes and first lines.
#include "graph/io/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "graph/io/words.hpp"

namespace grosr::graphs {
namespace {

/// Words between blanks. `line` is followed by a '\n'.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size() && words.size() < 8;) {
    if (is_blank(line[i])) {
      ++i;
      continue;
    }
    const std::size_t first = i;
    while (i < line.size() && !is_blank(line[i])) ++i;
    words.push_back(line.substr(first, i - first));
  }
  return words;
}

std::string shown(std::string_view word) { return quoted(word.data(), word.data() + word.size()); }

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::uint64_t size_in(std::string_view word) {
  const char* at = word.data();
  const char* const end = at + word.size();
  std::uint64_t n = 0;
  if (!read_number(at, end, n) || at != end)
    throw bad_line{fmt::format("{} is no size; give a whole number, not negative", shown(word))};
  return n;
}

}  // namespace

bool header_reader::take(std::string_view line, std::uint64_t number) {
  switch (format_) {
    case text_format::matrix_market:
      return matrix_line(line, number);
    case text_format::dimacs:
      return dimacs_line(line, number);
    default:
      return list_line(line, number);
  }
}

void header_reader::finish() {
  if (format_ == text_format::matrix_market)
    throw bad_line{"the file ends before the line of sizes, ROWS COLUMNS ENTRIES"};
  if (format_ == text_format::dimacs)
    throw bad_line{"the file ends before its line \"p sp VERTICES ARCS\""};
}

void header_reader::declare(std::uint64_t vertices, std::uint64_t edges, std::string_view words,
                            std::uint64_t number) {
  if (vertices > most_vertices)
    throw bad_line{fmt::format("{} vertices; a graph has {} at most", grouped(vertices),
                               grouped(most_vertices))};
  form_.first = 1;
  form_.vertices = vertices;
  form_.limit = fmt::format("{} in line {} says there are {}", words, number, vertices);
  edges_ = edges;
  declared_in_ = number;
}

void header_reader::banner(std::string_view line) {
  constexpr std::string_view needed =
      "give \"%%MatrixMarket matrix coordinate\" with real, integer "
      "or pattern, and general or symmetric";
  const auto words = words_of(line);
  if (words.size() != 5 || lower(words[1]) != "matrix")
    throw bad_line{fmt::format("no banner of a matrix; {}", needed)};
  const std::string layout = lower(words[2]), values = lower(words[3]), kind = lower(words[4]);
  const auto refuse = [&](std::string_view word) {
    throw bad_line{fmt::format("a matrix that is {} is no graph here; {}", shown(word), needed)};
  };
  if (layout != "coordinate") refuse(words[2]);
  if (values != "real" && values != "integer" && values != "pattern") refuse(words[3]);
  if (kind != "general" && kind != "symmetric") refuse(words[4]);
  has_banner_ = true;
  undirected_ = kind == "symmetric";
  form_.weighted = values != "pattern";
  form_.is = form_.weighted ? "a line is ROW COLUMN VALUE" : "a line is ROW COLUMN";
  form_.no_weight = fmt::format("has no value; the banner says \"{}\": {}", values, form_.is);
  form_.one_weight = fmt::format("is too much; the banner says \"pattern\": {}", form_.is);
}

bool header_reader::matrix_line(std::string_view line, std::uint64_t number) {
  if (!has_banner_) {
    banner(line);
    return false;
  }
  const auto words = words_of(line);
  if (words.empty() || words[0][0] == '%') return false;
  if (words.size() != 3)
    throw bad_line{
        fmt::format("{} numbers; the line of sizes is ROWS COLUMNS ENTRIES", words.size())};
  const std::uint64_t rows = size_in(words[0]), columns = size_in(words[1]);
  if (rows != columns)
    throw bad_line{fmt::format("{} rows and {} columns; the matrix of a graph has as many of both",
                               grouped(rows), grouped(columns))};
  declare(rows, size_in(words[2]), "the size", number);
  return true;
}

bool header_reader::dimacs_line(std::string_view line, std::uint64_t number) {
  const auto words = words_of(line);
  if (words.empty() || words[0] == "c") return false;
  if (words[0] != "p")
    throw bad_line{
        fmt::format("begins with {} where no \"p sp\" came before; give the line "
                    "\"p sp VERTICES ARCS\" first",
                    shown(words[0]))};
  if (words.size() != 4 || words[1] != "sp")
    throw bad_line{"is no problem of shortest paths; give \"p sp VERTICES ARCS\""};
  declare(size_in(words[2]), size_in(words[3]), "\"p sp\"", number);
  form_.arcs = form_.weighted = true;
  form_.is = "a line is a FROM TO WEIGHT, or begins with c";
  form_.no_weight = fmt::format("has no weight; {}", form_.is);
  return true;
}

/// Whether edges have weights is told by the first.
bool header_reader::list_line(std::string_view line, std::uint64_t number) {
  form_.commas = true;
  form_.vertices = most_vertices;
  form_.limit = fmt::format("they count from 0 to {}", most_vertices - 1);
  form_.is = "a line is FROM TO or FROM TO WEIGHT";
  const char* const end = line.data() + line.size() + 1;
  weighted_edge e{};
  const char* at = line.data();
  form_.weighted = true;
  try {
    if (!read_line(at, end, form_, e)) return false;
  } catch (const bad_line&) {
    form_.weighted = false;
    at = line.data();
    try {
      read_line(at, end, form_, e);
    } catch (const bad_line&) {  // either way: the reader of edges says so
      const auto words = words_of(line);
      form_.weighted = words.size() > 2;
    }
  }
  declared_in_ = number;
  form_.no_weight =
      fmt::format("has no weight, but line {} has one; give all edges a weight, or none", number);
  form_.one_weight =
      fmt::format("is a weight, but line {} has none; give all edges a weight, or none", number);
  return true;
}

}  // namespace grosr::graphs
