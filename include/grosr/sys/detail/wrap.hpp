// What typed wrappers are made of.
#pragma once

#include <limits.h>
#include <sys/syscall.h>

#include "grosr/sys/detail/invoke.hpp"

namespace grosr::sys::detail {

// What the headers of Linux say, which would bring its functions into the global namespace; the
// server's files check it.
inline constexpr int first_folder = -100;  ///< AT_FDCWD
inline constexpr unsigned pollfd_bytes = 8;

template <class T>
GROSR_DEVICE inline std::uint64_t word_of(T value) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<std::uint64_t>(value);
  else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>)
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  else {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>,
                  "grosr: an argument of a call has at most 8 bytes");
    std::uint64_t word = 0;
    __builtin_memcpy(&word, &value, sizeof value);
    return word;
  }
}

/// An operation whose arguments are these, and no bytes travel yet.
template <unsigned Parts, bulk Bulk = bulk::none, class... Arguments>
GROSR_DEVICE inline operation<Parts, Bulk> make(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= max_arguments, "grosr: a call has at most 6 arguments");
  operation<Parts, Bulk> o(static_cast<call_number>(number));
  unsigned i = 0;
  ((o.record.argument[i++] = word_of(arguments)), ...);
  return o;
}

GROSR_DEVICE inline part bytes_to(unsigned argument, const void* at, std::uint32_t bytes) {
  return {const_cast<void*>(at), bytes, static_cast<std::uint8_t>(argument), travel::to_server};
}
GROSR_DEVICE inline part bytes_from(unsigned argument, void* at, std::uint32_t bytes,
                                    travel how = travel::from_server) {
  return {at, bytes, static_cast<std::uint8_t>(argument), how};
}

/// A path with its end, or PATH_MAX bytes without one, which the server refuses.
GROSR_DEVICE inline part path_to(unsigned argument, const char* path) {
  std::uint32_t n = 0;
  if (path != nullptr)
    while (n < PATH_MAX - 1 && path[n] != 0) ++n;
  return bytes_to(argument, path, n + 1);
}

/// An offset of a file `by` bytes on; past the largest one it is negative, which Linux refuses.
GROSR_DEVICE inline std::int64_t further(std::int64_t offset, std::size_t by) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(offset) + by);
}

/// How many bytes one call moves of `n`: all if the host sees them, else a piece. Where the host
/// sees all, those of a call that is awaited travel all the same.
template <class Caller>
GROSR_DEVICE inline std::uint32_t at_once(const Caller& c, const void* at, std::size_t n) {
  constexpr std::size_t most = 0x7ffff000;  // Linux's own limit
  std::size_t least = n < most ? n : most;
  return static_cast<std::uint32_t>(
      least <= piece_bytes ||
              (host_sees(c.where(), at, least) && !(is_awaiting<Caller> && c.where().host_sees_all))
          ? least
          : piece_bytes);
}

template <bool Ahead, class Caller, class Piece>
GROSR_DEVICE auto in_pieces(const Caller& c, const void* at, std::size_t n, Piece&& piece);

/// The same for a grid: the warp that calls makes all of its calls.
template <bool Ahead, class Caller, class Piece>
GROSR_DEVICE long in_pieces_of_grid(const Caller& c, const void* at, std::size_t n, Piece&& piece) {
  const bool calls = comes_to_call(c) && simt::warp_id() == 0;
  long result = -EINPROGRESS;
  if (calls) {
    const caller<granularity::warp, ordering::strong, false, Caller::attempts> mine(&c.where());
    result = in_pieces<Ahead>(mine, at, n, piece);
  }
  return tell_grid(c, calls, result);
}

/// A call that moves `n` bytes at `at`, cut into pieces that `piece(offset, bytes)` makes
/// operations of; a started call moves one piece. Ends at the first that fails or is short. With
/// `Ahead` a piece is begun before the one before it has ended, where there is room.
template <bool Ahead, class Caller, class Piece>
GROSR_DEVICE auto in_pieces(const Caller& c, const void* at, std::size_t n, Piece&& piece) {
  if constexpr (Caller::group == granularity::grid && !Caller::started) {
    return in_pieces_of_grid<Ahead>(c, at, n, piece);
  } else if constexpr (is_awaiting<Caller>) {
    return begin_awaited(c, piece(std::size_t{0}, at_once(c, at, n)));
  } else {
    if constexpr (Caller::group == granularity::warp) {
      const unsigned leader = simt::lowest_bit(c.mask());
      n = simt::shuffle(c.mask(), std::uint64_t{n}, leader);
      at = reinterpret_cast<const void*>(
          simt::shuffle(c.mask(), reinterpret_cast<std::uint64_t>(at), leader));
    }
    const bool may_be_ahead = Ahead && at != nullptr;  // the first one says what is wrong
    std::uint32_t now = at_once(c, at, n);
    if constexpr (Caller::group == granularity::block && Caller::order == ordering::producer &&
                  !Caller::started) {
      // After each piece everybody must know whether there is another one.
      if (now < n) {
        const caller<granularity::block, ordering::strong, false, Caller::attempts> knowing(
            &c.where());
        const long result = in_pieces<Ahead>(knowing, at, n, piece);
        return simt::warp_id() == 0 ? result : long{-EINPROGRESS};
      }
    }
    auto t = begin(c, piece(std::size_t{0}, now));
    if constexpr (Caller::started) {
      if (t.begun()) c.where().doorbell.ring();
      return t;
    } else {
      for (std::size_t moved = 0;;) {
        const std::size_t left = now < piece_bytes ? 0 : n - moved - now;
        const auto next = static_cast<std::uint32_t>(left < piece_bytes ? left : piece_bytes);
        decltype(t) ahead;
        if (may_be_ahead && next != 0) ahead = begin(c.attempt(), piece(moved + now, next));
        const long result = finish(c, t);
        if (result != static_cast<long>(now) || next == 0) {
          if (may_be_ahead && next != 0) finish(c.attempt(), ahead);
          if (result >= 0) moved += static_cast<std::size_t>(result);
          return result < 0 && moved == 0 ? result : static_cast<long>(moved);
        }
        moved += now;
        now = next;
        if (Ahead) t = ahead;
        // There was no room while another piece was held; now nothing is.
        if (!Ahead || t.code == -EAGAIN) t = begin(c, piece(moved, now));
      }
    }
  }
}

}  // namespace grosr::sys::detail
