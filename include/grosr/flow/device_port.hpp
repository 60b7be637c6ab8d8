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
//       frames.pull(context.await(sys, &next.elements), frame);
//     }
//   };
//   sys::server server(device);
//   flow::device_sink<float> frames(graph.sink<float>(smoother["result"]), server);
//   runtime<count_frame, counts, awaited> runtime(device);
//   runtime.submit(count_frame{server.ref(), frames.ref(), memory});
//
// docs/guide/dataflow.md teaches it; docs/internals/dataflow.md has the protocol.
#pragma once

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

/// What kernels and tasks push into. Passed by value; valid while its device_source and the server
/// live. The first argument of each call is a caller of that server: a lane, a warp, a block or a
/// grid that waits, or context.await(). The result is 0, when the block is in the channel, or
///
///   -EINVAL     `count` is not the template's, or more than it has where that is variable
///   -EAGAIN     try_push(): the channel is full; or there is no room for the call (caller.hpp)
///   -ETIMEDOUT  push_for(): the channel is still full
///   -EPIPE      the graph was stopped, or the device_source has ended meanwhile
///   -EIO        a node has ended the graph: why_ended() says how
///   -ENOMEM     the graph has no memory for the block; the device_source has ended
///   -ESHUTDOWN  the server was stopped
///
/// Elements are copied before the call returns, also where it is awaited: `at` may be written again
/// at once. They may lie in any memory that the caller reads.
template <class T>
class device_source_ref {
 public:
  device_source_ref() = default;
  device_source_ref(sys::handler_ref h, std::uint32_t elements)
      : handler_(h), elements_(elements) {}

  /// Pushes a block of `count` elements, and waits while the channel is full.
  template <class Caller>
  GROSR_DEVICE auto push(const Caller& c, const T* at, std::size_t count) const {
    return sys::call(c, handler_, sys::sent(at, count), without_limit);
  }
  /// The same if there is room now, and nobody waits for it.
  template <class Caller>
  GROSR_DEVICE auto try_push(const Caller& c, const T* at, std::size_t count) const {
    return sys::call(c, handler_, sys::sent(at, count), std::int64_t{0});
  }
  /// The same, but waits up to so many nanoseconds.
  template <class Caller>
  GROSR_DEVICE auto push_for(const Caller& c, const T* at, std::size_t count,
                             std::int64_t ns) const {
    return sys::call(c, handler_, sys::sent(at, count), ns < 0 ? 0 : ns);
  }

  /// Elements of the channel's template.
  GROSR_DEVICE std::size_t elements() const { return elements_; }

 private:
  sys::handler_ref handler_;
  std::uint32_t elements_ = 0;
};

/// What kernels and tasks pull from; as device_source_ref. A pull copies the oldest block to `at`,
/// where there is room for elements(), and its result is how many elements the block has; what lies
/// behind these is undefined. With context.await(), `at` is a member of the continuation or other
/// device memory that lives until then. -EAGAIN and -ETIMEDOUT: there is no block.
template <class T>
class device_sink_ref {
 public:
  device_sink_ref() = default;
  device_sink_ref(sys::handler_ref h, std::uint32_t elements) : handler_(h), elements_(elements) {}

  /// Waits for a block and takes it.
  template <class Caller>
  GROSR_DEVICE auto pull(const Caller& c, T* at) const {
    return sys::call(c, handler_, sys::filled(at, elements_), without_limit);
  }
  /// The same if there is one now that nobody waits for.
  template <class Caller>
  GROSR_DEVICE auto try_pull(const Caller& c, T* at) const {
    return sys::call(c, handler_, sys::filled(at, elements_), std::int64_t{0});
  }
  /// The same, but waits up to so many nanoseconds.
  template <class Caller>
  GROSR_DEVICE auto pull_for(const Caller& c, T* at, std::int64_t ns) const {
    return sys::call(c, handler_, sys::filled(at, elements_), ns < 0 ? 0 : ns);
  }

  /// Elements of the channel's template.
  GROSR_DEVICE std::size_t elements() const { return elements_; }

 private:
  sys::handler_ref handler_;
  std::uint32_t elements_ = 0;
};

/// Counts since it was made.
struct device_port_stats {
  std::uint64_t blocks = 0;   ///< that came from the device, or went there
  std::uint64_t waiting = 0;  ///< calls that wait now
};

/// What device_source and device_sink have in common: an end of a channel, which a thread of its
/// own serves to the device of a server of system calls. Calls wait in the order in which they came
/// and hold no thread. The program may go on to use the source or sink. The server outlives it.
/// Thread-safe.
class any_device_end {
 public:
  any_device_end(const any_device_end&) = delete;

  device_port_stats stats() const;
  /// Why it serves nobody any more. Empty while it serves.
  std::string why_ended() const;

 protected:
  any_device_end(const any_source& of, sys::server& server);
  any_device_end(const any_sink& of, sys::server& server);
  /// Calls that wait end with -EPIPE; later ones are -ENOSYS.
  ~any_device_end();

  sys::handler_ref handler() const;
  std::uint32_t elements() const;

 private:
  simt::owner<device_port, simt::not_in_a_fork> port_;
};

/// After compile(), and before the runtimes whose tasks use it, as the server. Throws
/// error(invalid_option) for a template of more than most_device_block bytes and an executor
/// without threads; error(misuse) before compile(); error(out_of_memory); what has ended the graph.
template <class T>
class device_source : public any_device_end {
 public:
  device_source(const source<T>& of, sys::server& server) : any_device_end(of, server) {}
  device_source_ref<T> ref() const { return {handler(), elements()}; }
};
template <class T>
class device_sink : public any_device_end {
 public:
  device_sink(const sink<T>& of, sys::server& server) : any_device_end(of, server) {}
  device_sink_ref<T> ref() const { return {handler(), elements()}; }
};

}  // namespace grosr::flow
