// What the reactor's two halves share: calls of any thread (reactor.cpp), its own thread
// (reactor_thread.cpp).
#pragma once

#include <array>

#include "sys/reactor.hpp"

namespace grosr::sys {

// Its timer is set when it is to be looked at again though no event came.
struct reactor::entry : timer {
  entry() { of_descriptor = true; }
  bool waited_for() const { return !in.empty() || !out.empty() || !others.empty(); }

  int descriptor = -1;
  std::uint32_t generation = 0;  // of its registration: what comes of former ones is dropped
  bool registered = false;       // as far as is known: the number may be another file by now
  unsigned closing = 0;          // close() calls under way
  unsigned losses = 0;           // times that its queues were emptied
  std::size_t closed = 0;        // of closed_
  std::chrono::milliseconds delay{0};
  waiter_queue in, out, others;
  short others_events = 0;  // at least those of `others`
};

struct reactor::page {
  static constexpr int size = 256;
  std::array<entry, size> entries;
};

struct reactor::frame {
  int descriptor;
  wake cause;
  frame* outer;
  bool closed = false;  // its descriptor, since it began
};

struct reactor::served {
  short blocked = 0;  // events of those that go on waiting
  bool any_done = false;
};

// What the epoll says of an event: which descriptor, and which of its registrations.
constexpr std::uint64_t alarm_key = ~std::uint64_t{0};
constexpr std::uint64_t key_of(int descriptor, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(descriptor);
}

}  // namespace grosr::sys
