// How the words of a call become the arguments of a handler.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "grosr/sys/numbers.hpp"

namespace grosr::sys::detail {

template <class T>
T argument_of(std::uint64_t word) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>,
                "grosr: an argument of a handler has at most 8 bytes");
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<T>(word);
  } else {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
}

template <class F, class R, class... Arguments, std::size_t... I>
std::function<long(const std::uint64_t*)> bind_words(F f, std::index_sequence<I...>) {
  static_assert(sizeof...(Arguments) <= max_arguments, "grosr: a handler has at most 6 arguments");
  return [f = std::move(f)]([[maybe_unused]] const std::uint64_t* words) mutable -> long {
    if constexpr (std::is_void_v<R>) {
      f(argument_of<std::remove_cvref_t<Arguments>>(words[I])...);
      return 0;
    } else {
      return static_cast<long>(f(argument_of<std::remove_cvref_t<Arguments>>(words[I])...));
    }
  };
}

template <class F, class R, class C, class... Arguments>
auto unpack(F f, R (C::*)(Arguments...)) {
  return bind_words<F, R, Arguments...>(std::move(f), std::index_sequence_for<Arguments...>());
}
template <class F, class R, class C, class... Arguments>
auto unpack(F f, R (C::*)(Arguments...) const) {
  return bind_words<F, R, Arguments...>(std::move(f), std::index_sequence_for<Arguments...>());
}

/// The handler as a function of a call's six words.
template <class F>
std::function<long(const std::uint64_t*)> unpacked(F f) {
  return unpack(std::move(f), &F::operator());
}

}  // namespace grosr::sys::detail
