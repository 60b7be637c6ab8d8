// How lanes search a window of a file, and what they tell the host.
//
//   file      │ window 0      │ window 1      │ ...   stride bytes each: the lines that begin there
//   reads     │ window 0 ··········│                  window_bytes: a line may go on so far
//                            │ window 1 ··········│   from the byte before: does a line begin?
//
// A lane takes the lines that begin in its part of the window. A line that goes on behind what was
// read is reported as too long: the host reads on.
#pragma once

#include "files/read_files.hpp"
#include "line_automaton.hpp"

namespace grosr::grep {

using tool::window_bytes;
inline constexpr std::uint32_t stride = window_bytes - 4096 - 1;

/// A line that matches, or is too long, or how many lines a window of a large file has.
struct record {
  static constexpr std::uint32_t too_long = 0xffffffffu, line_count = 0xfffffffeu;
  static constexpr std::uint64_t no_text = ~std::uint64_t{0};
  static constexpr std::uint32_t no_file = 0xffffffffu;  ///< a place that nobody has written
  std::uint32_t file, window;
  std::uint32_t line;   ///< of the window, from 0; or how many
  std::uint32_t bytes;  ///< or too_long, or line_count
  std::uint64_t offset;
  std::uint64_t
      text;  ///< where it is in the device's memory of texts, or no_text: there was no room
};

/// By file.
struct file_state {
  static constexpr std::uint32_t binary = 1, again = 2;
  std::uint32_t error;
  std::uint32_t flags;  ///< `again`: there was no room for records
  std::uint64_t matches;
};

/// A window as a lane sees it: `own_begin` to `own_end` are where its lines begin.
struct window_part {
  const unsigned char* text;
  std::uint32_t bytes, own_begin, own_end;
  bool at_begin, at_end;  ///< of the file
};

/// What one lane found in its part.
struct part_result {
  std::uint32_t lines = 0, matches = 0, reported = 0, bytes = 0;
  bool zero = false;
};

/// Calls f(line, begin, end, matched) for each line that begins in the part, `end` being
/// record::too_long when it does not end in the window. Zero bytes are noticed on the way.
template <class F>
GROSR_DEVICE inline bool each_line(const window_part& w, const line_automaton_ref& a, F&& f) {
  bool zero = false;
  std::uint32_t i = w.own_begin;
  if (i >= w.own_end) return false;
  if (!(w.at_begin && i == 0) && w.text[i - 1] != '\n') {
    while (i < w.own_end && w.text[i] != '\n') zero |= w.text[i++] == 0;
    if (++i >= w.own_end) return zero;
  }
  std::uint32_t state = a.start, begin = i, line = 0;
  for (; i < w.bytes; ++i) {
    const unsigned char c = w.text[i];
    if (c != '\n') {
      zero |= c == 0;
      state = a.step(state, c);
      continue;
    }
    f(line++, begin, i, a.accepts(state));
    state = a.start;
    begin = i + 1;
    if (begin >= w.own_end) return zero;
  }
  if (w.at_end)
    f(line, begin, i, a.accepts(state));
  else
    f(line, begin, record::too_long, false);
  return zero;
}

}  // namespace grosr::grep
