// A clock that costs a few nanoseconds to read.
#pragma once

#include <time.h>

#include <cstdint>

namespace grosr::sys {

/// Nanoseconds since some moment.
inline std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

/// The processor's own count, where it has one that a program may read; else nanoseconds.
inline std::uint64_t now_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return now_ns();
#endif
}

/// How long a tick is. Made where some time passes before it is asked.
class tick_length {
 public:
  double ns() const {
    const double ticks = static_cast<double>(now_ticks() - ticks_);
    return ticks > 0 ? static_cast<double>(now_ns() - ns_) / ticks : 1;
  }

 private:
  std::uint64_t ns_ = now_ns(), ticks_ = now_ticks();
};

}  // namespace grosr::sys
