// Tells which lines match: a deterministic automaton, a row a state, that begins anew in each line.
#pragma once

#include <cstdint>
#include <vector>

#include "expression.hpp"
#include "grosr/simt/config.hpp"

namespace grosr::grep {

/// A view of the tables, in the memory of who uses it. States are offsets of rows.
struct line_automaton_ref {
  const std::uint32_t* next;
  const std::uint8_t* column;  ///< by byte
  std::uint32_t start;         ///< at the beginning of a line
  std::uint32_t accepting;     ///< a line that ends in this state or a later one matches

  GROSR_DEVICE std::uint32_t step(std::uint32_t state, unsigned char c) const {
    return next[state + column[c]];
  }
  GROSR_DEVICE bool accepts(std::uint32_t state) const { return state >= accepting; }
};

struct line_automaton {
  /// Throws tool::usage_error when the expression needs too many states.
  explicit line_automaton(const expression& e);
  line_automaton_ref ref() const { return {next.data(), column.data(), start, accepting}; }

  std::vector<std::uint32_t> next;
  std::vector<std::uint8_t> column;
  std::uint32_t start = 0, accepting = 0;
};

}  // namespace grosr::grep
