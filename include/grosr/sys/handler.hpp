// How the words of a call become the arguments of a handler, and which calls a handler takes.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "grosr/sys/carried.hpp"
#include "grosr/sys/deferred.hpp"
#include "grosr/sys/numbers.hpp"

namespace grosr::sys::detail {

/// A handler as the server keeps it.
struct installed_handler {
  std::function<long(const std::uint64_t*)> run;  ///< of the call's words
  /// Instead of `run`, if it replies later.
  std::function<void(deferred_reply, const std::uint64_t*)> run_deferred;
  std::uint8_t spans = 0;  ///< bit i: words i and i + 1 are the address and the length of bytes
  bool quick = false;      ///< runs on the service thread that took the call
};

template <class T>
inline constexpr bool is_span = false;
template <class T>
inline constexpr bool is_span<std::span<T>> = true;

template <class T>
inline constexpr bool is_fixed_span = false;
template <class T, std::size_t N>
inline constexpr bool is_fixed_span<std::span<T, N>> = N != std::dynamic_extent;

template <class T>
inline constexpr unsigned words_of<std::span<T>> = 2;

/// Whether these words may be this argument.
template <class T>
bool fits(const std::uint64_t* words) {
  if constexpr (is_span<T>) {
    using element = typename T::element_type;
    return words[1] % sizeof(element) == 0 && (words[1] == 0 || words[0] % alignof(element) == 0);
  } else {
    return true;
  }
}

template <class T>
T argument_of(const std::uint64_t* words) {
  static_assert(!std::is_pointer_v<T>,
                "grosr: a handler runs on the host and gets no addresses of the device: take a "
                "std::span, and pass sys::sent, sys::filled or sys::exchanged");
  static_assert(
      is_span<T> || (sizeof(T) <= 8 && std::is_trivially_copyable_v<T> && !is_fixed_span<T>),
      "grosr: an argument of a handler has at most 8 bytes, or is a std::span of dynamic "
      "extent");
  if constexpr (is_span<T>) {
    using element = typename T::element_type;
    if (words[1] == 0) return {};
    return T(reinterpret_cast<element*>(words[0]), words[1] / sizeof(element));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<T>(words[0]);
  } else {
    T value;
    std::memcpy(&value, words, sizeof value);
    return value;
  }
}

/// Where the words of each argument begin.
template <class... Arguments>
constexpr auto first_words() {
  std::array<unsigned, sizeof...(Arguments) + 1> at{};
  unsigned i = 0;
  ((at[i + 1] = at[i] + words_of<Arguments>, ++i), ...);
  return at;
}

/// What is known of a handler by its arguments.
template <class... Arguments, std::size_t... I>
installed_handler of_arguments(std::index_sequence<I...>) {
  constexpr auto at = first_words<Arguments...>();
  static_assert(at.back() <= max_arguments,
                "grosr: a handler has at most 6 arguments, of which a span counts as two");
  installed_handler h;
  ((h.spans = static_cast<std::uint8_t>(h.spans | (is_span<Arguments> ? 1u << at[I] : 0u))), ...);
  return h;
}

template <class F, class R, class... Arguments, std::size_t... I>
installed_handler bind_words(F f, std::index_sequence<I...> all) {
  static constexpr auto at = first_words<Arguments...>();
  installed_handler h = of_arguments<Arguments...>(all);
  if constexpr (requires { F::quick; }) h.quick = F::quick;
  h.run = [f = std::move(f)]([[maybe_unused]] const std::uint64_t* words) mutable -> long {
    if (!(fits<Arguments>(words + at[I]) && ...)) return -EINVAL;
    if constexpr (std::is_void_v<R>) {
      f(argument_of<Arguments>(words + at[I])...);
      return 0;
    } else {
      return static_cast<long>(f(argument_of<Arguments>(words + at[I])...));
    }
  };
  return h;
}

template <class F, class R, class... Arguments, std::size_t... I>
installed_handler bind_deferred(F f, std::index_sequence<I...> all) {
  static_assert(std::is_void_v<R>,
                "grosr: a handler that takes a sys::deferred_reply returns nothing: it replies");
  static constexpr auto at = first_words<Arguments...>();
  installed_handler h = of_arguments<Arguments...>(all);
  h.run_deferred = [f = std::move(f)](deferred_reply reply,
                                      [[maybe_unused]] const std::uint64_t* words) mutable {
    if ((fits<Arguments>(words + at[I]) && ...))
      f(std::move(reply), argument_of<Arguments>(words + at[I])...);
    else
      reply.reply(-EINVAL);
  };
  return h;
}

template <class F, class R, class C, class... Arguments>
auto unpack(F f, R (C::*)(deferred_reply, Arguments...)) {
  return bind_deferred<F, R, std::remove_cvref_t<Arguments>...>(
      std::move(f), std::index_sequence_for<Arguments...>());
}
template <class F, class R, class C, class... Arguments>
auto unpack(F f, R (C::*)(deferred_reply, Arguments...) const) {
  return bind_deferred<F, R, std::remove_cvref_t<Arguments>...>(
      std::move(f), std::index_sequence_for<Arguments...>());
}
template <class F, class R, class C, class... Arguments>
auto unpack(F f, R (C::*)(Arguments...)) {
  return bind_words<F, R, std::remove_cvref_t<Arguments>...>(
      std::move(f), std::index_sequence_for<Arguments...>());
}
template <class F, class R, class C, class... Arguments>
auto unpack(F f, R (C::*)(Arguments...) const) {
  return bind_words<F, R, std::remove_cvref_t<Arguments>...>(
      std::move(f), std::index_sequence_for<Arguments...>());
}

/// The handler as a function of a call's six words.
template <class F>
installed_handler unpacked(F f) {
  return unpack(std::move(f), &F::operator());
}

}  // namespace grosr::sys::detail
