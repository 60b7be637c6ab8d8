// Free frames: a stack of them in each worker's block-shared memory, and groups of eight in a ring
// that all share. A group is named by its first frame, in which the names of the others lie.
#pragma once

#include "grosr/run/detail/frame.hpp"
#include "grosr/run/detail/local.hpp"

namespace grosr::run {

/// A bit of a group's name in the ring: its frames follow each other, and nothing lies in the
/// first.
inline constexpr std::uint32_t fresh_group = 1u << 31;

/// What a worker has at hand before it runs tasks that fork: each may claim one frame.
inline constexpr std::uint32_t fork_magazine = 4, fork_frames = simt::warp_size;

/// One lane, lock held or nobody spawning: up to n groups of free frames from the ring; how many
/// frames.
GROSR_DEVICE GROSR_NOINLINE inline std::uint32_t take_groups(const view* v, std::uint32_t* to,
                                                             std::uint32_t n, std::uint32_t* part,
                                                             std::uint32_t worker) {
  constexpr std::uint32_t most = fork_frames / frame_group;
  const std::uint32_t free = v->frames.free.ready() * frame_group, reserve = v->sizes.frame_reserve;
  if (free < reserve &&
      !owns_reserve(*v, *part, worker, free, reserve, v->sizes.least_frame_reserve))
    return 0;
  std::uint32_t group[most];
  n = v->frames.free.try_pop_n(group, n);
  GROSR_NO_UNROLL
  for (std::uint32_t i = 0; i < n; ++i, to += frame_group) {
    const std::uint32_t first = group[i] & ~fresh_group;
    auto* others = reinterpret_cast<const std::uint32_t*>(v->frame_at(first));
    for (std::uint32_t k = 1; k < frame_group; ++k)
      to[k - 1] = group[i] != first ? first + k : others[k - 1];
    to[frame_group - 1] = first;
  }
  return n * frame_group;
}

/// One lane, nobody spawning: gives the groups on top of the stack back, until no
/// more than `keep` frames, or less than a group, are there.
template <unsigned Types>
GROSR_DEVICE GROSR_NOINLINE void spill_frames(const view* v, warp_local<Types>* w,
                                              std::uint32_t keep) {
  constexpr std::uint32_t most = 8;
  GROSR_NO_UNROLL
  while (w->frame_count > keep && w->frame_count >= frame_group) {
    std::uint32_t group[most], n = 0;
    GROSR_NO_UNROLL
    for (; n < most && w->frame_count > keep && w->frame_count >= frame_group; ++n) {
      w->frame_count -= frame_group;
      const std::uint32_t* top = w->frames + w->frame_count;
      auto* others = reinterpret_cast<std::uint32_t*>(v->frame_at(top[0]));
      for (std::uint32_t k = 1; k < frame_group; ++k) others[k - 1] = top[k];
      group[n] = top[0];
    }
    v->frames.free.try_push_n(group, n);
  }
}

/// One lane, nobody spawning: whether there is room for what tasks may fork. If not, this worker
/// should leave them to those that own parts of the reserves: it has given its own back. The owner
/// of the lowest part goes on with what there is.
template <unsigned Types>
GROSR_DEVICE GROSR_NOINLINE bool has_room_to_fork(const view* v, warp_local<Types>* w,
                                                  std::uint32_t worker) {
  if (static_cast<std::int32_t>(w->frame_count) < 0) w->frame_count = 0;
  GROSR_NO_UNROLL
  while (w->magazine_count < fork_magazine || w->frame_count < fork_frames) {
    bool some = true;
    if (w->magazine_count < fork_magazine) {
      const std::uint32_t n = refill(*v, w->magazine + w->magazine_count, &w->reserve_part, worker);
      w->magazine_count += n;
      some = n != 0;
    }
    if (w->frame_count < fork_frames) {
      const std::uint32_t n = take_groups(v, w->frames + w->frame_count, fork_frames / frame_group,
                                          &w->reserve_part, worker);
      w->frame_count += n;
      some = some && n != 0;
    }
    if (some) continue;
    if (w->reserve_part == 1) return true;
    release_reserve(*v, w->reserve_part);
    if (w->magazine_count != 0) v->tasks.free_batches.try_push_n(w->magazine, w->magazine_count);
    w->magazine_count = 0;
    spill_frames(v, w, 0);
    return false;
  }
  return true;
}

}  // namespace grosr::run
