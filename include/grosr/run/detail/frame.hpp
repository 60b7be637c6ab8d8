// Frames: continuations that wait for what was forked into them.
//
//   frame     16 bytes of header, then the continuation, a task; `stride` apart, in memory of their own
//   pending   results still to come; while the task that joins runs, `joining` more
//   home      where the continuation's own result goes, and what it is
//
// A frame is claimed by the task that joins, from its warp's stack (frame_stack.hpp), and given
// back by the warp that runs its continuation, before that runs.
#pragma once

#include <cerrno>

#include "grosr/run/detail/layout.hpp"

namespace grosr::run {

/// Where a result goes: a slot of a frame, or of what the host waits for. 0 is nowhere.
///
///   bits 0-31 frame, or host root │ 32-38 byte in it │ 40-51 see below │ 62 host │ 63 set
///
/// In a record of a continuation bits 40 to 51 hold the status of what it waited for: -status.
struct home {
  std::uint64_t bits = 0;

  static constexpr std::uint64_t is_set = std::uint64_t{1} << 63, on_host = std::uint64_t{1} << 62;

  GROSR_DEVICE static home in_frame(std::uint32_t frame, std::uint32_t offset) {
    return {is_set | std::uint64_t{offset} << 32 | frame};
  }
  static home of_host(std::uint32_t root) { return {is_set | on_host | root}; }
  GROSR_DEVICE explicit operator bool() const { return bits != 0; }
  GROSR_DEVICE bool host() const { return (bits & on_host) != 0; }
  GROSR_DEVICE std::uint32_t where() const { return static_cast<std::uint32_t>(bits); }
  GROSR_DEVICE std::uint32_t offset() const {
    return static_cast<std::uint32_t>(bits >> 32 & 0x7f);
  }
  GROSR_DEVICE home with_status(int status) const {
    return {bits | std::uint64_t{static_cast<std::uint32_t>(-status) & 0xfff} << 40};
  }
  GROSR_DEVICE int status() const { return -static_cast<int>(bits >> 40 & 0xfff); }
  GROSR_DEVICE home plain() const { return {bits & ~(std::uint64_t{0xfff} << 40)}; }
};

struct alignas(16) frame_header {
  std::uint32_t pending;
  std::int32_t status;  ///< the first error among the results, or 0
  std::uint64_t kind_and_home;
};
inline constexpr std::uint32_t frame_header_bytes = sizeof(frame_header);
static_assert(frame_header_bytes == 16);

/// A frame's status when it was cancelled itself. One that a task brought which did not begin, for
/// a frame above is cancelled, is -ECANCELED.
inline constexpr std::int32_t cancelled_here = -(0x1000 + ECANCELED);
GROSR_DEVICE inline int status_of(const frame_header& h) {
  return h.status == cancelled_here ? -ECANCELED : h.status;
}

/// What the end of a task leaves to its warp: a frame whose continuation is to run now, or, if
/// `forked` is set, the one that it joined: so many results are to come for that.
struct task_end {
  static constexpr std::uint32_t nothing = 0xffffffffu;
  std::uint32_t frame = nothing, forked = nothing;
};

/// Of frame_header::pending, while the task that joins still forks.
inline constexpr std::uint32_t joining = 1u << 30;

// frame_header::kind_and_home: the home, with the continuation's type (5 bits) and level (3) in the
// bits 40-47 that a home does not use.
inline constexpr unsigned kind_shift = 40;
GROSR_DEVICE inline std::uint64_t with_kind(home h, std::uint32_t type, std::uint32_t level) {
  return h.bits | std::uint64_t{type | level << 5} << kind_shift;
}
GROSR_DEVICE inline home home_of(std::uint64_t kind_and_home) {
  return {kind_and_home & ~(std::uint64_t{0xff} << kind_shift)};
}
GROSR_DEVICE inline std::uint32_t type_of(std::uint64_t kind_and_home) {
  return kind_and_home >> kind_shift & 0x1f;
}
GROSR_DEVICE inline std::uint32_t level_of(std::uint64_t kind_and_home) {
  return kind_and_home >> (kind_shift + 5) & 0x7;
}

}  // namespace grosr::run
