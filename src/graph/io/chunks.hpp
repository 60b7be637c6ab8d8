// The lines of a source, some megabytes at a time; the next are read while these are parsed.
#pragma once

#include <cstddef>
#include <future>
#include <string_view>

#include "graph/io/source.hpp"
#include "grosr/graph/huge_vector.hpp"

namespace grosr::graphs {

class line_chunks {
 public:
  /// Thrown by next(): the line that would come next is longer than anybody writes.
  struct long_line {};
  static constexpr std::size_t longest = 1 << 20;

  /// Reads about `bytes` at a time; `ahead`: on a thread of its own.
  line_chunks(source& from, std::size_t bytes, bool ahead, host_threads& threads);

  /// Lines that end in '\n', the last one too; empty at the end. Valid until the next call.
  std::string_view next();

 private:
  struct buffer {
    huge_vector<char> data;
    std::size_t lines = 0, size = 0;  ///< bytes of whole lines, and with what follows
    bool too_long = false;
  };
  void fill(buffer& b);
  void start(buffer& b);

  source& from_;
  const std::size_t bytes_;
  const bool ahead_;
  host_threads& threads_;
  bool end_ = false;
  buffer buffers_[2];
  unsigned coming_ = 0;
  std::future<void> filled_;
};

/// Piece i of so many of about the same size; some may be empty.
std::string_view piece_of_lines(std::string_view lines, std::size_t i, std::size_t pieces);

}  // namespace grosr::graphs
