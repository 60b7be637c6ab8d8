// What a rank knows on its device: its links, and what it has of distributed arrays.
#pragma once

#include "grosr/net/detail/link.hpp"

namespace grosr::net {

/// A rank's part of a distributed array.
struct array_part {
  unsigned char* elements;
  std::uint64_t count;  ///< 0: there is none
  std::uint32_t element_bytes;
  std::uint32_t exceeds_cache;  ///< 1: this process's parts are larger than the device's L2
};
inline constexpr std::uint32_t most_arrays = 256;

/// A warp's buffers (aggregation.hpp): words in all, and for how many ranks at most.
inline constexpr std::uint32_t words_of_buffers = 256, most_buffers = 32;
/// Words of each of them in a world of so many ranks. 0: too many.
constexpr std::uint32_t buffer_words(std::uint32_t ranks) {
  if (ranks > most_buffers) return 0;
  return ranks > 16 ? 8 : ranks > 8 ? 16 : 32;
}

/// What was asked for that there is not: counted, and the first of them kept.
struct refusals {
  std::uint64_t count;
  std::uint64_t index;      ///< of the first, or the rank
  std::uint32_t array;      ///< of the first
  std::uint32_t operation;  ///< of the first, and refused_rank if its rank was wrong; 0: none
};
inline constexpr std::uint32_t refused_rank = 1u << 8;

/// What a rank tells the host of itself: pinned memory.
struct rank_report {
  std::uint64_t words_sent;
  std::uint64_t words_received;  ///< by other ranks of this process, of those
  std::uint64_t refused;
};

/// Device memory of a rank.
struct rank_state {
  std::uint32_t rank, ranks;
  std::uint64_t flush_ns;
  std::uint32_t reaches;       ///< 1: memory of other ranks, itself (link_sender::direct)
  std::uint32_t buffer_words;  ///< of each of a warp's buffers (aggregation.hpp); 0: it has none
  link_sender* out;            ///< of class c to rank r: c * ranks + r
  link_receiver* in;
  array_part* arrays;
  arrivals arrived[link_classes];
  alignas(128) std::uint32_t doorbell;  ///< the host rings it
  alignas(128) std::uint64_t deferred;  ///< messages that found no room, and became tasks
  refusals refused;

  GROSR_DEVICE link_out to(link_class c, std::uint32_t other) const {
    return link_out(simt::in_global_memory(out)[static_cast<std::uint32_t>(c) * ranks + other]);
  }
  GROSR_DEVICE link_sender& request_to(std::uint32_t other) const {
    return simt::in_global_memory(out)[other];
  }

  GROSR_DEVICE GROSR_NOINLINE void refuse(std::uint32_t operation, std::uint32_t array,
                                          std::uint64_t index) {
    std::uint32_t none = 0;
    if (simt::global_ref<std::uint32_t>(refused.operation)
            .compare_exchange(none, operation, simt::relaxed)) {
      refused.array = array;
      refused.index = index;
    }
    simt::global_ref<std::uint64_t>(refused.count).store_add(1, simt::relaxed);
  }
};

/// The state of the rank that a kernel's view leads to.
GROSR_DEVICE inline rank_state& state_of(const auto& view) {
  return *simt::in_global_memory(static_cast<rank_state*>(view.collected));
}

/// Does an operation to an element of this device, or of another one whose memory can be reached.
/// Any lane. How: simt::relaxed, or a policy.
template <simt::scope S, class T, class How>
GROSR_DEVICE void apply(element_operation what, T& element, T value, How how) {
  simt::global_ref<T, S> at(element);
  switch (what) {
    case element_operation::put:
      at.store(value, simt::relaxed);
      break;
    case element_operation::add:
      at.store_add(value, how);
      break;
    default:
      if constexpr (std::is_unsigned_v<T>) {
        if (what == element_operation::min) at.store_min(value, how);
        if (what == element_operation::max) at.store_max(value, how);
        if (what == element_operation::bit_and) at.store_and(value, how);
        if (what == element_operation::bit_or) at.store_or(value, how);
      }
  }
}

}  // namespace grosr::net
