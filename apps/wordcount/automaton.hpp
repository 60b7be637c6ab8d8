// Finds all occurrences of up to 64 words in one pass (Aho and Corasick, CACM 18(6), 1975), as a
// table with a row a state: the next state for each class of bytes. The same table and the same
// loop serve lanes and CPU threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grosr/simt/config.hpp"

namespace grosr::wordcount {

inline constexpr unsigned most_words = 64, longest_word = 64;

/// Bytes in front of a place that are enough to find every word that ends behind it.
inline constexpr std::uint32_t overlap = longest_word;

/// A view of the tables, in the memory of who uses it. States are offsets of rows; those where a
/// word ends lie behind all others.
struct automaton_ref {
  const std::uint32_t* next;
  const std::uint8_t* column;       ///< by byte
  const std::uint32_t* first_word;  ///< by number of the state, from `accepting` on
  const std::uint8_t* words;
  std::uint32_t accepting, row_shift;

  static constexpr std::uint32_t start = 0;

  /// Goes on from `state` over `n` bytes. Calls hit(i, state) after byte i when words end there.
  template <class Hit>
  GROSR_DEVICE std::uint32_t scan(std::uint32_t state, const unsigned char* text, std::uint32_t n,
                                  Hit&& hit) const {
    constexpr std::uint32_t at_once = 8;
    std::uint32_t i = 0;
    for (; i + at_once <= n; i += at_once) {
      std::uint32_t columns[at_once];
      for (std::uint32_t k = 0; k < at_once; ++k) columns[k] = column[text[i + k]];
      for (std::uint32_t k = 0; k < at_once; ++k) {
        state = next[state + columns[k]];
        if (state >= accepting) [[unlikely]]
          hit(i + k, state);
      }
    }
    for (; i < n; ++i) {
      state = next[state + column[text[i]]];
      if (state >= accepting) hit(i, state);
    }
    return state;
  }

  /// Calls f(word) for each word that ends in the state.
  template <class F>
  GROSR_DEVICE void each_word(std::uint32_t state, F&& f) const {
    const std::uint32_t s = (state - accepting) >> row_shift;
    for (std::uint32_t i = first_word[s]; i < first_word[s + 1]; ++i) f(words[i]);
  }
};

/// Owns the tables, in host memory.
struct automaton {
  /// 1 to 64 words of 1 to 64 bytes, which may be the same or lie in one another.
  explicit automaton(const std::vector<std::string>& words);
  automaton_ref ref() const;

  std::vector<std::uint32_t> next, first_word;
  std::vector<std::uint8_t> column, words;
  std::uint32_t accepting = 0, row_shift = 0;
};

}  // namespace grosr::wordcount
