// What tasks of a world's ranks are made of.
#pragma once

#include "grosr/net/world.hpp"

namespace grosr::ranks {

/// What lanes share and change.
template <class T>
GROSR_DEVICE simt::atomic_ref<T> shared(T& word) {
  return simt::atomic_ref<T>(word);
}

/// An array of which tasks have the number alone: that says where the part of their rank lies.
struct numbered_words : net::array_ref<std::uint64_t> {
  GROSR_DEVICE explicit numbered_words(std::uint32_t number) {
    number_ = static_cast<std::uint16_t>(number);
  }
};

/// A warp's share of a list of its rank: 32 in a row for each `stride` warps, from the 32 of
/// number `first` on.
struct warp_share {
  std::uint32_t first, stride;
  GROSR_DEVICE void each(const auto& context, std::uint64_t count, const auto& visit) const {
    GROSR_NO_UNROLL
    for (std::uint64_t i = std::uint64_t{first} * context.size() + context.rank(); i < count;
         i += std::uint64_t{stride} * context.size())
      simt::stay_together([&] { visit(static_cast<std::uint32_t>(i)); });
  }
};

}  // namespace grosr::ranks
