// What the completion of an awaited call does on the device: its bytes go where they belong, and
// what it held is free.
#pragma once

#include "grosr/sys/detail/operation.hpp"

namespace grosr::sys {

/// A whole warp: takes the bytes of a call that has ended, and frees its slot and chunk.
GROSR_DEVICE inline void finish_awaited(const queue::completion& c) {
  const view& v = *static_cast<const view*>(c.source);
  simt::fence<simt::scope::system>(simt::acquire);  // A5: pairs with R5, by way of the host
  const std::uint32_t held = v.detached_calls[c.number].chunk;
  const unsigned size = held % 4;
  const std::uint32_t chunk = held / 4;
  if (held != no_place) {
    const unsigned char* const from = v.arena[size] + std::size_t{chunk} * chunk_stride(size);
    const awaited_chunk& left = v.awaited[size][chunk];
    for (unsigned i = 0; i < most_awaited_parts; ++i) {
      const awaited_part p = left.part[i];
      std::size_t bytes = c.result < 0 ? 0 : p.bytes;
      if ((p.offset & awaited_part::by_result) != 0 && bytes > static_cast<std::uint64_t>(c.result))
        bytes = static_cast<std::size_t>(c.result);
      if (bytes != 0)
        copy_part<true>(simt::lane_id(), simt::warp_size, static_cast<unsigned char*>(p.at),
                        from + (p.offset & ~awaited_part::by_result), bytes);
    }
  }
  simt::sync_warp();  // all has been read, and written, before another call has the chunk
  if (simt::lane_id() != 0) return;
  if (held != no_place) v.chunks[size].free(chunk);
  v.awaited_slots.free(c.number - v.first_awaited);
}

}  // namespace grosr::sys
