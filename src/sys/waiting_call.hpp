// A call that waits for a peer or the disk, or on a thread of its own.
#pragma once

#include <poll.h>
#include <sys/syscall.h>

#include <memory>
#include <vector>

#include "sys/service.hpp"

namespace grosr::sys {

/// Whether a call polls, in any of its forms.
inline bool is_poll(unsigned number) {
#ifdef SYS_poll
  if (number == SYS_poll) return true;
#endif
  return number == SYS_ppoll;
}

/// What a poll looks at. Holds on to the descriptors.
struct service::polled {
  explicit polled(reactor& r) : waits_in(r) {}
  polled(const polled&) = delete;
  ~polled();

  reactor& waits_in;
  std::uint64_t to = 0;        ///< where the kernel has it
  std::vector<pollfd> asked;   ///< as the kernel has it
  std::vector<pollfd> looked;  ///< descriptors that it may not use are -1
  std::vector<descriptors::use> uses;
  int all = -1;  ///< an epoll of them, if there are several
};

/// Lies in the place of the call's slot, which nobody has again until the reply.
struct service::waiting_call : waiter, job, disk_call {
  waiting_call(service& s, const request& q, const linux_call* i, descriptors::use f)
      : owner(&s), made(q), info(i), file(std::move(f)) {}

  service* owner;
  request made;
  const linux_call* info;  ///< null: of a handler
  descriptors::use file, other_file;
  std::vector<mapped_ranges::use> memory;
  std::uint64_t progress = 0;  ///< bytes that went already
  bool connecting = false;
  std::unique_ptr<polled> polls;  ///< of a poll
  std::shared_ptr<const detail::installed_handler> handler;
  std::unique_ptr<unsigned char[]> kept;  ///< what an argument points to, as it was at the start
  std::chrono::microseconds pause{50};    ///< of a lock, until it is tried again
};

}  // namespace grosr::sys
