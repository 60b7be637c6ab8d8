// The folders of a policy: calls that take a path are made below them, or denied.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "grosr/sys/policy.hpp"
#include "sys/resolve.hpp"

namespace grosr::sys {

/// Owns a descriptor of each folder; a folder that is renamed stays the folder. Any thread may
/// call.
///
/// All calls return what those of `man 2` return, or -errno. -EPERM: the path is outside of all
/// folders, or leads out of the one it begins in, or this would write where only reading is
/// allowed. A directory is a descriptor that `open` or `openat` returned, or AT_FDCWD, which is the
/// first folder; others give -EBADF. A path relative to a descriptor stays below it.
///
/// An absolute path belongs to the folder that is its longest prefix. If folders with different
/// access lie in each other, what may be written goes by where a path ends, links and `..`
/// followed; then nothing is written through a link that is the last component, and the folders
/// themselves are neither moved nor removed (-EBUSY).
class folders {
 public:
  /// Throws errc::invalid_option for a folder that is missing, no directory, or listed twice with
  /// different access.
  explicit folders(const std::vector<folder>& allowed, resolver how = resolver_here());

  long open(const char* path, int flags, unsigned mode) const {
    return openat(AT_FDCWD, path, flags, mode);
  }
  long openat(int directory, const char* path, int flags, unsigned mode) const;
  /// To be called before a descriptor that was opened here is closed.
  void forget(int fd) const;

  long unlink(const char* path) const { return unlinkat(AT_FDCWD, path, 0); }
  long rmdir(const char* path) const { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
  long unlinkat(int directory, const char* path, int flags) const;

  long rename(const char* from, const char* to) const {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
  }
  long renameat2(int from_directory, const char* from, int to_directory, const char* to,
                 unsigned flags) const;

  long mkdir(const char* path, unsigned mode) const { return mkdirat(AT_FDCWD, path, mode); }
  long mkdirat(int directory, const char* path, unsigned mode) const;

  /// Any text may be a link's; where it leads out, the calls here do not follow it.
  long symlink(const char* text, const char* path) const { return symlinkat(text, AT_FDCWD, path); }
  long symlinkat(const char* text, int directory, const char* path) const;
  /// Both ends must be writable: a second name must not make writable what was not. No flags.
  long link(const char* from, const char* to) const {
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  }
  long linkat(int from_directory, const char* from, int to_directory, const char* to,
              int flags) const;

  long stat(const char* path, struct ::stat* out) const {
    return newfstatat(AT_FDCWD, path, out, 0);
  }
  long lstat(const char* path, struct ::stat* out) const {
    return newfstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
  }
  long newfstatat(int directory, const char* path, struct ::stat* out, int flags) const;
  long access(const char* path, int mode) const { return faccessat(AT_FDCWD, path, mode, 0); }
  long faccessat(int directory, const char* path, int mode, int flags) const;
  long readlink(const char* path, char* text, std::size_t bytes) const {
    return readlinkat(AT_FDCWD, path, text, bytes);
  }
  long readlinkat(int directory, const char* path, char* text, std::size_t bytes) const;

  long truncate(const char* path, off_t bytes) const;
  long chmod(const char* path, unsigned mode) const { return fchmodat(AT_FDCWD, path, mode); }
  long fchmodat(int directory, const char* path, unsigned mode) const;
  long utimensat(int directory, const char* path, const struct ::timespec times[2],
                 int flags) const;

 private:
  using names = std::vector<std::string>;
  struct root {
    descriptor fd;
    sys::access allowed;
    names canonical;  // components
    names given{};    // those of the policy's path, if that is absolute
    dev_t device = 0;
    ino_t inode = 0;
  };
  // A descriptor, and what is left of a path below it.
  struct place {
    int fd;  // or -errno
    sys::access allowed = sys::access::read;
    const char* rest = "";
    descriptor own{};  // holds fd, unless it is a folder's
  };
  enum known : unsigned char { unknown, readable, writable };

  static place holding(int fd, sys::access allowed, const char* rest);
  const root* root_of(const struct ::stat& s) const;
  bool is_folder(const place& p) const;
  sys::access allowed_at(int fd) const;
  place lookup(int directory) const;
  place begin(int directory, const char* path) const;
  place parent(const place& start, int none) const;
  place parent_to_write(int directory, const char* path, int none) const;
  place target(int directory, const char* path, int flags) const;
  place target_to_write(int directory, const char* path, int flags) const;
  int open_to_write(const place& start, const opening& what) const;

  const resolver how_;
  std::vector<root> roots_;
  // Folders with different access lie in each other: then `allowed` of where a path begins says
  // nothing, and allowed_at is asked.
  bool mixed_ = false;
  // By descriptor: what is known of it, and how many calls just copy it. A line apart: threads open
  // and close millions a second.
  struct about {
    std::atomic<known> is;
    std::atomic<unsigned> copying;
    unsigned char apart[56];
  };
  about& about_of(int fd) const { return opened_[static_cast<std::size_t>(fd)]; }
  std::unique_ptr<about[], void (*)(void*)> opened_;
};

}  // namespace grosr::sys
