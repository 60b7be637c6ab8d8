// Counting the words of files: a task a file starts a task for each of its chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "work/any_runtime.hpp"

namespace grosr::tool {

inline constexpr std::uint32_t chunk_bytes = 64 * 1024;

/// Bytes that a text must be padded with, as spaces, to be counted: tasks load pieces of 512.
inline constexpr std::size_t text_padding = 512;

/// A word is a maximal run of bytes that are none of these.
GROSR_DEVICE constexpr bool is_space(unsigned char c) { return c == ' ' || (c >= 9 && c <= 13); }

/// Adds to `*words` (device memory) the number of words that begin in `bytes` bytes of text at
/// `text`, which is aligned to 16 and padded. `before` is the byte in front: a word that began
/// there is not counted again.
struct count_file {
  static constexpr unsigned number = 0;
  const unsigned char* text;
  std::uint32_t* words;
  std::uint32_t bytes, before;
  GROSR_DEVICE void operator()(auto& context) const;
};

/// As `before`: look for yourself, the byte in front is there.
inline constexpr std::uint32_t look_in_front = 0x100;

/// The same for at most chunk_bytes of it.
struct count_chunk {
  static constexpr unsigned number = 1;
  static constexpr grosr::width width = grosr::width::warp;
  const unsigned char* text;
  std::uint32_t* words;
  std::uint32_t bytes, before;
  GROSR_DEVICE void operator()(auto& context) const;
};

std::unique_ptr<any_runtime> make_words_runtime(const device& d, const runtime_options& options);

/// The same on the CPU, one byte after the other: what the tasks' result is checked against.
std::uint64_t count_words_plainly(std::string_view text, unsigned char before = ' ');

}  // namespace grosr::tool
