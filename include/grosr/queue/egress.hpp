// Lines from a device to the host: any lane or warp produces, one host thread at a time consumes.
//
//   tail     next ticket                                   device memory
//   credit   lines the host has consumed                    host memory, cached in device memory
//   line n lies at n mod capacity and validates itself (line.hpp)
//
// A producer takes tickets only for lines it has credit for: it compares with the cached credit and
// looks across the bus only when the cache says full. Progress: try_push answers at once; producers
// never wait for each other. Lines of one producing lane arrive in the order of its calls.
#pragma once

#include <cstdint>

#include "grosr/queue/line.hpp"
#include "grosr/queue/ring.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"

namespace grosr::queue {

struct egress_control {
  alignas(128) std::uint64_t tail;
  alignas(128) std::uint64_t credit_cached;
};

/// The device's view of an egress ring; passed by value. Any number of lanes use it at once.
class egress_ref {
 public:
  egress_ref() = default;

  /// Each lane of `mask` sends one line; one reservation serves them all. True for the lanes whose
  /// line went in: all of them, or none when there is no room for the group.
  GROSR_DEVICE bool try_push(std::uint32_t mask, const line& content) const {
    unsigned lane = simt::lane_id(), leader = simt::lowest_bit(mask);
    std::uint64_t first = none;
    if (lane == leader) first = reserve(simt::popcount(mask));
    first = simt::shuffle(mask, first, leader);
    if (first == none) return false;
    std::uint64_t number = first + simt::rank_in(mask, lane);
    write_line(lines_ + (number & mask_) * line_words, content,
               lap_of(number, static_cast<std::uint32_t>(mask_ + 1)));
    return true;
  }

 private:
  friend class egress;
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  GROSR_DEVICE std::uint64_t reserve(unsigned count) const {
    simt::atomic_ref<std::uint64_t> tail(control_->tail), cached(control_->credit_cached);
    std::uint64_t t = tail.load(simt::relaxed);
    for (;;) {
      if (t + count > cached.load(simt::acquire) + mask_ + 1) {
        // A1: pairs with R1 in egress::try_pop(): the host has read what it gives credit for.
        std::uint64_t c =
            simt::atomic_ref<std::uint64_t, simt::scope::system>(*credit_).load(simt::acquire);
        if (t + count > c + mask_ + 1) return none;
        std::uint64_t old = cached.load(simt::relaxed);
        while (old < c && !cached.compare_exchange(old, c, simt::acq_rel)) {
        }
      }
      if (tail.compare_exchange(t, t + count, simt::acq_rel)) return t;
    }
  }

  egress_control* control_ = nullptr;
  simt::bus_word* lines_ = nullptr;
  std::uint64_t* credit_ = nullptr;
  std::uint64_t mask_ = 0;
};

/// Owner of an egress ring, and its consumer side. Not movable.
class egress {
 public:
  /// Throws error(invalid_option) unless `capacity` (lines) is a power of two and at least 32.
  egress(device d, std::uint32_t capacity);

  /// What kernels get; valid while this lives.
  egress_ref ref() const;

  /// The oldest line, if it is there. One thread at a time.
  bool try_pop(line& content);

 private:
  std::uint32_t capacity_;
  std::uint64_t consumed_ = 0;
  simt::buffer<egress_control> control_;
  simt::buffer<simt::bus_word> lines_;
  simt::buffer<std::uint64_t> credit_;
};

}  // namespace grosr::queue
