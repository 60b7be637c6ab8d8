// The host's side of submission_ring.hpp: who owns the memory of rings, and who writes packets.
#pragma once

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "grosr/queue/submission_ring.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/relax.hpp"

namespace grosr::queue {

/// Owner of the memory of several rings of one capacity.
class submission_ring_memory {
 public:
  static constexpr std::uint32_t min_packets = 8, max_packets = 8192;

  /// Throws error(invalid_option) unless `capacity` (packets) is a power of two from min_packets to
  /// max_packets.
  submission_ring_memory(device d, std::uint32_t capacity, std::uint32_t rings);

  /// What kernels get; valid while this lives.
  submission_rings_ref refs() const;

  std::uint32_t capacity() const { return capacity_; }

  /// Device memory, and pinned memory, that a ring of this capacity takes.
  static std::size_t device_bytes(std::size_t capacity) {
    return sizeof(submission_ring_control) +
           capacity * (sizeof(packet) + 32 + sizeof(std::uint32_t));
  }
  static std::size_t pinned_bytes(std::size_t capacity) {
    return capacity * (sizeof(packet) + 32) + credit_words * sizeof(std::uint32_t);
  }

 private:
  friend class submission_ring;

  std::uint32_t capacity_;
  simt::buffer<submission_ring_control> control_;
  simt::buffer<simt::bus_word> packets_;
  simt::buffer<simt::bus_word> staged_;
  simt::buffer<std::uint32_t> next_;
  simt::buffer<std::uint32_t> credit_;
};

/// For std::lock_guard, around a few stores. To unlock it is a store: a mutex is unlocked when all
/// stores before have become visible, and a device may have the lines of a packet.
class brief_lock {
 public:
  brief_lock() { pthread_spin_init(&held_, PTHREAD_PROCESS_PRIVATE); }
  ~brief_lock() { pthread_spin_destroy(&held_); }
  brief_lock(const brief_lock&) = delete;

  bool try_lock() { return pthread_spin_trylock(&held_) == 0; }
  void lock() {
    for (unsigned turn = 1; !try_lock(); ++turn) {
      if (turn % 128 != 0)
        simt::relax();
      else  // whoever has it does not run now
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void unlock() { pthread_spin_unlock(&held_); }

 private:
  pthread_spinlock_t held_;
};

/// The producer side of a ring. Not movable: its lock is held by address.
class submission_ring {
 public:
  static constexpr std::uint32_t min_packets = submission_ring_memory::min_packets,
                                 max_packets = submission_ring_memory::max_packets;

  /// Ring `number` of these.
  submission_ring(std::shared_ptr<const submission_ring_memory> memory, std::uint32_t number);

  /// A ring that has its memory for itself. Throws as submission_ring_memory does.
  submission_ring(device d, std::uint32_t capacity)
      : submission_ring(std::make_shared<submission_ring_memory>(d, capacity, 1), 0) {}

  /// What kernels get; valid while the memory lives.
  submission_ring_ref ref() const { return memory_->refs()[number_]; }

  /// Held while a packet is prepared and written.
  brief_lock& lock() { return lock_; }

  /// Lock held: whether there is room for a packet now.
  bool has_room();

  /// Lock held, has_room(): writes the next packet. Returns its number.
  std::uint32_t write(const packet& content);

 private:
  brief_lock lock_;
  std::shared_ptr<const submission_ring_memory> memory_;
  std::uint32_t number_, capacity_;
  std::uint32_t written_ = 0;
  std::uint32_t credit_seen_ = 0;
  simt::bus_word* packets_;
  std::uint32_t* credit_;
};

}  // namespace grosr::queue
