// Buffers of a rank for updates of other ranks. A block reserves places for all its threads: it
// counts by rank in block-shared memory, and then takes one atomic for each rank.
#pragma once

#include <cstdint>

#include "grosr/simt/global_ref.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::coprocessor {

/// Adds to a number of the rank that it is sent to.
struct update {
  std::uint64_t index, value;
};

GROSR_DEVICE inline void apply_update(std::uint64_t* numbers, const update& u) {
  simt::global_ref<std::uint64_t>(numbers[u.index]).store_add(u.value, simt::relaxed);
}

constexpr std::uint32_t most_ranks = 64;
struct block_places {
  std::uint32_t count[most_ranks], first[most_ranks];
  std::uint32_t someone_goes_on;
};

struct outbox {
  update* updates;        ///< a buffer for each rank, one after the other
  std::uint32_t* filled;  ///< places that were asked for, by rank; may be more than there are
  std::uint32_t self, ranks;
  std::uint32_t room;   ///< places of a buffer
  std::uint32_t width;  ///< updates of a place; update j of all places before j + 1 of any

  GROSR_DEVICE update& at(std::uint32_t to, std::uint32_t place, std::uint32_t j) const {
    return updates[(std::uint64_t{to} * width + j) * room + place];
  }
  /// That of another rank of the same exchange.
  GROSR_DEVICE outbox of_rank(std::uint32_t rank) const {
    outbox o = *this;
    const std::uint64_t ahead = std::uint64_t{rank} - self;
    o.updates += ahead * ranks * room * width;
    o.filled += ahead * ranks;
    o.self = rank;
    return o;
  }

  static constexpr std::uint32_t nobody = UINT32_MAX;
  /// Whole block: the place that a thread gets in the buffer for another rank. There is none if it
  /// is not below `room`. Threads that want none name this rank. All get `nobody` if no thread of
  /// the block goes on.
  GROSR_DEVICE std::uint32_t reserve(bool goes_on, std::uint32_t to) const {
    auto& block = simt::block_shared<block_places>();
    const bool away = to != self;
    GROSR_NO_UNROLL
    for (std::uint32_t r = simt::thread_id(); r < ranks; r += simt::block_size())
      block.count[r] = 0;
    if (simt::thread_id() == 0) block.someone_goes_on = 0;
    simt::sync_block();
    if (goes_on) simt::shared_store(block.someone_goes_on, 1);
    const std::uint32_t before = away ? simt::shared_add(block.count[to], 1) : 0;
    simt::sync_block();
    if (simt::shared_load(block.someone_goes_on) == 0) return nobody;
    GROSR_NO_UNROLL
    for (std::uint32_t r = simt::thread_id(); r < ranks; r += simt::block_size())
      if (block.count[r] != 0)
        block.first[r] =
            simt::global_ref<std::uint32_t>(filled[r]).fetch_add(block.count[r], simt::relaxed);
    simt::sync_block();
    return away ? block.first[to] + before : 0;
  }
};

}  // namespace grosr::coprocessor
