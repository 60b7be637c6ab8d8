// The calls of `folders` other than open: the directory or the file is opened below a folder first,
// then the call is made on that descriptor.
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sys/folders.hpp"

namespace grosr::sys {
namespace {

long result(long made) { return made < 0 ? -errno : made; }

// The path of a descriptor, for calls that take none opened with O_PATH. Not /proc/self, which has
// no descriptors once the first thread has ended.
struct path_of {
  explicit path_of(int fd) { std::snprintf(text, sizeof text, "/proc/thread-self/fd/%d", fd); }
  char text[48];
};

bool any_but(int flags, int known) { return (flags & ~known) != 0; }

}  // namespace

long folders::unlinkat(int directory, const char* path, int flags) const {
  if (any_but(flags, AT_REMOVEDIR)) return -EINVAL;
  const bool removes_directory = flags != 0;
  const place p = parent_to_write(directory, path, removes_directory ? EINVAL : EISDIR);
  if (p.fd < 0) return p.fd;
  if (is_folder(p)) return -EBUSY;
  return result(::unlinkat(p.fd, p.rest, flags));
}

long folders::renameat2(int from_directory, const char* from, int to_directory, const char* to,
                        unsigned flags) const {
  if ((flags & ~unsigned{RENAME_NOREPLACE | RENAME_EXCHANGE}) != 0) return -EINVAL;
  const place a = parent_to_write(from_directory, from, EBUSY);
  if (a.fd < 0) return a.fd;
  const place b = parent_to_write(to_directory, to, EBUSY);
  if (b.fd < 0) return b.fd;
  if (is_folder(a) || is_folder(b)) return -EBUSY;
  return result(::renameat2(a.fd, a.rest, b.fd, b.rest, flags));
}

long folders::mkdirat(int directory, const char* path, unsigned mode) const {
  const place p = parent_to_write(directory, path, EEXIST);
  return p.fd < 0 ? p.fd : result(::mkdirat(p.fd, p.rest, mode));
}

long folders::symlinkat(const char* text, int directory, const char* path) const {
  if (text == nullptr) return -EFAULT;
  const place p = parent_to_write(directory, path, EEXIST);
  return p.fd < 0 ? p.fd : result(::symlinkat(text, p.fd, p.rest));
}

long folders::linkat(int from_directory, const char* from, int to_directory, const char* to,
                     int flags) const {
  if (flags != 0) return -EINVAL;
  const place a = parent_to_write(from_directory, from, EPERM);
  if (a.fd < 0) return a.fd;
  const place b = parent_to_write(to_directory, to, EEXIST);
  if (b.fd < 0) return b.fd;
  return result(::linkat(a.fd, a.rest, b.fd, b.rest, 0));
}

long folders::newfstatat(int directory, const char* path, struct ::stat* out, int flags) const {
  if (any_but(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT)) return -EINVAL;
  const place p = target(directory, path, flags);
  return p.fd < 0 ? p.fd : result(::fstatat(p.fd, "", out, AT_EMPTY_PATH));
}

long folders::faccessat(int directory, const char* path, int mode, int flags) const {
  if (any_but(flags, AT_SYMLINK_NOFOLLOW | AT_EACCESS)) return -EINVAL;
  const bool writes = (mode & W_OK) != 0;
  const place p = writes ? target_to_write(directory, path, flags) : target(directory, path, flags);
  if (p.fd < 0) return p.fd;
  return result(::faccessat(AT_FDCWD, path_of(p.fd).text, mode, flags & AT_EACCESS));
}

long folders::readlinkat(int directory, const char* path, char* text, std::size_t bytes) const {
  if (bytes == 0) return -EINVAL;
  if (text == nullptr) return -EFAULT;
  const place p = target(directory, path, AT_SYMLINK_NOFOLLOW);
  if (p.fd < 0) return p.fd;
  const long read = result(::readlinkat(p.fd, "", text, bytes));
  return read == -ENOENT ? -EINVAL : read;  // so it says that the descriptor's is no link
}

long folders::truncate(const char* path, off_t bytes) const {
  const place p = target_to_write(AT_FDCWD, path, 0);
  return p.fd < 0 ? p.fd : result(::truncate(path_of(p.fd).text, bytes));
}

long folders::fchmodat(int directory, const char* path, unsigned mode) const {
  const place p = target_to_write(directory, path, 0);
  return p.fd < 0 ? p.fd : result(::fchmodat(AT_FDCWD, path_of(p.fd).text, mode, 0));
}

long folders::utimensat(int directory, const char* path, const struct ::timespec times[2],
                        int flags) const {
  if (any_but(flags, AT_SYMLINK_NOFOLLOW)) return -EINVAL;
  const place p = target_to_write(directory, path, flags);
  return p.fd < 0 ? p.fd : result(::utimensat(p.fd, "", times, AT_EMPTY_PATH));
}

}  // namespace grosr::sys
