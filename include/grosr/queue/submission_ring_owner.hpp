// The host's side of submission_ring.hpp: who owns a ring, and writes packets.
#pragma once

#include <cstdint>
#include <mutex>

#include "grosr/queue/submission_ring.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::queue {

/// Owner of a submission ring, and its producer side. Not movable: refs point into it.
class submission_ring {
 public:
  static constexpr std::uint32_t min_packets = 8, max_packets = 8192;

  /// Throws error(invalid_option) unless `capacity` (packets) is a power of two from min_packets to
  /// max_packets.
  submission_ring(device d, std::uint32_t capacity);

  /// What kernels get; valid while this lives.
  submission_ring_ref ref() const;

  /// Held while a packet is prepared and written.
  std::mutex& lock() { return lock_; }

  /// Lock held: whether there is room for a packet now.
  bool has_room();

  /// Lock held, has_room(): writes the next packet. Returns its number.
  std::uint32_t write(const packet& content);

  /// Device memory, and pinned memory, that a ring of this capacity takes.
  static std::size_t device_bytes(std::size_t capacity) {
    return sizeof(submission_ring_control) +
           capacity * (sizeof(packet) + 32 + sizeof(std::uint32_t));
  }
  static std::size_t pinned_bytes(std::size_t capacity) {
    return capacity * (sizeof(packet) + 32) + sizeof(std::uint32_t);
  }

 private:
  std::mutex lock_;
  std::uint32_t capacity_;
  std::uint32_t written_ = 0;
  std::uint32_t credit_seen_ = 0;
  simt::buffer<submission_ring_control> control_;
  simt::buffer<simt::bus_word> packets_;
  simt::buffer<simt::bus_word> staged_;
  simt::buffer<std::uint32_t> next_;
  simt::buffer<std::uint32_t> credit_;
};

}  // namespace grosr::queue
