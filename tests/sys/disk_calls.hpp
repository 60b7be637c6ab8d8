// What tests of calls that wait for a disk share: such calls, and a file and a pipe to make them
// on.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "sys/disk_ring.hpp"
#include "sys/linux_result.hpp"

namespace grosr::sys {

/// A pipe, to read from in place of a slow disk. Both ends block.
class slow_disk {
 public:
  slow_disk() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~slow_disk() {
    for (int e : ends_) ::close(e);
  }
  slow_disk(const slow_disk&) = delete;
  int reads() const { return ends_[0]; }
  /// So many bytes are read from now on.
  void brings(std::size_t bytes) const {
    const std::string all(bytes, 'x');
    EXPECT_EQ(::write(ends_[1], all.data(), bytes), static_cast<ssize_t>(bytes));
  }

 private:
  int ends_[2];
};

/// While it lives, calls fail as `f` says.
class while_faulty {
 public:
  explicit while_faulty(fault f) { injected_fault = f; }
  ~while_faulty() { injected_fault = nullptr; }
  while_faulty(const while_faulty&) = delete;
};

/// Has reads wait for the disk, whatever is in the page cache.
inline long nothing_cached(long number, std::uint64_t*) {
  return number == SYS_preadv2 ? -EAGAIN : 0;
}

/// The same, and no ring.
inline long nothing_cached_no_ring(long number, std::uint64_t* a) {
  return number == SYS_io_uring_setup ? -EPERM : nothing_cached(number, a);
}

/// Whether Linux lets this process have a ring, and this build has one.
inline bool is_ring_here() {
  struct one : disk_call {
    std::atomic<bool> ended{false};
  } c;
  c.done = [](disk_call& self, long) { static_cast<one&>(self).ended = true; };
  disk_ring r;
  const bool is = r.submit(c) != -ENOSYS;
  r.stop();
  return is;
}

}  // namespace grosr::sys
