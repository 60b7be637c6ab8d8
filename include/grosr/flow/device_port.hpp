// Ends of a graph's channels that device code uses: a task pushes a block, or pulls one, and awaits
// that as it awaits system calls.
//
//   struct count_frame {  // a task
//     using result = long;
//     grosr::sys::server_ref sys;
//     flow::device_sink_ref<float> frames;
//     float* frame;  // device memory for a block
//     GROSR_DEVICE void operator()(auto& context) const {
//       auto& next = context.join(counts{frame});
//       frames.pull(context.await(sys, &next.elements), frame, frames.elements());
//     }
//   };
//   sys::server server(device);
//   flow::device_sink<float> frames(graph.sink<float>(smoother["result"]), server);
//   runtime<count_frame, counts, awaited> runtime(device);
//   runtime.submit(count_frame{server.ref(), frames.ref(), memory});
//
// docs/guide/dataflow.md teaches it; docs/internals/dataflow.md has the protocol.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "grosr/flow/graph.hpp"
#include "grosr/simt/owner.hpp"
#include "grosr/simt/process.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::flow {

class device_port;

/// The most bytes that a block of a device port has: what one call carries.
inline constexpr std::size_t most_device_block = sys::piece_bytes;

/// For how long a call waits that does not say so.
inline constexpr std::int64_t without_limit = -1;

/// How device code names a device port.
struct device_port_name {
  sys::handler_ref handler;
  bool is_fixed = true;        ///< a block has all elements of the template
  std::uint32_t elements = 0;  ///< of the channel's template
  std::uint64_t key = 0;       ///< of this port alone, in the process
};

namespace detail {
/// Makes the call, or one that ends with -EINVAL.
template <class Caller, class Carried>
GROSR_DEVICE auto call_port(const Caller& c, const device_port_name& port, Carried elements,
                            std::int64_t limit_ns, bool fits) {
  if (!fits) elements.count = 0;
  auto o = sys::detail::call_of_handler(port.handler.number, elements, limit_ns, port.key);
  if (!fits) o.bad = -EINVAL;
  return sys::invoke(c, o);
}
}  // namespace detail

/// What kernels and tasks push into. Passed by value; valid while its device_source and the server
/// live. The first argument of each call is a caller of that server: a lane, a warp, a block or a
/// grid that waits, or context.await(). The result is 0, when the block is in the channel, or
///
///   -EINVAL     `count` is not the template's, or more than it has where that is variable
///   -EFAULT     `at` is null
///   -EAGAIN     try_push(): the channel is full. All: there is no room for the call (caller.hpp),
///               or no free chunk for its elements; nothing was pushed
///   -ETIMEDOUT  push_for(): the channel is still full
///   -EPIPE      the graph or the device_source was stopped, or that has ended meanwhile
///   -EIO        a node has ended the graph: why_ended() says how
///   -ENOMEM     the server has no memory for the call; or the graph has none for a block, and then
///               the device_source serves nobody any more: why_ended() says so
///   -ESHUTDOWN  the server was stopped. A push that waits then does not come into the channel; one
///               that is coming into it just then does
///   -ENOSYS     there is no such port: it has ended, or the caller is of another server
///
/// Elements are copied before the call returns, also where it is awaited: `at` may be written again
/// at once. They may lie in any memory that the caller reads. Where order matters, await one push
/// before the next.
template <class T>
class device_source_ref {
 public:
  device_source_ref() = default;
  explicit device_source_ref(const device_port_name& port) : port_(port) {}

  /// Pushes a block of `count` elements, and waits while the channel is full.
  template <class Caller>
  GROSR_DEVICE auto push(const Caller& c, const T* at, std::size_t count) const {
    return call(c, at, count, without_limit);
  }
  /// The same if there is room now, and nobody waits for it.
  template <class Caller>
  GROSR_DEVICE auto try_push(const Caller& c, const T* at, std::size_t count) const {
    return call(c, at, count, 0);
  }
  /// The same, but waits up to so many nanoseconds.
  template <class Caller>
  GROSR_DEVICE auto push_for(const Caller& c, const T* at, std::size_t count,
                             std::int64_t ns) const {
    return call(c, at, count, ns < 0 ? 0 : ns);
  }

  /// Elements of the channel's template.
  GROSR_DEVICE std::size_t elements() const { return port_.elements; }

 private:
  template <class Caller>
  GROSR_DEVICE auto call(const Caller& c, const T* at, std::size_t count, std::int64_t ns) const {
    const bool fits = port_.is_fixed ? count == port_.elements : count <= port_.elements;
    return detail::call_port(c, port_, sys::sent(at, count), ns, fits);
  }
  device_port_name port_;
};

