// Making a Linux call, and where tests have it fail.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace grosr::sys {

/// Called before each call with its number and its six arguments, which it may change. Not 0: the
/// result, and the call is not made. A read that is first tried without waiting for the disk is
/// told of twice: as what it is, then as SYS_preadv2.
using fault = long (*)(long number, std::uint64_t* arguments);

/// For tests; null.
inline std::atomic<fault> injected_fault{nullptr};

/// What a test makes of a call. 0: it is to be made, with these arguments.
inline long injected_result(long number, std::uint64_t* arguments) {
  const fault f = injected_fault.load(std::memory_order_relaxed);
  return f != nullptr ? f(number, arguments) : 0;
}

/// What the call returns, or -errno. `again`: not -EINTR, it is made again.
inline long linux_result(long number, const std::uint64_t* arguments, bool again = true) {
  const auto make = [number](const std::uint64_t* a) {
    const long result = ::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return result < 0 ? -static_cast<long>(errno) : result;
  };
  for (;;) {
    long result = 0;
    if (injected_fault.load(std::memory_order_relaxed) == nullptr) [[likely]] {
      result = make(arguments);
    } else {
      std::uint64_t a[6];
      for (unsigned i = 0; i < 6; ++i) a[i] = arguments[i];
      result = injected_result(number, a);
      if (result == 0) result = make(a);
    }
    if (result != -EINTR || !again) return result;
  }
}

}  // namespace grosr::sys
