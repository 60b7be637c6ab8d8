// Numbers of calls: Linux's own, then handlers, then what the library serves itself.
#pragma once

#include <cstdint>

namespace grosr::sys {

using call_number = std::uint16_t;
inline constexpr call_number handler_base = 0x4000;
inline constexpr call_number own_base = 0x8000;
inline constexpr call_number call_nothing = own_base;    ///< does nothing: what a call costs
inline constexpr call_number call_print = own_base + 1;  ///< (text, bytes)
inline constexpr unsigned own_calls = 2;

/// The most arguments that a call has.
inline constexpr unsigned max_arguments = 6;

}  // namespace grosr::sys