/// What kernels and tasks pull from; as device_source_ref. A pull copies the oldest block to `at`,
/// where there is room for `room` elements, and its result is how many elements the block has; it
/// writes elements() of them, and what lies behind the block's own is undefined. -EINVAL: `room` is
/// less than elements(). -EAGAIN and -ETIMEDOUT: there is no block; -EAGAIN: or no room for the
/// call, or no free chunk. With context.await(), `at` is a member of the continuation or other
/// device memory that lives until then; -EFAULT: on the task's stack.
template <class T>
class device_sink_ref {
 public:
  device_sink_ref() = default;
  explicit device_sink_ref(const device_port_name& port) : port_(port) {}

  /// Waits for a block and takes it.
  template <class Caller>
  GROSR_DEVICE auto pull(const Caller& c, T* at, std::size_t room) const {
    return call(c, at, room, without_limit);
  }
  template <class Caller, std::size_t N>
  GROSR_DEVICE auto pull(const Caller& c, T (&at)[N]) const {
    return call(c, at, N, without_limit);
  }
  /// The same if there is one now that nobody waits for.
  template <class Caller>
  GROSR_DEVICE auto try_pull(const Caller& c, T* at, std::size_t room) const {
    return call(c, at, room, 0);
  }
  template <class Caller, std::size_t N>
  GROSR_DEVICE auto try_pull(const Caller& c, T (&at)[N]) const {
    return call(c, at, N, 0);
  }
  /// The same, but waits up to so many nanoseconds.
  template <class Caller>
  GROSR_DEVICE auto pull_for(const Caller& c, T* at, std::size_t room, std::int64_t ns) const {
    return call(c, at, room, ns < 0 ? 0 : ns);
  }
  template <class Caller, std::size_t N>
  GROSR_DEVICE auto pull_for(const Caller& c, T (&at)[N], std::int64_t ns) const {
    return call(c, at, N, ns < 0 ? 0 : ns);
  }

  /// Elements of the channel's template.
  GROSR_DEVICE std::size_t elements() const { return port_.elements; }

 private:
  template <class Caller>
  GROSR_DEVICE auto call(const Caller& c, T* at, std::size_t room, std::int64_t ns) const {
    return detail::call_port(c, port_, sys::filled(at, port_.elements), ns, room >= port_.elements);
  }
  device_port_name port_;
};

/// Counts since it was made.
struct device_port_stats {
  std::uint64_t blocks = 0;   ///< that came from the device, or went there
  std::uint64_t waiting = 0;  ///< calls that wait now
};

/// What device_source and device_sink have in common: an end of a channel, which a thread of its
/// own serves to the device of a server of system calls. Calls wait in the order in which the
/// server took them, and hold no thread. The program may go on to use the source or sink. The
/// server outlives it. Thread-safe.
///
/// A runtime does not end while its tasks wait here: before it goes, call stop(), graph.stop() or
/// server.stop(), whichever order the objects were made in.
class any_device_end {
 public:
  any_device_end(const any_device_end&) = delete;

  /// Calls that wait, and later ones, end with -EPIPE. Not to be called by a node's function.
  void stop() noexcept;

  device_port_stats stats() const;
  /// Why it serves nobody any more. Empty while it serves.
  std::string why_ended() const;

 protected:
  any_device_end(const any_source& of, sys::server& server);
  any_device_end(const any_sink& of, sys::server& server);
  /// Calls that wait end with -EPIPE; later ones are -ENOSYS.
  ~any_device_end();

  device_port_name name() const;

 private:
  simt::owner<device_port, simt::not_in_a_fork> port_;
};

/// Make it after compile() and before the runtimes whose tasks use it; the server, too, is made
/// before those. Throws
/// error(invalid_option) for a template of more than most_device_block bytes and an executor
/// without threads; error(misuse) before compile(); error(out_of_memory); what has ended the graph.
template <class T>
class device_source : public any_device_end {
 public:
  device_source(const source<T>& of, sys::server& server) : any_device_end(of, server) {}
  device_source_ref<T> ref() const { return device_source_ref<T>(name()); }
};
template <class T>
class device_sink : public any_device_end {
 public:
  device_sink(const sink<T>& of, sys::server& server) : any_device_end(of, server) {}
  device_sink_ref<T> ref() const { return device_sink_ref<T>(name()); }
};

}  // namespace grosr::flow
