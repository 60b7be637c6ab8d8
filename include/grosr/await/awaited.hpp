// Calls that tasks await: a call to the host is a child of a join, and no worker waits for it.
//
//   struct received {
//     using result = void;
//     long bytes;  // what recv returned
//     char text[8];
//     GROSR_DEVICE void operator()(auto& context) const { ... }
//   };
//   struct receive {
//     using result = void;
//     grosr::sys::server_ref sys;
//     int peer;
//     GROSR_DEVICE void operator()(auto& context) const {
//       auto& next = context.join(received{});
//       grosr::sys::recv(context.await(sys, &next.bytes), peer, next.text, 8, 0);
//     }
//   };
//   grosr::sys::server server(device);
//   grosr::runtime<receive, received, grosr::awaited> runtime(device);
//
// docs/internals/await.md has the protocol.
#pragma once

#include "grosr/queue/completion.hpp"
#include "grosr/run/join.hpp"
#include "grosr/sys/awaited.hpp"

namespace grosr {

/// What runs when a call that was awaited has ended: a warp brings its bytes and its result to the
/// continuation that waits. A runtime whose tasks await calls names it among its task types; only
/// the runtime starts it.
struct awaited {
  static constexpr grosr::width width = grosr::width::warp;
  static constexpr bool completes = true;
  queue::completion what;

  GROSR_DEVICE void operator()(auto& context) const {
    sys::finish_awaited(what);
    if (context.rank() == 0) context.deliver(what);
  }
};

}  // namespace grosr
