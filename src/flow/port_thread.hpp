// What serves an end of a channel to others: a thread that sleeps until the channel moves.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "flow/channel_end.hpp"
#include "flow/graph_core.hpp"
#include "flow/port_wire.hpp"

namespace grosr::flow {

/// The owner's destructor calls stop() before what the thread uses ends.
class port_thread {
 public:
  explicit port_thread(const channel_end& of);
  ~port_thread();
  port_thread(const port_thread&) = delete;

  /// Begins `body`, which returns soon after stops().
  void start(std::function<void()> body);
  void stop() noexcept;
  bool stops() const { return stops_; }

  /// The thread, before it looks: what the channel does from now on wakes it.
  void arm() { watch_.arm(); }
  /// Any thread.
  void wake() noexcept;
  /// A descriptor that can be read when the thread was woken.
  int event() const { return event_.get(); }
  void clear_event() noexcept;

 private:
  const channel_end of_;
  const owned_descriptor event_;
  channel_watch watch_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace grosr::flow
