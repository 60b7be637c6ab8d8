// Packets: what crosses the bus from the host to a device.
//
//   packet 128 bytes = 8 bus words of 16 bytes; each has 3 words of content and its lap
//   ring   packet n lies at n mod capacity and carries lap n div capacity + 1
//
// A reader that expects packet n takes it when all 8 words carry its lap. Memory starts zeroed and
// laps start at 1, so nobody ever clears a packet, and no doorbell is needed. A word is loaded and
// stored in one piece of 16 bytes; words may arrive in any order. Laps repeat after 2^32 of them.
//
// A writer must know that the packet's last reader has finished (credit): that is the ring's
// owner's business (see submission_ring.hpp). What crosses the other way are the records of a call
// ring (call_ring.hpp), made likewise.
#pragma once

#include <cstdint>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"

namespace grosr::queue {

inline constexpr unsigned packet_words = 8;     // bus words in a packet
inline constexpr unsigned packet_content = 24;  // 32-bit words of content in a packet

/// The content of a packet: 96 bytes.
struct packet {
  std::uint32_t word[packet_content];
};

/// The lap that packet `number` of a ring carries: 1 and up.
GROSR_DEVICE inline std::uint32_t lap_of(std::uint64_t number, std::uint32_t capacity) {
  return static_cast<std::uint32_t>(number / capacity) + 1;
}

/// Writes a packet from one thread (host, or one lane).
GROSR_DEVICE inline void write_packet(simt::bus_word* at, const packet& content,
                                      std::uint32_t lap) {
  for (unsigned i = 0; i < packet_words; ++i)
    simt::bus_store(at + i,
                    {{content.word[3 * i], content.word[3 * i + 1], content.word[3 * i + 2], lap}});
}

/// Reads a packet from one thread: true when all words carry `lap`.
GROSR_DEVICE inline bool read_packet(const simt::bus_word* at, packet& content, std::uint32_t lap) {
  for (unsigned i = 0; i < packet_words; ++i) {
    simt::bus_word v = simt::bus_load(at + i);
    if (v.w[3] != lap) return false;
    for (unsigned j = 0; j < 3; ++j) content.word[3 * i + j] = v.w[j];
  }
  return true;
}

/// Content word `i` of a packet whose bus word k is held by lane `base + k`. Whole warp calls.
GROSR_DEVICE inline std::uint32_t packet_word(const simt::bus_word& mine, unsigned base,
                                              unsigned i) {
  std::uint32_t v = i % 3 == 0 ? mine.w[0] : i % 3 == 1 ? mine.w[1] : mine.w[2];
  return simt::shuffle(simt::full_mask, v, base + i / 3);
}

}  // namespace grosr::queue
