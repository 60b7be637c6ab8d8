// Bytes that travel with a call of a handler. A handler runs on the host, where addresses of the
// device mean nothing: what it is to read or fill is carried there and back.
#pragma once

#include <type_traits>

#include "grosr/sys/detail/wrap.hpp"

namespace grosr::sys {

/// An argument of sys::call: `count` objects of the caller's memory, which the handler takes as a
/// std::span. Made by sent(), filled() and exchanged().
template <class T, travel How>
struct carried {
  static_assert(
      std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && alignof(T) <= 16,
      "grosr: what is carried to a handler is trivially copyable, no pointer, and aligned "
      "to at most 16 bytes");
  T* at;
  std::size_t count;
};

/// The handler reads them: it takes a std::span<const T>.
template <class T>
GROSR_DEVICE carried<T, travel::to_server> sent(const T* at, std::size_t count) {
  return {const_cast<T*>(at), count};
}

/// The handler fills them, all of them: it takes a std::span<T>. They come back if its result is
/// not negative.
template <class T>
GROSR_DEVICE carried<T, travel::from_server> filled(T* at, std::size_t count) {
  return {at, count};
}

/// The handler reads and changes them: it takes a std::span<T>. They come back if its result is not
/// negative.
template <class T>
GROSR_DEVICE carried<T, travel::both> exchanged(T* at, std::size_t count) {
  return {at, count};
}

namespace detail {

template <class T>
inline constexpr bool is_carried = false;
template <class T, travel How>
inline constexpr bool is_carried<carried<T, How>> = true;

/// Words of a call that an argument takes: of what is carried its address and its bytes.
template <class T>
inline constexpr unsigned words_of = is_carried<T> ? 2 : 1;

/// Puts the arguments of a call of a handler into its words, and what is carried into its parts.
template <unsigned Parts>
struct handler_call {
  operation<Parts> made;
  unsigned word = 0, part = 0;
  std::size_t bytes = 0;

  // All of it travels, though the host may see it: a handler that fails changes nothing, and what
  // it is given is the server's.
  GROSR_DEVICE explicit handler_call(call_number number) : made(number) { made.stays = false; }

  template <class T>
  GROSR_DEVICE void put(const T& value) {
    static_assert(!std::is_pointer_v<T> && !std::is_null_pointer_v<T>,
                  "grosr: a handler runs on the host and gets no addresses of the device: pass "
                  "sys::sent(at, count), sys::filled(at, count) or sys::exchanged(at, count)");
    made.record.argument[word++] = word_of(value);
  }
  template <class T, travel How>
  GROSR_DEVICE void put(const carried<T, How>& c) {
    const std::size_t most = piece_bytes / sizeof(T);
    const std::size_t now = c.count <= most ? c.count * sizeof(T) : piece_bytes + 1;
    bytes += now;
    made.record.argument[word] = reinterpret_cast<std::uint64_t>(c.at);
    made.record.argument[word + 1] = now;
    made.part_of[part++] = {c.at, static_cast<std::uint32_t>(now), static_cast<std::uint8_t>(word),
                            How};
    word += 2;
    if (bytes > piece_bytes) made.bad = -EMSGSIZE;
  }
};

template <class... Arguments>
GROSR_DEVICE auto call_of_handler(call_number number, const Arguments&... arguments) {
  static_assert((0u + ... + words_of<Arguments>) <= max_arguments,
                "grosr: a handler has at most 6 arguments, of which a span counts as two");
  handler_call<(0u + ... + (is_carried<Arguments> ? 1u : 0u))> c(number);
  (c.put(arguments), ...);
  return c.made;
}

}  // namespace detail
}  // namespace grosr::sys
