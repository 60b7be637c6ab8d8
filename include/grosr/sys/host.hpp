// What the host has and a GPU has not: clocks that tell the time of day, sleep, random bytes, and
// an account of what the program uses. Names, arguments and results are those of `man 2`.
#pragma once

#include "grosr/sys/detail/wrap.hpp"

struct timespec;  // of <time.h>
struct rusage;    // of <sys/resource.h>

namespace grosr::sys {

/// The time on a clock of the host, when the call was made there.
template <class Caller, class Time = ::timespec>
GROSR_DEVICE auto clock_gettime(const Caller& c, int clock, std::type_identity_t<Time>* to) {
  auto o = detail::make<1>(SYS_clock_gettime, clock, to);
  o.part_of[0] = detail::bytes_from(1, to, sizeof *to);
  // Linux would take null for a clock that is there.
  if (to == nullptr) o.part_of[0].bytes = 1;
  return invoke(c, o);
}

/// Ends when so much time has passed on the host; no thread of the host waits meanwhile. 0. Nothing
/// interrupts it: `left` stays as it is.
template <class Caller, class Time = ::timespec>
GROSR_DEVICE auto nanosleep(const Caller& c, const std::type_identity_t<Time>* span,
                            [[maybe_unused]] std::type_identity_t<Time>* left = nullptr) {
  auto o = detail::make<1>(SYS_nanosleep, span, 0);
  o.part_of[0] = detail::bytes_to(0, span, sizeof *span);
  return invoke(c, o);
}

/// Fills `bytes` with random bytes. How many. `flags`: GRND_NONBLOCK, GRND_RANDOM.
template <class Caller>
GROSR_DEVICE auto getrandom(const Caller& c, void* to, std::size_t bytes, unsigned flags = 0) {
  return detail::in_pieces<true>(c, to, bytes, [=](std::size_t at, std::uint32_t now) {
    auto* part_to = static_cast<unsigned char*>(to) + at;
    auto o = detail::make<1, bulk::bytes>(SYS_getrandom, part_to, now, flags);
    o.part_of[0] = detail::bytes_from(0, part_to, now, travel::by_result);
    return o;
  });
}

/// What the program has used (RUSAGE_SELF); RUSAGE_THREAD is one of the server's threads.
template <class Caller, class Usage = ::rusage>
GROSR_DEVICE auto getrusage(const Caller& c, int who, std::type_identity_t<Usage>* to) {
  auto o = detail::make<1>(SYS_getrusage, who, to);
  o.part_of[0] = detail::bytes_from(1, to, sizeof *to);
  return invoke(c, o);
}

}  // namespace grosr::sys
