// Words of messages: 16 bytes that say themselves whether they are written.
//
//   w0 w1 w2       12 bytes of content
//   w3             lap (31) │ first (30) │ words - 1 (28-29) │ operation (20-27) │ 0 │ extra (0-15)
//
// docs/internals/messages.md, "Links".
#pragma once

#include <cstdint>
#include <type_traits>

#include "grosr/simt/atomic.hpp"

namespace grosr::net {

inline constexpr unsigned most_words = 4;     ///< of a message
inline constexpr unsigned word_content = 12;  ///< bytes of content in a word
inline constexpr unsigned most_content = most_words * word_content;

/// What is done to an element.
enum class element_operation : std::uint8_t { none, put, add, min, max, bit_and, bit_or, get };

/// What an element is, as far as operations tell it apart.
enum class element_kind : std::uint8_t { word32, word64, float32, float64 };

template <class T>
constexpr element_kind kind_of_element() {
  static_assert(
      std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
      "grosr: an element of a distributed array is trivially copyable and has 4 or 8 bytes");
  if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? element_kind::float32 : element_kind::float64;
  else
    return sizeof(T) == 4 ? element_kind::word32 : element_kind::word64;
}

/// The operation of a word.
///
///   0                        padding
///   1 to 31                  element_operation * 4 + element_kind
///   64                       a reply: content is a value
///   65                       a reply: content is a status
///   128 + n                  the task type with that number in the runtime's list
struct operation {
  static constexpr std::uint32_t padding = 0, value = 64, status = 65, task = 128;
  GROSR_DEVICE static constexpr std::uint32_t of(element_operation o, element_kind k) {
    return static_cast<std::uint32_t>(o) * 4 + static_cast<std::uint32_t>(k);
  }
};

/// The bits of w3 that a sender says.
struct header_word {
  static constexpr unsigned words_at = 28, operation_at = 20;
  GROSR_DEVICE static constexpr std::uint32_t of(unsigned words, std::uint32_t operation,
                                                 std::uint32_t extra) {
    return (words - 1) << words_at | operation << operation_at | extra;
  }
  GROSR_DEVICE static constexpr unsigned words_of(std::uint32_t w3) {
    return (w3 >> words_at & 3) + 1;
  }
  GROSR_DEVICE static constexpr std::uint32_t operation_of(std::uint32_t w3) {
    return w3 >> operation_at & 0xff;
  }
  GROSR_DEVICE static constexpr std::uint32_t extra_of(std::uint32_t w3) { return w3 & 0xffff; }
};

/// A message as its sender has it.
template <unsigned Words>
struct message {
  std::uint32_t content[Words * 3];
  std::uint32_t header;  ///< w3 without the lap and `first`
};

inline constexpr std::uint32_t lap_bit = 1u << 31, first_bit = 1u << 30;

/// Words that so many bytes of content take.
constexpr unsigned words_for(std::size_t bytes) {
  return bytes == 0 ? 1 : static_cast<unsigned>((bytes + word_content - 1) / word_content);
}

}  // namespace grosr::net
