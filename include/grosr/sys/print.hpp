// print: formatted text from kernels, written by the host.
#pragma once

#include <type_traits>

#include "grosr/sys/detail/wrap.hpp"

namespace grosr::sys {

/// The most arguments of one print, and bytes of one of its texts: the server takes no more.
inline constexpr unsigned most_printed = 64;
inline constexpr std::uint32_t most_of_printed_text = 16384;

/// What kind of value a printed argument is.
enum class printed : std::uint8_t { integer, natural, real, character, boolean, pointer, text };

namespace detail {

template <class T>
constexpr printed kind_of_printed() {
  using type = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<type, bool>)
    return printed::boolean;
  else if constexpr (std::is_same_v<type, char>)
    return printed::character;
  else if constexpr (std::is_floating_point_v<type>)
    return printed::real;
  else if constexpr (std::is_convertible_v<T, const char*>)
    return printed::text;
  else if constexpr (std::is_pointer_v<type>)
    return printed::pointer;
  else if constexpr (std::is_enum_v<type>)
    return printed::integer;
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

/// Bytes of each of `texts` texts that one call carries.
constexpr std::uint32_t most_of_text(unsigned texts) {
  constexpr std::uint32_t all = piece_bytes - 4096;  // the rest is for the words
  return all / texts < most_of_printed_text ? all / texts : most_of_printed_text;
}

/// Text without its end, as much of it as `most`.
GROSR_DEVICE inline part text_to(unsigned argument, const char* text, std::uint32_t most) {
  std::uint32_t n = 0;
  if (text != nullptr)
    while (n < most && text[n] != 0) ++n;
  return bytes_to(argument, text, n);
}

}  // namespace detail

/// Writes one text, formatted as fmt::format does it: the format is read on the host. Of the format
/// and of each argument that is text, 16 KiB are taken (15 KiB where there are 3 such arguments, 12
/// KiB where there are 4).
/// Each text is written whole; those of one warp's lanes in the order of lanes. Does not wait for
/// the host, but for room; nothing that was accepted is lost, whatever becomes of the kernel. 0, or
/// -EAGAIN when there was no room for too long, -EFAULT for a null format. Lanes, a warp, a block
/// or a grid print one text each (-EINPROGRESS in warps other than the one that does). At most 4
/// arguments are const char*.
template <class Caller, class... Arguments>
GROSR_DEVICE long print(const Caller& c, const char* format, const Arguments&... arguments) {
  constexpr unsigned count = sizeof...(Arguments);
  constexpr unsigned texts =
      (0u + ... + (detail::kind_of_printed<const Arguments&>() == printed::text ? 1u : 0u));
  static_assert(!is_awaiting<Caller>,
                "grosr: print does not wait for the host: there is nothing to await");
  static_assert(texts <= 4, "grosr: print takes at most 4 arguments that are texts");
  static_assert(count <= most_printed, "grosr: print takes at most 64 arguments");
  constexpr std::uint32_t most = detail::most_of_text(1 + texts);
  // How many arguments and how long the format is; then of each its kind, and its value or, of a
  // text, which argument of the call it is and how long.
  std::uint64_t words[1 + 2 * count];
  auto o = detail::make<2 + texts>(call_print, format, words);
  o.stays = false;
  o.part_of[0] = detail::text_to(0, format, most);
  if (format == nullptr) o.part_of[0].bytes = 1;
  words[0] = count | std::uint64_t{o.part_of[0].bytes} << 32;
  unsigned at = 1, next_text = 2;
  [[maybe_unused]] const auto add = [&](const auto& value) {
    using type = std::remove_cvref_t<decltype(value)>;
    words[at++] = static_cast<std::uint64_t>(detail::kind_of_printed<const type&>());
    if constexpr (detail::kind_of_printed<const type&>() == printed::text) {
      o.part_of[next_text] = detail::text_to(next_text, value, most);
      words[at++] = next_text | std::uint64_t{o.part_of[next_text].bytes} << 32;
      ++next_text;
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
