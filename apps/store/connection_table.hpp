// The connections of a device's server, in its memory: what each keeps between two tasks, and which
// places are free.
#pragma once

#include "device_table.hpp"

namespace grosr::store {

using protocol = session<together, device_table>;

/// A connection that is served.
struct connection {
  protocol state;
  int peer;
  protocol::next then;        ///< when all of the answer is sent
  std::uint32_t sent;         ///< bytes of the answer
  std::uint64_t requests;     ///< that were complete when it was looked at last
  std::uint64_t complete_ns;  ///< when the last of them was complete, or it was accepted
};

/// Places for connections, and acceptors, each of which holds a place for who comes next. An
/// acceptor that finds none free rests: who ends a connection accepts in its stead. In device
/// memory; one lane of a warp calls.
struct connection_table {
  connection* at;
  std::uint32_t* free;  ///< places
  std::uint32_t free_count, acceptors;
  std::uint32_t lock = 0, resting = 0, pausing = 0;

  /// An acceptor's next place. False: it rests.
  GROSR_DEVICE bool take(std::uint32_t& place) {
    const held h(lock);
    if (free_count == 0) {
      ++resting;
      return false;
    }
    place = free[--free_count];
    return true;
  }

  /// Of a connection that has ended. Whether the caller now is an acceptor, which has the place.
  GROSR_DEVICE bool give(std::uint32_t place) {
    const held h(lock);
    if (resting != 0) {
      --resting;
      return true;
    }
    free[free_count++] = place;
    return false;
  }

  /// An acceptor, for which accept() has failed.
  GROSR_DEVICE void begin_pause() {
    const held h(lock);
    ++pausing;
  }
  GROSR_DEVICE void end_pause() {
    const held h(lock);
    --pausing;
  }

  /// For lack of places, or of descriptors.
  GROSR_DEVICE bool nobody_accepts() {
    const held h(lock);
    return resting + pausing == acceptors;
  }

 private:
  class held {
   public:
    GROSR_DEVICE explicit held(std::uint32_t& lock) : word_(lock) {
      simt::wait_until([&] { return word_.exchange(1, simt::acquire) == 0; },  // A2
                       simt::forever, nullptr, "the table of connections");
    }
    GROSR_DEVICE ~held() { word_.store(0, simt::release); }  // R2: pairs with A2
    held(const held&) = delete;

   private:
    simt::atomic_ref<std::uint32_t> word_;
  };
};

}  // namespace grosr::store
