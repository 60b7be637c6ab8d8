// The work that is done on each datagram: the sum of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::echo {

/// What thread `rank` of `size` adds to the sum of `bytes` bytes at `text`, which is aligned to 4.
GROSR_DEVICE inline std::uint64_t sum_of_bytes(const unsigned char* text, std::size_t bytes,
                                               unsigned rank, unsigned size) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(text);
  std::uint64_t sum = 0;
  for (std::size_t i = rank; i < bytes / 4; i += size) {
    const std::uint32_t pairs = (words[i] & 0x00ff00ff) + (words[i] >> 8 & 0x00ff00ff);
    sum += (pairs & 0xffff) + (pairs >> 16);
  }
  for (std::size_t i = bytes / 4 * 4 + rank; i < bytes; i += size) sum += text[i];
  return sum;
}

}  // namespace grosr::echo
