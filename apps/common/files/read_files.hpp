// How tasks of a runtime read the files of a list, window by window. No worker waits for a read.
//
//   read_part    opens a file, and awaits the first of its windows      a lane
//   window_read  looks at the window that has come, and awaits another  a warp
//
// Each file that is read has a seat: memory for a window. Behind the last window, the seat goes on
// with the next file of the list. One that finds none is free, and takes half of what is left of a
// large file.
//
// What a window is, and what is done with it, is the reader's. `Reader`, which lies in device
// memory, has
//     reading io;
//     static std::uint64_t offset_of(std::uint32_t window);        // where it begins in the file
//     static std::uint64_t windows_in(std::uint64_t file_bytes);
//     void take(file, window, const unsigned char* text, bytes) const;  // whole warp
//     void failed(file, long error) const;                              // one lane; -errno
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "grosr/await/awaited.hpp"
#include "grosr/queue/slot_bitmap.hpp"
#include "grosr/sys/files.hpp"

namespace grosr::tool {

/// Windows that a seat reads of a file before it asks for the size, and keeps of a large one.
inline constexpr std::uint32_t own_windows = 4;
inline constexpr std::uint32_t most_windows = 0xffff'fff0;  ///< of a file
inline constexpr std::uint32_t no_file = 0xffff'ffff;

/// How tasks open files: what was no regular file any more does not hold them up.
inline constexpr int open_flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

inline constexpr std::uint32_t window_bytes = sys::piece_bytes;

/// What all tasks that read a list know; made by device_list.
struct reading {
  /// Of one run over the list.
  struct progress {
    std::uint32_t next;  ///< the first file that nobody has taken
    std::uint32_t stop;  ///< not 0: nothing more is read
  };

  sys::server_ref sys;
  const char* names;          ///< each ends in a zero byte
  const std::uint64_t* name;  ///< where each begins, by file
  std::uint32_t files;
  progress* now;
  queue::slot_bitmap_ref seats;
  unsigned char* windows;  ///< by seat

  GROSR_DEVICE unsigned char* window_of(std::uint32_t seat) const {
    return windows + std::size_t{seat} * window_bytes;
  }
  GROSR_DEVICE bool stopped() const {
    return simt::atomic_ref<std::uint32_t>(now->stop).load(simt::relaxed) != 0;
  }
  GROSR_DEVICE std::uint32_t take_file() const {
    if (stopped()) return no_file;
    const auto file = simt::atomic_ref<std::uint32_t>(now->next).fetch_add(1, simt::relaxed);
    return file < files ? file : no_file;
  }
  GROSR_DEVICE long open(std::uint32_t file) const {
    return sys::openat(sys, AT_FDCWD, names + name[file], open_flags);
  }
};

/// Where a seat is in a file.
struct place {
  std::uint32_t seat, file, window;
  std::uint32_t end;  ///< of the windows that it reads; 0: not known
};

template <class Reader>
GROSR_DEVICE void await_window(auto& context, const Reader* reader, place at, int fd);
template <class Reader>
GROSR_DEVICE void begin_next_file(auto& context, const Reader* reader, std::uint32_t seat);

template <class Reader>
struct read_part {
  using result = void;
  const Reader* reader;
  place at;

  GROSR_DEVICE void operator()(auto& context) const {
    const long fd = reader->io.open(at.file);
    if (fd >= 0) return await_window(context, reader, at, static_cast<int>(fd));
    reader->failed(at.file, fd);
    begin_next_file(context, reader, at.seat);
  }
};

template <class Reader>
struct window_read {
  static constexpr grosr::width width = grosr::width::warp;
  using result = void;
  const Reader* reader;
  place at;
  int fd;
  long bytes;  ///< what pread returned

  GROSR_DEVICE void operator()(auto& context) const {
    const Reader r = *reader;
    if (bytes > 0)
      r.take(at.file, at.window, r.io.window_of(at.seat), static_cast<std::uint32_t>(bytes));
    context.sync();  // the next read overwrites the window
    if (context.rank() != 0) return;
    if (bytes < 0) r.failed(at.file, bytes);
    place next = at;
    ++next.window;
    if (bytes < window_bytes || next.window == next.end || r.io.stopped()) {
      sys::close(r.io.sys, fd);
      return begin_next_file(context, reader, at.seat);
    }
    if (next.end == 0 && next.window == own_windows) next.end = all_windows(r.io.sys);
    await_window(context, reader, next, fd);
  }

 private:
  /// 0 if the size cannot be had: then this seat reads to the end.
  GROSR_DEVICE std::uint32_t all_windows(const sys::server_ref& sys) const {
    struct stat about;
    if (sys::fstat(sys, fd, &about) != 0) return 0;
    const std::uint64_t all = Reader::windows_in(static_cast<std::uint64_t>(about.st_size));
    return static_cast<std::uint32_t>(all < most_windows ? all : most_windows);
  }
};

/// One lane gives upper halves of what is left to free seats, which do the same.
template <class Reader>
GROSR_DEVICE void share(auto& context, const Reader* reader, place& at) {
  const queue::slot_bitmap_ref& seats = reader->io.seats;
  while (at.end > at.window && at.end - at.window > own_windows) {
    const auto seat = seats.claim(context.worker() % seats.words(), 1);
    if (seat.bits == 0) return;
    const std::uint32_t half = at.window + (at.end - at.window) / 2;
    context.spawn(read_part<Reader>{reader, {seat.first(), at.file, half, at.end}});
    at.end = half;
  }
}

/// One lane awaits the window of an open file that the seat is at. When no more calls can be
/// awaited, it waits for this one where it is, for which some room is kept.
template <class Reader>
GROSR_DEVICE void await_window(auto& context, const Reader* reader, place at, int fd) {
  share(context, reader, at);
  const reading& io = reader->io;
  const auto read = [&](const auto& caller) {
    return sys::pread(caller, fd, io.window_of(at.seat), window_bytes,
                      static_cast<std::int64_t>(Reader::offset_of(at.window)));
  };
  auto& next = context.join(window_read<Reader>{reader, at, fd, 0});
  if (read(context.await(io.sys, &next.bytes)) == -EAGAIN) next.bytes = read(io.sys);
}

/// One lane opens the next file of the list, and awaits its first window. Without one, the seat is
/// free.
template <class Reader>
GROSR_DEVICE void begin_next_file(auto& context, const Reader* reader, std::uint32_t seat) {
  const reading& io = reader->io;
  for (;;) {
    const std::uint32_t file = io.take_file();
    if (file == no_file) return io.seats.free(seat);
    const long fd = io.open(file);
    if (fd >= 0) return await_window(context, reader, {seat, file, 0, 0}, static_cast<int>(fd));
    reader->failed(file, fd);
  }
}

}  // namespace grosr::tool
