// A call that waits for a peer, or on a thread of its own.
#pragma once

#include "sys/service.hpp"

namespace grosr::sys {

/// Lies in the place of the call's slot, which nobody has again until the reply.
struct service::waiting_call : waiter, job {
  waiting_call(service& s, const request& q, const linux_call& i, descriptors::use f)
      : owner(&s), made(q), info(&i), file(std::move(f)) {}

  service* owner;
  request made;
  const linux_call* info;
  descriptors::use file;
  std::uint64_t progress = 0;  ///< bytes that went already
  std::uint64_t began_ns = 0;
  bool connecting = false;
};

}  // namespace grosr::sys
