// Opening a path below a directory, so that nothing in it leads out: neither `..`, nor a link, nor
// somebody who renames while the path is followed.
#pragma once

#include <utility>

namespace grosr::sys {

/// Owns a descriptor, or none.
class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

enum class resolver {
  openat2,  ///< which follows links and `..` that stay below
  walk,     ///< component by component, where Linux has no openat2: no link, no `..`
};

/// Whether Linux here, and what filters its calls, has openat2.
resolver resolver_here();

/// What is opened, in addition to the path.
struct opening {
  int flags = 0;  // of open(2); those that Linux ignores are ignored, O_CLOEXEC is added
  unsigned mode = 0;
  bool links = true;  // false: no component may be a link
};

/// Opens `path` (not empty, not absolute) below the directory `fd`: a descriptor, or -errno.
/// -EPERM: the path leads out, or over a link that may not be followed.
int open_below(resolver how, int fd, const char* path, const opening& what);

}  // namespace grosr::sys
