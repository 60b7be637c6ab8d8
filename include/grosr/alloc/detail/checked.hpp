// What a checked heap keeps with each block, and what it found.
//
//   a block's slot   ┌─────────────┬────────────────┬─────────────────────┐
//                    │ asked bytes │ canary, 16 to  │ record: bytes,      │
//                    │             │ 32 bytes of it │ owners, stamp       │
//                    └─────────────┴────────────────┴─────────────────────┘
#pragma once

#include <cstdint>

#include "grosr/simt/atomic.hpp"

namespace grosr::alloc {

/// What can be wrong with a block.
enum class fault : std::uint32_t { double_free, foreign_free, written_past_end, leak };

/// The last 16 bytes of a slot. A block that is live is stamped with its address, one that was
/// freed with the complement.
struct alignas(16) block_record {
  std::uint64_t bytes;     ///< asked for
  std::uint16_t owner;     ///< who got it
  std::uint16_t freed_by;  ///< who freed it
  std::uint32_t stamp;
};

/// One thing found; `serial` is its number + 1 once the rest is there.
struct fault_record {
  std::uint64_t address, bytes;
  std::uint32_t kind, size_class;
  std::uint16_t owner, freed_by, by;
  std::uint32_t serial;
};

inline constexpr std::uint32_t faults_kept = 256;

struct fault_list {
  std::uint32_t count;  ///< all, also those not kept
  fault_record records[faults_kept];
};

namespace checked {
inline constexpr std::uint32_t canary_least = 16, canary_most = 32;
inline constexpr std::uint32_t extra_bytes = canary_least + sizeof(block_record);
inline constexpr unsigned char canary = 0xc5;

GROSR_DEVICE inline std::uint32_t live_stamp(const void* p) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(p) >> 4) ^ 0x9b1a7d3eu;
}

GROSR_DEVICE inline block_record& record_of(void* p, std::size_t slot_bytes) {
  return *reinterpret_cast<block_record*>(static_cast<unsigned char*>(p) + slot_bytes -
                                          sizeof(block_record));
}

GROSR_DEVICE inline std::size_t canary_bytes(std::size_t bytes, std::size_t slot_bytes) {
  std::size_t room = slot_bytes - sizeof(block_record) - bytes;
  return room < canary_most ? room : canary_most;
}

/// What was asked for, or what there is room for if the record was written over.
GROSR_DEVICE inline std::size_t bytes_of(void* p, std::size_t slot_bytes) {
  std::size_t bytes = record_of(p, slot_bytes).bytes, room = slot_bytes - extra_bytes;
  return bytes != 0 && bytes < room ? bytes : room;
}

/// Marks a new block.
GROSR_DEVICE inline void mark(void* p, std::size_t bytes, std::size_t slot_bytes,
                              std::uint32_t owner) {
  auto* end = static_cast<unsigned char*>(p) + bytes;
  for (std::size_t i = 0; i < canary_bytes(bytes, slot_bytes); ++i) end[i] = canary;
  block_record& r = record_of(p, slot_bytes);
  r.bytes = bytes;
  r.owner = static_cast<std::uint16_t>(owner);
  r.freed_by = 0;
  simt::atomic_ref<std::uint32_t>(r.stamp).store(live_stamp(p), simt::relaxed);
}

/// Whether the canary behind a live block is whole.
GROSR_DEVICE inline bool whole(void* p, std::size_t bytes, std::size_t slot_bytes) {
  if (bytes > slot_bytes - extra_bytes) return false;
  auto* end = static_cast<volatile unsigned char*>(p) + bytes;
  for (std::size_t i = 0; i < canary_bytes(bytes, slot_bytes); ++i)
    if (end[i] != canary) return false;
  return true;
}

GROSR_DEVICE GROSR_NOINLINE inline void report(fault_list* list, fault kind, const void* p,
                                               std::uint32_t size_class, const block_record* r,
                                               std::uint32_t by) {
  std::uint32_t i = simt::atomic_ref<std::uint32_t>(list->count).fetch_add(1, simt::relaxed);
  if (i >= faults_kept) return;
  fault_record& f = list->records[i];
  f.address = reinterpret_cast<std::uint64_t>(p);
  f.bytes = r != nullptr ? r->bytes : 0;
  f.owner = r != nullptr ? r->owner : std::uint16_t{0};
  f.freed_by = r != nullptr ? r->freed_by : std::uint16_t{0};
  f.by = static_cast<std::uint16_t>(by);
  f.kind = static_cast<std::uint32_t>(kind);
  f.size_class = size_class;
  simt::atomic_ref<std::uint32_t>(f.serial).store(i + 1, simt::release);
}
}  // namespace checked

}  // namespace grosr::alloc
