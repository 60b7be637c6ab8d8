// server: makes the system calls of a device's kernels.
//
//   struct stamp {
//     grosr::sys::server_ref sys;
//     GROSR_DEVICE void operator()() const {
//       grosr::sys::print(sys.warp(), "warp {}\n", grosr::simt::warp_id());
//     }
//   };
//   grosr::sys::server server(device);
//   grosr::simt::run(device, {1, 64}, stamp{server.ref()});
#pragma once

#include <chrono>
#include <span>

#include "grosr/simt/device.hpp"
#include "grosr/simt/owner.hpp"
#include "grosr/simt/process.hpp"
#include "grosr/sys/call.hpp"
#include "grosr/sys/caller.hpp"
#include "grosr/sys/files.hpp"
#include "grosr/sys/handler.hpp"
#include "grosr/sys/host.hpp"
#include "grosr/sys/memory.hpp"
#include "grosr/sys/network.hpp"
#include "grosr/sys/options.hpp"
#include "grosr/sys/print.hpp"
#include "grosr/sys/vectors.hpp"

namespace grosr::sys {

class service;

/// Owns the memory and the threads. Every member may be called from any number of host threads,
/// except construction and destruction. Not movable: refs point to it.
class server {
 public:
  /// Throws error(invalid_option, out_of_memory, device_lost). Before kernels are resident: it
  /// takes memory of the device.
  explicit server(device d = device::best(), const options& o = {});

  /// Waits for the calls that were made, at most options.exit_patience, and for the device's
  /// kernels; what they still call is refused with -ESHUTDOWN. In a forked child it does nothing.
  ~server();
  server(const server&) = delete;

  /// What kernels get; valid while this lives.
  server_ref ref() const;

  /// Installs a handler for sys::call<Handler>: a copy is called on threads of its own, several at
  /// a time, at most options.handler_threads of all handlers. A later one of the same number takes
  /// its place. It must not wait for the device. One that says `static constexpr bool quick = true`
  /// runs on the service thread that took the call, and holds up other calls meanwhile: for such as
  /// take a microsecond and wait for nothing. So
  /// does one that takes a sys::deferred_reply first: it returns nothing, and replies when it can.
  template <class Handler>
  void install(Handler handler) {
    install(Handler::number, detail::unpacked(std::move(handler)));
  }

  /// Installs a handler under a number that no other has until remove(). Throws
  /// error(invalid_option) when there are 16,384.
  template <class Handler>
  handler_ref add(Handler handler) {
    return add(detail::unpacked(std::move(handler)));
  }
  /// Calls of it are -ENOSYS from now on. Those that have begun go on, with a copy of it.
  void remove(handler_ref h) noexcept;

  /// Lets calls use these bytes of host memory in place: memory that the device reaches at the same
  /// address (pinned, or registered). Throws error(invalid_option) when there are too many ranges.
  void share(std::span<std::byte> bytes);

  /// Lets kernels use a descriptor of the program, until the server ends: the program closes it,
  /// and only afterwards, since its number may then be another file's. Throws error(invalid_option)
  /// for one that is not open.
  void grant(int descriptor);

  /// How many calls a thread takes at once at most (1 to 256; 0, as at the start: 32 of those that
  /// take no time, up to 8 of those that move a few bytes, one of those that may take long), and
  /// how long it waits for so many. May change while kernels run.
  void coalesce(unsigned batch, std::chrono::nanoseconds window);

  /// Returns when every call is complete whose record was written before; the completions of those
  /// that are awaited may still be on their way to the tasks. Throws error(timed_out) after
  /// `limit`.
  void drain(std::chrono::nanoseconds limit = std::chrono::hours(24 * 365));

  /// Refuses calls from now on, and ends those that wait, with -ESHUTDOWN. Returns when those have
  /// ended that Linux does not interrupt: reads and writes of disks. Not from a handler.
  void stop();

  sys::statistics statistics() const;
  /// The device whose kernels it serves.
  device where() const;

 private:
  void install(call_number number, detail::installed_handler handler);
  handler_ref add(detail::installed_handler handler);
  simt::owner<service, simt::not_in_a_fork> service_;
};

}  // namespace grosr::sys
