// What is searched for, as a set of expressions.
#pragma once

#include <bitset>
#include <memory>
#include <string>
#include <vector>

namespace grosr::grep {

/// What stands at one place of an expression: bytes, and the two ends of a line.
inline constexpr unsigned line_begin = 256, line_end = 257, symbols = 258;
using symbol_set = std::bitset<symbols>;

struct expression {
  enum class kind { empty, one, sequence, choice, repeat } what = kind::empty;
  symbol_set set;                                  ///< of `one`
  std::vector<std::shared_ptr<expression>> parts;  ///< one of `repeat`
  unsigned least = 0, most = 0;                    ///< of `repeat`; most 0: no end
};
using expression_ptr = std::shared_ptr<expression>;

struct reading {
  bool fixed = false;        ///< patterns are strings
  bool ignore_case = false;  ///< of ASCII letters
  bool words = false;        ///< what matches begins and ends at the edges of words
};

/// Any of the patterns, each line of one being a pattern. Extended regular expressions: . [] [^]
/// [:classes:] ^ $ * + ? {m,n} | () and \w \W \s \S. Throws tool::usage_error.
expression_ptr read_patterns(const std::vector<std::string>& patterns, const reading& how);

}  // namespace grosr::grep
