// A file descriptor that is closed at the end.
#pragma once

#include <unistd.h>

namespace grosr::cryptfs {

struct descriptor {
  int fd = -1;

  descriptor() = default;
  explicit descriptor(int open_file) : fd(open_file) {}
  descriptor(const descriptor&) = delete;
  ~descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace grosr::cryptfs
