// Numbers of calls: Linux's own, then handlers, then what the library serves itself, then handlers
// that were added.
#pragma once

#include <cstdint>

namespace grosr::sys {

using call_number = std::uint16_t;
inline constexpr call_number handler_base = 0x4000;
inline constexpr call_number own_base = 0x8000;
inline constexpr call_number call_nothing = own_base;    ///< does nothing: what a call costs
inline constexpr call_number call_print = own_base + 1;  ///< (text, bytes)
inline constexpr unsigned own_calls = 2;
inline constexpr call_number added_base = 0xc000;

inline constexpr bool is_handler(unsigned number) {
  return (number >= handler_base && number < own_base) || number >= added_base;
}

/// A handler that a server has added: how kernels name it. Trivially copyable.
struct handler_ref {
  call_number number = added_base - 1;  ///< none
};

/// The most arguments that a call has.
inline constexpr unsigned max_arguments = 6;

}  // namespace grosr::sys
