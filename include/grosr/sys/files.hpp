// Files. Names, arguments and results are those of `man 2`; errors come as negative errno. Calls
// take the caller first (see caller.hpp); buffers may be device memory. Blocking calls move any
// number of bytes; started ones at most piece_bytes of device memory, as a short read or write. All
// threads of a block name the same buffer and length.
//
// read, write and lseek share a descriptor's offset among all who use it: of concurrent calls each
// byte goes to one, in no particular order, and a call of more than piece_bytes is several. Use
// pread and pwrite where it matters which.
//
// The flags and types of Linux come from its own headers, <fcntl.h> and <sys/stat.h>, which a file
// that names them includes.
#pragma once

#include "grosr/sys/detail/wrap.hpp"

struct stat;  // of <sys/stat.h>

namespace grosr::sys {

/// Opens a file below `directory` (AT_FDCWD: below the policy's first folder). A descriptor.
template <class Caller>
GROSR_DEVICE auto openat(const Caller& c, int directory, const char* path, int flags,
                         unsigned mode = 0) {
  auto o = detail::make<1>(SYS_openat, directory, path, flags, mode);
  o.part_of[0] = detail::path_to(1, path);
  return invoke(c, o);
}
template <class Caller>
GROSR_DEVICE auto open(const Caller& c, const char* path, int flags, unsigned mode = 0) {
  return openat(c, detail::first_folder, path, flags, mode);
}

/// Closes a descriptor. Calls that wait for it end with -EBADF; it is gone when the last call that
/// uses it has ended.
template <class Caller>
GROSR_DEVICE auto close(const Caller& c, int file) {
  return invoke(c, detail::make<0>(SYS_close, file));
}

/// Reads up to `bytes` at `offset`. How many; fewer at the end of the file.
template <class Caller>
GROSR_DEVICE auto pread(const Caller& c, int file, void* to, std::size_t bytes,
                        std::int64_t offset) {
  return detail::in_pieces<true>(c, to, bytes, [=](std::size_t at, std::uint32_t now) {
    auto* part_to = static_cast<unsigned char*>(to) + at;
    auto o =
        detail::make<1, bulk::bytes>(SYS_pread64, file, part_to, now, detail::further(offset, at));
    o.part_of[0] = detail::bytes_from(1, part_to, now, travel::by_result);
    return o;
  });
}

/// Writes `bytes` at `offset`. How many.
template <class Caller>
GROSR_DEVICE auto pwrite(const Caller& c, int file, const void* from, std::size_t bytes,
                         std::int64_t offset) {
  return detail::in_pieces<false>(c, from, bytes, [=](std::size_t at, std::uint32_t now) {
    auto* part_from = static_cast<const unsigned char*>(from) + at;
    auto o = detail::make<1, bulk::bytes>(SYS_pwrite64, file, part_from, now,
                                          detail::further(offset, at));
    o.part_of[0] = detail::bytes_to(1, part_from, now);
    return o;
  });
}

/// Reads up to `bytes` from where the descriptor stands. How many; 0 at the end.
template <class Caller>
GROSR_DEVICE auto read(const Caller& c, int file, void* to, std::size_t bytes) {
  return detail::in_pieces<false>(c, to, bytes, [=](std::size_t at, std::uint32_t now) {
    auto* part_to = static_cast<unsigned char*>(to) + at;
    auto o = detail::make<1, bulk::bytes>(SYS_read, file, part_to, now);
    o.part_of[0] = detail::bytes_from(1, part_to, now, travel::by_result);
    return o;
  });
}

/// Writes `bytes` where the descriptor stands. How many.
template <class Caller>
GROSR_DEVICE auto write(const Caller& c, int file, const void* from, std::size_t bytes) {
  return detail::in_pieces<false>(c, from, bytes, [=](std::size_t at, std::uint32_t now) {
    auto* part_from = static_cast<const unsigned char*>(from) + at;
    auto o = detail::make<1, bulk::bytes>(SYS_write, file, part_from, now);
    o.part_of[0] = detail::bytes_to(1, part_from, now);
    return o;
  });
}

/// Moves where the descriptor stands. The new offset from the file's begin.
template <class Caller>
GROSR_DEVICE auto lseek(const Caller& c, int file, std::int64_t offset, int whence) {
  return invoke(c, detail::make<0>(SYS_lseek, file, offset, whence));
}

/// What the file is: fills `*to`.
template <class Caller, class Stat = struct ::stat>
GROSR_DEVICE auto fstat(const Caller& c, int file, std::type_identity_t<Stat>* to) {
  auto o = detail::make<1>(SYS_fstat, file, to);
  o.part_of[0] = detail::bytes_from(1, to, sizeof *to);
  return invoke(c, o);
}

/// Those of `man 2`: 0, or -errno. Paths are as openat() takes them.
template <class Caller>
GROSR_DEVICE auto ftruncate(const Caller& c, int file, std::int64_t bytes) {
  return invoke(c, detail::make<0>(SYS_ftruncate, file, bytes));
}

template <class Caller>
GROSR_DEVICE auto fsync(const Caller& c, int file) {
  return invoke(c, detail::make<0>(SYS_fsync, file));
}

template <class Caller>
GROSR_DEVICE auto fallocate(const Caller& c, int file, int mode, std::int64_t offset,
                            std::int64_t bytes) {
  return invoke(c, detail::make<0>(SYS_fallocate, file, mode, offset, bytes));
}

template <class Caller>
GROSR_DEVICE auto unlink(const Caller& c, const char* path, int flags = 0) {
  auto o = detail::make<1>(SYS_unlinkat, detail::first_folder, path, flags);
  o.part_of[0] = detail::path_to(1, path);
  return invoke(c, o);
}

template <class Caller>
GROSR_DEVICE auto rename(const Caller& c, const char* from, const char* to) {
  auto o = detail::make<2>(SYS_renameat2, detail::first_folder, from, detail::first_folder, to, 0);
  o.part_of[0] = detail::path_to(1, from);
  o.part_of[1] = detail::path_to(3, to);
  return invoke(c, o);
}

template <class Caller>
GROSR_DEVICE auto mkdir(const Caller& c, const char* path, unsigned mode) {
  auto o = detail::make<1>(SYS_mkdirat, detail::first_folder, path, mode);
  o.part_of[0] = detail::path_to(1, path);
  return invoke(c, o);
}

/// Entries of a directory (linux_dirent64) into `to`; the bytes they take, 0 at the end. At most
/// piece_bytes.
template <class Caller>
GROSR_DEVICE auto getdents(const Caller& c, int directory, void* to, std::size_t bytes) {
  const std::uint32_t now = bytes < piece_bytes ? static_cast<std::uint32_t>(bytes) : piece_bytes;
  auto o = detail::make<1, bulk::bytes>(SYS_getdents64, directory, to, now);
  o.part_of[0] = detail::bytes_from(1, to, now, travel::by_result);
  return invoke(c, o);
}

}  // namespace grosr::sys
