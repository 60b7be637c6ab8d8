// How many entries of a map a rank has room for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "grosr/net/detail/map_part.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::net {

map_shape::map_shape(std::uint64_t capacity, std::uint32_t ranks, std::size_t entry_bytes) {
  constexpr std::uint64_t most_slots = 0xffff'ffff;
  const std::uint64_t share = capacity / ranks + (capacity % ranks != 0 ? 1 : 0);
  // How many of so many keys a rank has is distributed binomially; its variance is below its mean.
  const auto more = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(share)) * 6) + 8;
  room = std::clamp<std::uint64_t>(share + more, 1, std::max<std::uint64_t>(capacity, 1));
  const std::uint64_t wanted = room + room / 2 + 4;
  if (capacity > most_slots * ranks || wanted > most_slots)
    throw error(errc::invalid_option,
                fmt::format("map: {} entries were asked for on {} ranks; a rank has room for {}",
                            capacity, ranks, most_slots / 3 * 2 - 8));
  slots = static_cast<std::uint32_t>(wanted);
  words = (sizeof(map_header) + std::uint64_t{slots} * entry_bytes + 7) / 8;
}

}  // namespace grosr::net
