// What may go wrong on the host while a cell of the grid is played, and a look at what is held
// afterwards.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "support/scramble.hpp"
#include "sys/calls.hpp"
#include "sys/linux_result.hpp"

namespace grosr::sys::grid {

/// While it lives, Linux's calls are short, interrupted, refused or late, as the seed says.
class trouble {
 public:
  explicit trouble(std::uint32_t seed) {
    turn_ = testing::scramble(seed);
    injected_fault = make;
  }
  ~trouble() { injected_fault = nullptr; }
  trouble(const trouble&) = delete;

  static std::uint64_t made() { return made_; }
  /// Whether a call may have this result on account of it.
  static bool explains(long result) {
    return result == -EAGAIN || result == -ENOSPC || result == -EIO;
  }

 private:
  static long make(long number, std::uint64_t* a) {
    const std::uint32_t n = testing::scramble(turn_.fetch_add(1));
    const bool moves = number == SYS_read || number == SYS_write || number == SYS_pread64 ||
                       number == SYS_pwrite64 || number == SYS_sendto || number == SYS_recvfrom;
    if (n % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds((n >> 8) % 200));
    switch (n / 16 % 20) {
      case 0:
      case 1:
      case 2:
        return ++made_, -EINTR;
      case 3:
        return ++made_, -EAGAIN;
      case 4:
        return ++made_, moves ? -ENOSPC : -EAGAIN;
      case 5:
        return ++made_, -EIO;
      case 6:
      case 7:
      case 8:
      case 9:
        if (moves && a[2] > 1) a[2] = 1 + (n >> 12) % a[2], ++made_;
        return 0;
      default:
        return 0;
    }
  }
  static inline std::atomic<std::uint32_t> turn_{0};
  static inline std::atomic<std::uint64_t> made_{0};
};

/// Counts the slots and the chunks of each size that calls hold, when none is under way.
struct count_held {
  server_ref sys;
  std::uint32_t* held;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const view& v = sys.where();
    for (std::uint32_t word = 0; word < v.slots.words(); ++word) reclaim(v, word);
    held[0] = taken(v.slots);
    for (unsigned size = 0; size < chunk_sizes; ++size) held[1 + size] = taken(v.chunks[size]);
  }
  // Takes the rest, word by word: no call can be made afterwards.
  GROSR_DEVICE static std::uint32_t taken(const queue::slot_bitmap_ref& places) {
    std::uint32_t all = places.words() * 32;
    for (std::uint32_t word = 0; word < places.words(); ++word) {
      std::uint32_t rest = 0;
      for (unsigned i = 0; i < 32; ++i) rest += places.claim_one(word, i).bits != 0;
      all -= rest;
    }
    return all;
  }
};

}  // namespace grosr::sys::grid
