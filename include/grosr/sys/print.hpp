// print: formatted text from kernels, written by the host.
#pragma once

#include <type_traits>

#include "grosr/sys/wrap.hpp"

namespace grosr::sys {

/// What kind of value a printed argument is.
enum class printed : std::uint8_t { integer, natural, real, character, boolean, pointer, text };

namespace detail {

template <class T>
constexpr printed kind_of_printed() {
  using type = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<type, bool>) return printed::boolean;
  else if constexpr (std::is_same_v<type, char>) return printed::character;
  else if constexpr (std::is_floating_point_v<type>) return printed::real;
  else if constexpr (std::is_convertible_v<T, const char*>) return printed::text;
  else if constexpr (std::is_pointer_v<type>) return printed::pointer;
  else if constexpr (std::is_enum_v<type>) return printed::integer;
  else {
    static_assert(std::is_integral_v<type>,
                  "grosr: print takes numbers, characters, bools, pointers and const char*");
    return std::is_signed_v<type> ? printed::integer : printed::natural;
  }
}

template <class T>
GROSR_DEVICE std::uint64_t printed_word(const T& value) {
  if constexpr (std::is_floating_point_v<T>)
    return word_of(static_cast<double>(value));
  else if constexpr (std::is_convertible_v<const T&, const char*>)
    return 0;
  else
    return word_of(value);
}

/// Text with its end, or as much of it as one call carries.
GROSR_DEVICE inline part text_to(unsigned argument, const char* text) {
  constexpr std::uint32_t most = 16384;
  std::uint32_t n = 0;
  if (text != nullptr)
    while (n < most - 1 && text[n] != 0) ++n;
  return bytes_to(argument, text, text != nullptr ? n + 1 : 0);
}

}  // namespace detail

/// Writes one text, formatted as fmt::format does it: the format, up to 16 KB, is read on the host.
/// Each text is written whole; those of one warp's lanes in the order of lanes. Does not wait for
/// the host, but for room; nothing that was accepted is lost, whatever becomes of the kernel. 0, or
/// -EAGAIN when there was no room for too long, -EFAULT for a null format. Lanes, a warp, a block or
/// a grid print one text each. At most 4 arguments are const char*.
template <class Caller, class... Arguments>
GROSR_DEVICE long print(const Caller& c, const char* format, const Arguments&... arguments) {
  constexpr unsigned count = sizeof...(Arguments);
  constexpr unsigned texts =
      (0u + ... + (detail::kind_of_printed<const Arguments&>() == printed::text ? 1u : 0u));
  static_assert(texts <= 4, "grosr: print takes at most 4 arguments that are texts");
  std::uint64_t words[1 + 2 * count];
  words[0] = count;
  auto o = detail::make<2 + texts>(call_print, format, words);
  o.part_of[0] = detail::text_to(0, format);
  if (format == nullptr) o.part_of[0].bytes = 1;
  unsigned at = 1, next_text = 2;
  const auto add = [&](const auto& value) {
    using type = std::remove_cvref_t<decltype(value)>;
    words[at++] = static_cast<std::uint64_t>(detail::kind_of_printed<const type&>());
    if constexpr (detail::kind_of_printed<const type&>() == printed::text) {
      o.part_of[next_text] = detail::text_to(next_text, value);
      words[at++] = next_text++;
    } else {
      words[at++] = detail::printed_word(value);
    }
  };
  (add(arguments), ...);
  o.part_of[1] = detail::bytes_to(1, words, sizeof words);
  const auto starter = c.start();
  auto t = invoke(starter, o);
  return drop(starter, t);
}

}  // namespace grosr::sys
