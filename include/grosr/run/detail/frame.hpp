// Frames: continuations that wait for what was forked into them.
//
//   frame         16 bytes of header, then the continuation, a task; `stride` apart
//   pending       results still to come; while the task that joins runs, `still_forking` more
//   destination   where the continuation's own result goes, and what it is
//
// A frame is claimed by the task that joins, from its warp's stack (frame_stack.hpp), and given
// back by the warp that runs its continuation, before that runs.
#pragma once

#include <cerrno>

#include "grosr/run/detail/view.hpp"

namespace grosr::run {

struct alignas(16) frame_header {
  std::uint32_t pending;
  std::int32_t status;                 ///< the first error among the results, or 0
  std::uint64_t kind_and_destination;  ///< destination, with the continuation's type and level
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

/// Added to frame_header::pending while the task that joins still forks.
inline constexpr std::uint32_t still_forking = 1u << 30;

}  // namespace grosr::run
