// What system calls keep where: records, replies, slots and chunks, and the `view` through which a
// kernel reaches them. docs/internals/system-calls.md draws the picture.
#pragma once

#include <cerrno>
#include <cstdint>

#include "grosr/queue/call_ring.hpp"
#include "grosr/queue/completion.hpp"
#include "grosr/queue/slot_bitmap.hpp"
#include "grosr/simt/doorbell.hpp"
#include "grosr/sys/numbers.hpp"

namespace grosr::sys {

/// Flags of a record.
inline constexpr std::uint8_t flag_wrapped = 1;  ///< a wrapper made it, and placed its bytes
inline constexpr std::uint8_t flag_awaited = 2;  ///< its reply is a completion, for `target`

/// A call, as the caller writes it and the server reads it.
///
///   bus word i    argument i (8) │ half of argument 4 or 5 (4) │ header (3) │ lap (1)
///   header        word 0: number (16 bits), flags (8); word 1: slot; words 2, 3: target
struct call_record {
  std::uint64_t argument[max_arguments];
  std::uint32_t slot;
  call_number number;
  std::uint8_t flags;
  queue::completion_target target;

  GROSR_DEVICE queue::record pack() const {
    queue::record r;
    for (unsigned i = 0; i < 4; ++i) {
      r.word[3 * i] = static_cast<std::uint32_t>(argument[i]);
      r.word[3 * i + 1] = static_cast<std::uint32_t>(argument[i] >> 32);
      r.word[3 * i + 2] = static_cast<std::uint32_t>(argument[4 + i / 2] >> (i % 2 * 32));
    }
    constexpr unsigned bits = 24;  // of a part
    r.part[0] = number | std::uint32_t{flags} << 16;
    r.part[1] = slot;
    r.part[2] = static_cast<std::uint32_t>(target.bits) & ((1u << bits) - 1);
    r.part[3] = static_cast<std::uint32_t>(target.bits >> bits);
    return r;
  }

  static call_record unpack(const queue::record& r) {
    call_record c;
    for (unsigned i = 0; i < 4; ++i)
      c.argument[i] = r.word[3 * i] | std::uint64_t{r.word[3 * i + 1]} << 32;
    c.argument[4] = r.word[2] | std::uint64_t{r.word[5]} << 32;
    c.argument[5] = r.word[8] | std::uint64_t{r.word[11]} << 32;
    c.number = number_of(r);
    c.flags = flags_of(r);
    c.slot = slot_of(r);
    c.target = {r.part[2] | std::uint64_t{r.part[3]} << 24};
    return c;
  }
  static call_number number_of(const queue::record& r) {
    return static_cast<call_number>(r.part[0]);
  }
  static std::uint8_t flags_of(const queue::record& r) {
    return static_cast<std::uint8_t>(r.part[0] >> 16);
  }
  static std::uint32_t slot_of(const queue::record& r) { return r.part[1]; }
};

/// Chunks of the arena: three sizes. A chunk has some bytes more, so that its content may begin
/// where the other end of a copy does within 16 bytes.
inline constexpr unsigned chunk_sizes = 3;
inline constexpr std::uint32_t chunk_slack = 512;
GROSR_DEVICE constexpr std::uint32_t chunk_bytes(unsigned size) {
  return size == 0 ? 256u : size == 1 ? 4096u : 65536u;
}
GROSR_DEVICE constexpr std::uint32_t chunk_stride(unsigned size) {
  return size == 0 ? chunk_bytes(0) + 16 : chunk_bytes(size) + chunk_slack;
}
/// What one call moves at most; more goes in pieces.
inline constexpr std::uint32_t piece_bytes = chunk_bytes(chunk_sizes - 1);

/// The most that is carried of a socket's name and of an option's value: no name is longer.
inline constexpr std::uint32_t name_bytes = 128, option_bytes = 1024;

/// Host memory that calls may use in place: [begin, end).
struct shared_range {
  std::uint64_t begin, end;
};
inline constexpr unsigned max_shared_ranges = 16;

struct shared_ranges {
  std::uint32_t count;
  shared_range at[max_shared_ranges];
};

/// A call whose caller has gone on, detached or awaited: what to expect where its reply comes, and
/// the chunk that it holds, 4 times its number plus its size, or all ones.
struct detached_call {
  std::uint64_t serial;
  std::uint32_t chunk;
};

/// Bytes of an awaited call that come back: where they go, by the chunk that they come in.
struct awaited_part {
  void* at;
  std::uint32_t bytes;   ///< 0: nothing
  std::uint32_t offset;  ///< in the chunk; and, above 2^30, whether as many as the result says
  static constexpr std::uint32_t by_result = 1u << 30;
};
inline constexpr unsigned most_awaited_parts = 3;
struct awaited_chunk {
  awaited_part part[most_awaited_parts];
};

/// Everything a kernel needs to call; lies in device memory.
struct alignas(128) view {
  const queue::call_ring_ref* shards;  ///< device memory
  queue::slot_bitmap_ref slots;
  queue::slot_bitmap_ref awaited_slots;  ///< the slots from first_awaited on
  queue::slot_bitmap_ref chunks[chunk_sizes];
  queue::slot_bitmap_ref awaited_chunks[chunk_sizes];  ///< those that awaited calls may hold
  unsigned char* arena[chunk_sizes];                   ///< pinned
  const simt::bus_word* replies;                       ///< pinned
  std::uint32_t* detached;              ///< device memory: a word beside each word of slots
  detached_call* detached_calls;        ///< device memory, by slot
  awaited_chunk* awaited[chunk_sizes];  ///< device memory, by chunk
  const shared_ranges* shared;          ///< device memory
  simt::doorbell_ref doorbell;
  std::uint64_t patience_ns;
  std::uint32_t shard_count, shard_shift;  ///< a power of two, and its logarithm
  std::uint32_t warps_per_sm;
  std::uint32_t first_awaited;
  std::uint32_t host_sees_all;  ///< the device's memory is the host's: nothing is copied
};

/// What a reply carries besides the result: tells the call that it is for from all others.
GROSR_DEVICE inline std::uint64_t serial_of(std::uint64_t ticket, std::uint32_t shard,
                                            std::uint32_t shift) {
  // Tickets begin at 0, and so would the serial of the first call: what memory holds that nobody
  // has written.
  return (ticket + 1) << shift | shard;
}

}  // namespace grosr::sys
