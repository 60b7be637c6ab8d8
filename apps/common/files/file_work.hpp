// How the warps of a kernel share the files of a list, which they open themselves.
//
//   tickets   0 ... files-1     a file each: the warp reads its first windows
//             files ...         a range of windows of a large file, as others hand them out
//
// A warp that finds a file larger than it may keep hands the rest out; a warp with a ticket behind
// the files waits for a range, until every file was begun and no range is left.
#pragma once

#include <fcntl.h>

#include <cstdint>

#include "grosr/simt/wait.hpp"
#include "grosr/sys/files.hpp"

namespace grosr::tool {

/// Windows of a file that one warp reads; `windows` 0: from the beginning, not known how many.
struct file_share {
  std::uint32_t file, first, windows;
};

inline constexpr std::uint32_t windows_a_share = 4;

/// A device's view of the work; see file_work.
struct file_work_ref {
  const char* names;          ///< each ends in a zero byte
  const std::uint64_t* name;  ///< where each begins
  std::uint32_t files, ranges;
  file_share* range;
  std::uint32_t* ready;  ///< by range
  struct counters {
    std::uint32_t ticket, begun, handed_out, stop;
  } * counts;

  GROSR_DEVICE static simt::atomic_ref<std::uint32_t> at(std::uint32_t& word) {
    return simt::atomic_ref<std::uint32_t>(word);
  }

  /// The whole warp: its next share, the same in all lanes. False at the end.
  GROSR_DEVICE bool next(file_share& s) const {
    std::uint32_t ticket = 0, there = 0;
    if (simt::lane_id() == 0) {
      ticket = at(counts->ticket).fetch_add(1, simt::relaxed);
      there = at(counts->stop).load(simt::relaxed) != 0 ? 0 : ticket < files ? 1 : await(ticket);
    }
    simt::sync_warp();
    ticket = simt::shuffle(simt::full_mask, ticket, 0);
    if (simt::shuffle(simt::full_mask, there, 0) == 0) return false;
    s = ticket < files ? file_share{ticket, 0, 0} : range[ticket - files];
    return true;
  }

  /// One lane: every file's first share ends with this, after what it has handed out.
  GROSR_DEVICE void begun() const { at(counts->begun).fetch_add(1, simt::release); }  // R2

  /// One lane gives the windows [first, end) to others. What is left for itself begins at the
  /// result.
  GROSR_DEVICE std::uint32_t hand_out(std::uint32_t file, std::uint32_t first,
                                      std::uint32_t end) const {
    const std::uint32_t many = (end - first + windows_a_share - 1) / windows_a_share;
    std::uint32_t now = at(counts->handed_out).load(simt::relaxed);
    do {
      if (many > ranges - now) return first;
    } while (!at(counts->handed_out).compare_exchange(now, now + many, simt::relaxed));
    for (std::uint32_t i = 0; i < many; ++i, first += windows_a_share) {
      range[now + i] = {file, first, end - first < windows_a_share ? end - first : windows_a_share};
      at(ready[now + i]).store(1, simt::release);  // R1: pairs with A1 in await()
    }
    return end;
  }

 private:
  GROSR_DEVICE GROSR_NOINLINE std::uint32_t await(std::uint32_t ticket) const {
    const std::uint32_t mine = ticket - files;
    if (mine >= ranges) return 0;
    std::uint32_t there = 0;
    const auto known = [&] {
      there = at(ready[mine]).load(simt::acquire);  // A1
      if (there != 0) return true;
      return at(counts->begun).load(simt::acquire) == files &&  // A2: pairs with R2 in begun()
             mine >= at(counts->handed_out).load(simt::relaxed);
    };
    const auto r = simt::wait_until(known, simt::forever, &counts->stop, "a part of a large file");
    return r == simt::wait_result::ready ? there : 0;
  }
};

/// How kernels open files: what was no regular file any more does not hold them up.
inline constexpr int open_flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

}  // namespace grosr::tool
