// What serves an end of a channel to the kernels and tasks of a device: a handler of system calls,
// which replies later, and a thread, which moves blocks and replies.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "flow/channel_end.hpp"
#include "flow/port_thread.hpp"
#include "grosr/flow/device_port.hpp"

namespace grosr::flow {

class device_port {
 public:
  enum class side : std::uint8_t { source, sink };
  device_port(side s, channel_end end, sys::server& server);
  ~device_port();

  device_port_name name() const;
  void stop() noexcept;
  const block_template& shape() const { return end_.shape(); }
  device_port_stats stats() const;
  std::string why_ended() const;

 private:
  using clock = std::chrono::steady_clock;
  /// A call that waits. Its bytes lie in the server's arena, and are there for reply.use() alone.
  struct request {
    sys::deferred_reply reply;
    std::span<std::byte> bytes;
    clock::time_point until;
    bool tries;
  };
  /// Where the handler leaves requests; it may outlive the port.
  struct inbox {
    explicit inbox(std::uint64_t k) : key(k) {}
    const std::uint64_t key;
    std::mutex mutex;
    port_thread* wakes = nullptr;
    std::deque<request> arrived;
    std::optional<long> ended;  ///< what calls end with from now on
    void take(sys::deferred_reply reply, std::span<std::byte> bytes, std::int64_t limit_ns,
              std::uint64_t key_of_call);
  };
  struct takes_push;
  struct takes_pull;

  void work();
  bool serve_some();
  bool take_arrivals();
  bool serve(request& r);
  bool push(request& r);
  bool pull(request& r);
  void put_back();
  void expire();
  void sleep();
  void end(long result, const char* why) noexcept;
  template <class F>
  void count(const F& f);

  const side side_;
  const channel_end end_;
  const std::size_t element_bytes_;
  sys::server& server_;
  const std::shared_ptr<inbox> inbox_;
  sys::handler_ref handler_;

  mutable std::mutex mutex_;  // of these
  device_port_stats stats_;
  std::string why_ended_;

  // The thread's own.
  std::deque<request> arrived_;  // not looked at yet
  std::deque<request> waiting_;  // in the order in which they came; none that tries
  datablock hand_;               // of a source: the first one's; of a sink: for the first one
  clock::time_point next_limit_ = clock::time_point::max();  // not after that of any that waits
  std::mutex stop_mutex_;
  port_thread thread_;
};

}  // namespace grosr::flow
