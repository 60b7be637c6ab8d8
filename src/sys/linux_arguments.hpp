// What the arguments of a system call are, and how a line of linux_calls.def says it.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "grosr/sys/numbers.hpp"

namespace grosr::sys {

/// What an argument is. "Input" is what Linux reads, "output" what it writes.
enum class argument_kind : std::uint8_t {
  value,         ///< a number, flags, or an address that the call only names
  descriptor,    ///< nullable: may be -1
  folder,        ///< a folder's descriptor, or AT_FDCWD
  path,          ///< a path, ends with 0
  text,          ///< other text that ends with 0
  input_bytes,   ///< argument `from` says how many
  output_bytes,  ///< argument `from` says how many
  input,         ///< a struct of `bytes` bytes
  output,        ///< a struct of `bytes` bytes
  both,          ///< a struct of `bytes` bytes that is read and written
  read_iovecs,   ///< iovecs whose memory Linux reads; argument `from` says how many
  fill_iovecs,   ///< iovecs whose memory Linux fills; argument `from` says how many
  sized,         ///< output bytes; the number that argument `from` points to says how many
  array,         ///< structs of `bytes` bytes, read and written; argument `from` says how many
  pointer,       ///< of varying meaning, or to what holds pointers itself
};

/// One argument of a system call. `from` and `bytes` are 0 where the kind has no use for them.
struct argument {
  argument_kind kind = argument_kind::value;
  unsigned from = 0;      ///< which argument, from 0, has the length or count, or points to it
  unsigned bytes = 0;     ///< size of the struct on x86-64
  bool nullable = false;  ///< may be null; a descriptor: -1
};

/// The arguments of one call: the first `count` of `at`.
struct argument_list {
  std::array<argument, max_arguments> at{};
  unsigned count = 0;
};

namespace detail {

constexpr argument_kind kind_of(char letter) {
  switch (letter) {
    case 'v':
      return argument_kind::value;
    case 'f':
      return argument_kind::descriptor;
    case 'd':
      return argument_kind::folder;
    case 'p':
      return argument_kind::path;
    case 's':
      return argument_kind::text;
    case 'i':
      return argument_kind::input_bytes;
    case 'o':
      return argument_kind::output_bytes;
    case 'I':
      return argument_kind::input;
    case 'O':
      return argument_kind::output;
    case 'B':
      return argument_kind::both;
    case 'V':
      return argument_kind::read_iovecs;
    case 'W':
      return argument_kind::fill_iovecs;
    case 'u':
      return argument_kind::sized;
    case 'A':
      return argument_kind::array;
    case 'r':
      return argument_kind::pointer;
    default:
      throw std::invalid_argument("linux_calls.def: no kind of argument has this letter");
  }
}

constexpr argument parse_argument(std::string_view token, unsigned index) {
  argument a{kind_of(token[0]), 0, 0, token.size() > 1 && token.back() == '?'};
  const std::string_view digits = token.substr(1, token.size() - 1 - (a.nullable ? 1 : 0));
  unsigned number = 0;
  for (char digit : digits) {
    if (digit < '0' || digit > '9' || number > 9999)
      throw std::invalid_argument("linux_calls.def: an argument has a letter, a number and a '?'");
    number = 10 * number + static_cast<unsigned>(digit - '0');
  }
  const bool takes_length = a.kind == argument_kind::input_bytes ||
                            a.kind == argument_kind::output_bytes || a.kind == argument_kind::sized;
  const bool takes_bytes = a.kind == argument_kind::input || a.kind == argument_kind::output ||
                           a.kind == argument_kind::both || a.kind == argument_kind::array;
  if (digits.empty() == (takes_length || takes_bytes) || (takes_bytes && number == 0))
    throw std::invalid_argument(
        "linux_calls.def: i o u I O B A have a number, the others have none");
  if (a.kind == argument_kind::value && a.nullable)
    throw std::invalid_argument("linux_calls.def: a value is never null");
  if (takes_length) a.from = number;
  if (takes_bytes) a.bytes = number;
  if (a.kind == argument_kind::read_iovecs || a.kind == argument_kind::fill_iovecs ||
      a.kind == argument_kind::array)
    a.from = index + 1;
  return a;
}

constexpr bool has_length(argument_kind kind) {
  return kind == argument_kind::input_bytes || kind == argument_kind::output_bytes ||
         kind == argument_kind::read_iovecs || kind == argument_kind::fill_iovecs ||
         kind == argument_kind::array;
}

}  // namespace detail

/// Reads the arguments of one call, tokens with a space between them ("f o2 v v"), as
/// linux_calls.def explains them. Throws std::invalid_argument; when compiling, an error.
constexpr argument_list parse_arguments(std::string_view tokens) {
  argument_list list;
  while (!tokens.empty()) {
    const std::size_t end = tokens.find(' ');
    const std::string_view token = tokens.substr(0, end);
    tokens = end == tokens.npos ? std::string_view{} : tokens.substr(end + 1);
    if (token.empty() || (end != token.npos && tokens.empty()))
      throw std::invalid_argument("linux_calls.def: one space between two arguments, no other");
    if (list.count == max_arguments)
      throw std::invalid_argument("linux_calls.def: a call has at most six arguments");
    list.at[list.count] = detail::parse_argument(token, list.count);
    ++list.count;
  }
  for (unsigned i = 0; i < list.count; ++i) {
    const unsigned from = list.at[i].from;
    if (list.at[i].kind == argument_kind::sized &&
        (from >= list.count || list.at[from].kind != argument_kind::both ||
         list.at[from].bytes != 4))
      throw std::invalid_argument("linux_calls.def: u has the number of a B4 argument");
    if (!detail::has_length(list.at[i].kind)) continue;
    if (from >= list.count || list.at[from].kind != argument_kind::value)
      throw std::invalid_argument("linux_calls.def: a length is the number of a v argument");
  }
  return list;
}

}  // namespace grosr::sys
