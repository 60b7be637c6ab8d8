// The loop over the chunks of a file of text, each parsed by several threads.
#include "graph/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "graph/io/build.hpp"
#include "graph/io/chunks.hpp"
#include "graph/io/header.hpp"
#include "graph/io/memory.hpp"
#include "graph/io/words.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::graphs {
namespace {

// Bounds for edge lists, which do not say how many vertices there are.
constexpr std::uint64_t many_vertices = 1 << 24, most_vertices_an_edge = 100;

class text_reader {
  [[noreturn]] void refuse(std::uint64_t line, std::string_view what) {
    throw error(errc::bad_input, fmt::format("{}:{}: {}", from_.name(), line, what));
  }

  /// Calls f; what is wrong with the line gets its number.
  template <class F>
  auto blame(std::uint64_t line, F&& f) {
    try {
      return f();
    } catch (const bad_line& bad) {
      refuse(line, bad.what);
    }
  }

 public:
  text_reader(source& from, text_format format, symmetry edges, const reading& how,
              host_threads& threads)
      : from_(from),
        how_(how),
        threads_(threads),
        symmetry_(edges),
        header_(format),
        parts_(how.threads),
        chunks_(from, how.chunk, how.threads > 1, threads) {}

  csr_graph read(left_out& dropped) {
    host_threads::stage stage(threads_, fmt::format("reading {}, MB", from_.name()),
                              from_.file_bytes() / 1'000'000);
    for (std::string_view lines; !(lines = next()).empty();) {
      if (!has_header_) take_header(lines);
      if (!lines.empty()) take_edges(lines);
      stage.at(from_.bytes_read() / 1'000'000);
    }
    if (!has_header_) blame(std::max<std::uint64_t>(lines_, 1), [&] { header_.finish(); });
    const std::uint64_t needed = header_.edges().value_or(edges_);
    if (edges_ < needed)
      refuse(std::max<std::uint64_t>(lines_, 1),
             fmt::format(
                 "the file ends after {} of the {} edges that line {} announces; is it cut off?",
                 grouped(edges_), grouped(needed), header_.declared_in()));
    return finish(dropped);
  }

 private:
  std::string_view next() {
    try {
      return chunks_.next();
    } catch (const line_chunks::long_line&) {
      refuse(lines_ + 1, fmt::format("a line of more than {} bytes; is this a file of text?",
                                     grouped(line_chunks::longest)));
    }
  }

  /// Takes lines of the header off the front.
  void take_header(std::string_view& lines) {
    while (!has_header_ && !lines.empty()) {
      const std::size_t length = lines.find('\n');
      has_header_ =
          blame(lines_ + 1, [&] { return header_.take(lines.substr(0, length), lines_ + 1); });
      if (has_header_ && header_.holds_edge()) break;
      lines.remove_prefix(length + 1);
      ++lines_;
    }
    if (has_header_ && header_.edges())
      check_size(*header_.edges(), header_.form().vertices, header_.declared_in());
  }

  void check_size(std::uint64_t edges, std::uint64_t vertices, std::uint64_t line) {
    const size_of_graph size{vertices, edges, header_.form().weighted, undirected()};
    require(size, size.to_build(), how_.memory, fmt::format("{}:{}", from_.name(), line));
  }

  void take_edges(std::string_view lines) {
    const std::size_t pieces = std::clamp<std::size_t>(lines.size() / how_.piece, 1, how_.threads);
    std::vector<lines_read> results(pieces);
    threads_.run(static_cast<unsigned>(pieces), [&](unsigned i) {
      results[i] = read_lines(piece_of_lines(lines, i, pieces), header_.form(), parts_[i]);
    });
    for (std::size_t i = 0; i < pieces; ++i) {
      const lines_read& r = results[i];
      if (header_.edges() && r.edges > *header_.edges() - edges_) {
        const std::uint64_t line = line_of_edge(piece_of_lines(lines, i, pieces), header_.form(),
                                                *header_.edges() - edges_);
        refuse(lines_ + line, fmt::format("one edge more than the {} that line {} announces",
                                          grouped(*header_.edges()), header_.declared_in()));
      }
      lines_ += r.lines;
      edges_ += r.edges;
      vertices_ = std::max(vertices_, r.vertices);
      if (!r.wrong.empty()) refuse(lines_, r.wrong);
    }
    if (!header_.edges()) check_size(edges_, vertices_, lines_);
  }

  bool undirected() const { return header_.undirected() || symmetry_ == symmetry::undirected; }

  csr_graph finish(left_out& dropped) {
    edge_list all;
    for (edge_list& part : parts_) all.take(std::move(part));
    const std::uint64_t n = header_.edges() ? header_.form().vertices : vertices_;
    // A few bytes are not to take all memory because of a number that is none of a vertex.
    if (!header_.edges() && n > many_vertices && n / most_vertices_an_edge > edges_)
      throw error(errc::bad_input,
                  fmt::format("{}: {} edges, and vertices up to {}; number its vertices from 0 on "
                              "without gaps, or give a format that says how many there are, such "
                              "as Matrix Market",
                              from_.name(), grouped(edges_), grouped(n - 1)));
    const host_threads::stage stage(threads_, fmt::format("sorting {} edges", grouped(edges_)));
    csr_graph g = build(std::move(all), static_cast<vertex>(n), !undirected(), dropped, threads_);
    g.first = header_.form().first;
    return g;
  }

  source& from_;
  const reading how_;
  host_threads& threads_;
  const symmetry symmetry_;
  header_reader header_;
  bool has_header_ = false;
  std::uint64_t lines_ = 0, edges_ = 0, vertices_ = 0;  ///< so far
  std::vector<edge_list> parts_;                        ///< of each thread
  line_chunks chunks_;
};

/// "%%MatrixMarket" in any case, as NIST's reader takes it too.
bool is_banner(std::string_view head) {
  constexpr std::string_view banner = "%%matrixmarket";
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return head.size() >= banner.size() &&
         std::equal(banner.begin(), banner.end(), head.begin(),
                    [&](char b, char a) { return same(a, b); }) &&
         (head.size() == banner.size() || is_blank(head[banner.size()]) ||
          head[banner.size()] == '\n');
}

bool is_word(std::string_view text, char letter) {
  return text.size() > 1 && text[0] == letter && (is_blank(text[1]) || text[1] == '\n');
}

}  // namespace

text_format format_of(std::string_view head) {
  if (is_banner(head)) return text_format::matrix_market;
  const auto first =
      std::find_if(head.begin(), head.end(), [](char c) { return !is_blank(c) && c != '\n'; });
  const std::string_view text = head.substr(static_cast<std::size_t>(first - head.begin()));
  if (text.empty()) return head.empty() ? text_format::none : text_format::edge_list;
  if (is_word(text, 'c') || is_word(text, 'p') || is_word(text, 'a')) return text_format::dimacs;
  const bool listed = std::string_view("#%+-.,0123456789").find(text[0]) != std::string_view::npos;
  return listed ? text_format::edge_list : text_format::none;
}

const char* name_of(text_format format) {
  switch (format) {
    case text_format::matrix_market:
      return "Matrix Market";
    case text_format::dimacs:
      return "DIMACS";
    case text_format::edge_list:
      return "edge list";
    default:
      return "no graph";
  }
}

csr_graph read_text(source& from, text_format format, symmetry edges, const reading& how,
                    host_threads& threads, left_out& dropped) {
  return text_reader(from, format, edges, how, threads).read(dropped);
}

}  // namespace grosr::graphs
