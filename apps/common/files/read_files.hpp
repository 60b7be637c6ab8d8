// How tasks of a runtime read the files of a list: a warp opens a file, reads it window by window,
// and spawns tasks for what is left of a large one.
//
//   read_windows{file, 0, 0}         the first windows of a file, whose size is not asked for
//   read_windows{file, first, end}   windows of a large file: all but the last few go to other tasks
//
// What a window is, and what is done with it, is the reader's: see read_windows.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>

#include "grosr/run/context.hpp"
#include "grosr/sys/files.hpp"

namespace grosr::tool {

/// Windows that one task reads; it opens the file for them.
inline constexpr std::uint32_t windows_a_task = 4;
inline constexpr std::uint32_t most_windows = 0xffff'fff0;  ///< of a file

/// How tasks open files: what was no regular file any more does not hold them up.
inline constexpr int open_flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

inline constexpr std::uint32_t window_bytes = sys::piece_bytes;

/// Memory of a worker: a window, and room for a struct stat.
inline constexpr std::uint32_t worker_bytes = window_bytes + 256;
static_assert(sizeof(struct stat) <= worker_bytes - window_bytes);

/// What all tasks that read a list know; made by device_list.
struct reading {
  sys::server_ref sys;
  const char* names;          ///< each ends in a zero byte
  const std::uint64_t* name;  ///< where each begins, by file
  unsigned char* windows;     ///< worker_bytes for each worker
  std::uint32_t* stop;        ///< not 0: tasks that begin read nothing
};

/// A task. `Reader`, which lies in device memory, has
///     reading io;
///     static std::uint64_t offset_of(std::uint32_t window);        // where it begins in the file
///     static std::uint64_t windows_in(std::uint64_t file_bytes);
///     void take(file, window, const unsigned char* text, bytes) const;  // whole warp
///     void failed(file, long error) const;                              // one lane; -errno
template <class Reader>
struct read_windows {
  static constexpr grosr::width width = grosr::width::warp;
  const Reader* reader;
  std::uint32_t file, first, end;  ///< end 0: not known

  GROSR_DEVICE void operator()(auto& context) const {
    const Reader r = *reader;
    const bool last_ones =
        context.rank() == 0 && simt::atomic_ref<std::uint32_t>(*r.io.stop).load(simt::relaxed) != 0;
    if (simt::ballot(simt::full_mask, last_ones) != 0) return;
    const long result = read(r, context);
    if (result != 0 && context.rank() == 0) r.failed(file, result);
  }

 private:
  /// 0, or why the file could not be read.
  GROSR_DEVICE long read(const Reader& r, auto& context) const {
    const auto warp = r.io.sys.warp();
    unsigned char* window = r.io.windows + std::size_t{context.worker()} * worker_bytes;
    const long fd = sys::openat(warp, AT_FDCWD, r.io.names + r.io.name[file], open_flags);
    if (fd < 0) return fd;
    long result = 0;
    bool known = end != 0;
    std::uint32_t until = known ? give_away(first, end, context) : first + windows_a_task;
    for (std::uint32_t w = first; w < until; ++w) {
      result = sys::pread(warp, static_cast<int>(fd), window, window_bytes,
                          static_cast<std::int64_t>(Reader::offset_of(w)));
      if (result <= 0) break;
      const auto bytes = static_cast<std::uint32_t>(result);
      r.take(file, w, window, bytes);
      if (bytes < window_bytes) break;
      if (w + 1 == until && !known) {
        known = true;
        const std::uint32_t all = windows_of(r, static_cast<int>(fd), window);
        until = all == 0 ? most_windows : give_away(until, all, context);
      }
    }
    sys::close(warp, static_cast<int>(fd));
    return result < 0 ? result : 0;
  }

  /// Windows of the open file; 0 if its size cannot be had: then this task reads to its end.
  GROSR_DEVICE std::uint32_t windows_of(const Reader& r, int fd, unsigned char* window) const {
    auto* about = reinterpret_cast<struct stat*>(window + window_bytes);
    const long failed = sys::fstat(r.io.sys.warp(), fd, about);
    simt::sync_warp();
    const std::uint64_t many =
        failed != 0 ? 0 : Reader::windows_in(static_cast<std::uint64_t>(about->st_size));
    return static_cast<std::uint32_t>(many < most_windows ? many : most_windows);
  }

  /// Where this task's own part of [begin, all) ends: the upper halves are tasks of their own,
  /// which do the same, so that a file of any size is soon with all workers.
  GROSR_DEVICE std::uint32_t give_away(std::uint32_t begin, std::uint32_t all,
                                       auto& context) const {
    while (all > begin && all - begin > windows_a_task) {
      const std::uint32_t half = begin + (all - begin) / 2;
      if (context.rank() == 0) context.spawn(read_windows{reader, file, half, all});
      all = half;
    }
    if (context.rank() == 0) context.publish();
    context.sync();
    return all > begin ? all : begin;
  }
};

}  // namespace grosr::tool
