// Numbered slots that lanes claim and free: a bit each, in words of 32, in device memory.
//
//   word w    bit i is set while slot 32 w + i is somebody's
//
// A claimer begins at its home word, which nobody else begins at while there are as many words as
// claimers; then one atomic finds slots for all lanes of a warp. When that word is full it goes on
// with those from a random one on: behind the homes of others that are full, runs of full words
// would form, and all would look through them again and again.
#pragma once

#include <cstdint>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::queue {

/// The device's view of a set of slots; passed by value. All calls are thread-safe.
class slot_bitmap_ref {
 public:
  slot_bitmap_ref() = default;
  slot_bitmap_ref(std::uint32_t* words, std::uint32_t count) : words_(words), count_(count) {}

  GROSR_DEVICE std::uint32_t words() const { return count_; }

  /// What claim() found: slots 32 * word + i for the bits i that are set; none: all are taken.
  struct claimed {
    std::uint32_t word = 0, bits = 0;
    GROSR_DEVICE std::uint32_t first() const { return word * 32 + simt::lowest_bit(bits); }
    GROSR_DEVICE std::uint32_t nth(unsigned n) const { return word * 32 + simt::nth_bit(bits, n); }
  };

  /// One lane claims 1 to `wanted` slots (1 to 32) of one word, its home's if possible. Looks at
  /// each word, at its home twice.
  GROSR_DEVICE claimed claim(std::uint32_t home, unsigned wanted) const {
    claimed c{home, 0};
    std::uint32_t found = 0;  // as it mostly is
    GROSR_NO_UNROLL
    for (std::uint32_t looked = 0; looked <= count_; ++looked) {
      simt::atomic_ref<std::uint32_t> word(words_[c.word]);
      if (looked != 0) found = word.load(simt::relaxed);
      while (~found != 0) {
        c.bits = simt::lowest_bits(~found, wanted);
        if (word.compare_exchange(found, found | c.bits, simt::in_turn())) return c;  // A1
      }
      if (looked == 0)
        c.word = some_word(home);
      else if (++c.word == count_)
        c.word = 0;
    }
    c.bits = 0;
    return c;
  }

  /// One lane claims this slot, or nothing. Other slots of the word may be taken.
  GROSR_DEVICE claimed claim_one(std::uint32_t word, std::uint32_t i) const {
    const std::uint32_t bit = 1u << i;
    const std::uint32_t before =
        simt::atomic_ref<std::uint32_t>(words_[word]).fetch_or(bit, simt::in_turn());  // A1
    return {word, bit & ~before};
  }

  /// One lane frees slots of one word. On a GPU what it loaded before has come, and nothing else
  /// is ordered; who stored to what the next holder loads, fences before.
  GROSR_DEVICE void free(std::uint32_t word, std::uint32_t bits) const {
    // R1: pairs with A1.
    simt::atomic_ref<std::uint32_t>(words_[word]).fetch_and(~bits, simt::after_result());
  }
  GROSR_DEVICE void free(std::uint32_t slot) const { free(slot / 32, 1u << slot % 32); }

 private:
  /// Another one each time.
  GROSR_DEVICE std::uint32_t some_word(std::uint32_t home) const {
    const auto salt = static_cast<std::uint32_t>(simt::cycle_count()) ^ home * 0x85eb'ca6bu;
    return static_cast<std::uint32_t>(std::uint64_t{salt * 0x9e37'79b9u} * count_ >> 32);
  }

  std::uint32_t* words_ = nullptr;
  std::uint32_t count_ = 0;
};

}  // namespace grosr::queue
