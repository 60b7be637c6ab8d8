// A work-stealing deque whose whole state is one word.
//
//   word    bottom (high 32) │ top (low 32)          entries[i mod capacity], top <= i < bottom
//   owner   push: write the entry, then bottom + 1    (R1)
//           pop:  bottom - 1, or top + 1 when one entry is left, by compare-exchange
//   thief   load the word (A1), load entries[top], top + 1 by compare-exchange
//
// Why a thief's entry is the right one: entries[top] changes only after top has moved on (the
// owner takes the last entry by moving top, never bottom), and then the exchange fails. A word
// never comes back: top only grows. Every operation is lock-free and linearizable.
#pragma once

#include <cstdint>

#include "grosr/simt/atomic.hpp"

namespace grosr::queue {

/// What the owner remembers between calls, so that most of them cost one access.
struct deque_owner {
  std::uint32_t bottom;    ///< exact: only the owner moves it
  std::uint32_t top_seen;  ///< a lower bound of top
};

class deque_ref {
 public:
  /// `capacity` is a power of two; `entries` has that many. All members are for one lane.
  GROSR_DEVICE deque_ref(std::uint64_t* word, std::uint64_t* entries, std::uint32_t capacity)
      : word_(word), entries_(entries), mask_(capacity - 1) {}

  /// What a new owner of an existing deque starts from.
  GROSR_DEVICE deque_owner adopt() const {
    std::uint64_t w = atomic(*word_).load(simt::acquire);
    return {static_cast<std::uint32_t>(w >> 32), static_cast<std::uint32_t>(w)};
  }

  /// Owner only: lays `entry` at place `n` beyond those published. False when full.
  GROSR_DEVICE bool lay(deque_owner& o, std::uint32_t n, std::uint64_t entry) const {
    if (o.bottom + n - o.top_seen > mask_) {
      o.top_seen = static_cast<std::uint32_t>(atomic(*word_).load(simt::acquire));
      if (o.bottom + n - o.top_seen > mask_) return false;
    }
    atomic(entries_[(o.bottom + n) & mask_]).store(entry, simt::relaxed);
    return true;
  }

  /// Owner only: publishes n entries that were laid.
  GROSR_DEVICE void publish(deque_owner& o, std::uint32_t n) const {
    // R1: publishes the entries and what they name; pairs with A1 in steal().
    atomic(*word_).fetch_add(std::uint64_t{n} << 32, simt::release);
    o.bottom += n;
  }

  /// Anyone, as steal(last).
  GROSR_DEVICE std::uint64_t steal() const {
    bool last = false;
    return steal(last);
  }

  /// Owner only. False when full.
  GROSR_DEVICE bool push(deque_owner& o, std::uint64_t entry) const {
    if (!lay(o, 0, entry)) return false;
    publish(o, 1);
    return true;
  }

  /// Owner only. The newest entry, without taking it; 0 when empty as far as the owner knows.
  GROSR_DEVICE std::uint64_t peek(const deque_owner& o) const {
    if (o.bottom == o.top_seen) return 0;
    return atomic(entries_[(o.bottom - 1) & mask_]).load(simt::relaxed);
  }

  /// Owner only. The newest entry, or 0 when empty.
  GROSR_DEVICE std::uint64_t pop(deque_owner& o) const {
    std::uint64_t expected = pack(o.bottom, o.top_seen);
    for (;;) {
      std::uint32_t top = static_cast<std::uint32_t>(expected);
      o.top_seen = top;
      if (o.bottom == top) {
        // A2: who took the last entry was counted active before; pairs with the thief's release.
        simt::fence(simt::acquire);
        return 0;
      }
      bool last = o.bottom - top == 1;
      std::uint64_t entry = atomic(entries_[(o.bottom - 1) & mask_]).load(simt::relaxed);
      std::uint64_t desired = last ? pack(o.bottom, top + 1) : pack(o.bottom - 1, top);
      // Relaxed: what the owner published it can read, and it gives nothing away here.
      if (atomic(*word_).compare_exchange(expected, desired, simt::relaxed)) {
        if (last)
          o.top_seen = top + 1;
        else
          --o.bottom;
        return entry;
      }
    }
  }

  /// Anyone. Number of entries at some moment during the call.
  GROSR_DEVICE std::uint32_t size(simt::order o = simt::acquire) const {
    std::uint64_t w = atomic(*word_).load(o);
    return static_cast<std::uint32_t>(w >> 32) - static_cast<std::uint32_t>(w);
  }

  /// Anyone. The oldest entry, or 0 when empty or when another thief was faster. `last`: it was the
  /// only one.
  GROSR_DEVICE std::uint64_t steal(bool& last) const {
    std::uint64_t w = atomic(*word_).load(simt::acquire);  // A1: pairs with R1 in push()
    std::uint32_t bottom = static_cast<std::uint32_t>(w >> 32), top = static_cast<std::uint32_t>(w);
    if (bottom == top) return 0;
    // Acquire: the load is over before the owner can see the new top and lay another entry here.
    std::uint64_t entry = atomic(entries_[top & mask_]).load(simt::acquire);
    last = bottom - top == 1;
    return atomic(*word_).compare_exchange(w, pack(bottom, top + 1), simt::acq_rel) ? entry : 0;
  }

 private:
  GROSR_DEVICE static simt::atomic_ref<std::uint64_t> atomic(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  GROSR_DEVICE static std::uint64_t pack(std::uint32_t bottom, std::uint32_t top) {
    return std::uint64_t{bottom} << 32 | top;
  }

  std::uint64_t* word_;
  std::uint64_t* entries_;
  std::uint32_t mask_;
};

}  // namespace grosr::queue
