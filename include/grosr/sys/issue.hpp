// One call's way to the server and back, for lanes: slot, record, reply.
#pragma once

#include "grosr/simt/wait.hpp"
#include "grosr/sys/layout.hpp"

namespace grosr::sys {

inline constexpr std::uint32_t no_place = 0xffffffffu;

/// A call that was written and whose reply has not been taken.
struct pending {
  std::uint64_t serial = 0;
  std::uint32_t slot = no_place;
};

/// Where the calling warp looks first for places in `words` words.
GROSR_DEVICE inline std::uint32_t home_word(const view& v, std::uint32_t words) {
  return (simt::sm_id() * v.warps_per_sm + simt::warp_slot()) % words;
}

/// Each lane of `mask` gets a place, or no_place when there is none for it. They call together.
GROSR_DEVICE inline std::uint32_t claim_each(const view& v, const queue::places_ref& places,
                                             std::uint32_t mask) {
  const unsigned lane = simt::lane_id();
  const std::uint32_t home = home_word(v, places.words());
  for (std::uint32_t rest = mask;;) {
    const unsigned leader = simt::lowest_bit(rest), wanted = simt::popcount(rest);
    queue::places_ref::claimed c;
    if (lane == leader) c = places.claim(home, wanted);
    c.word = simt::shuffle(rest, c.word, leader);
    c.bits = simt::shuffle(rest, c.bits, leader);
    const unsigned rank = simt::rank_in(rest, lane), got = simt::popcount(c.bits);
    if (got == 0) return no_place;
    if (rank < got) return c.nth(rank);
    rest &= ~simt::lowest_bits(rest, got);
  }
}

/// Each lane of `mask` writes its record, the slot filled in; they call together, and each learns
/// for itself whether there was a slot. With `attempt` there must be room for all of them as well.
GROSR_DEVICE inline bool try_issue(const view& v, std::uint32_t mask, bool attempt, call_record& r,
                                   pending& p) {
  const unsigned lane = simt::lane_id();
  p.slot = claim_each(v, v.slots, mask);
  mask = simt::ballot(mask, p.slot != no_place);
  if (p.slot == no_place) return false;
  r.slot = p.slot;

  const unsigned leader = simt::lowest_bit(mask), count = simt::popcount(mask);
  const std::uint32_t shard =
      simt::shuffle(mask, simt::sm_id() & (v.shard_count - 1), leader);  // warps can be moved
  const queue::egress_ref ring = v.shards[shard];
  std::uint64_t first = 0;
  std::uint32_t taken = 1;
  if (lane == leader) {
    if (attempt)
      taken = ring.try_take(count, first) ? 1 : 0;
    else
      first = ring.take(count);
  }
  first = simt::shuffle(mask, first, leader);
  if (attempt && simt::shuffle(mask, taken, leader) == 0) {
    v.slots.free(p.slot);
    p.slot = no_place;
    return false;
  }
  const std::uint64_t ticket = first + simt::rank_in(mask, lane);
  p.serial = serial_of(ticket, shard, v.shard_shift);
  // Who has a ticket writes its record, however long there is no room: others' come behind it.
  if (simt::any(mask, !ring.has_room(first + count - 1))) [[unlikely]] {
    v.bell.ring();
    simt::wait_until([&] { return ring.has_room(ticket); }, simt::forever, nullptr,
                     "room for a system call");
    simt::sync_warp(mask);
  }
  if (mask == simt::full_mask)
    ring.write_all(first, r.pack());
  else
    ring.write(ticket, r.pack());
  if (lane == leader) v.bell.ring();
  return true;
}

/// Whether the reply has come; any lanes. Bytes that the server wrote before are visible then to
/// loads past the caches (bus_load), and to others after a fence.
GROSR_DEVICE inline bool has_reply(const view& v, const pending& p, long& result) {
  const simt::bus_word w = simt::bus_load(v.replies + p.slot);  // A2: pairs with R2 in reply()
  if (w.w[3] != static_cast<std::uint32_t>(p.serial) ||
      w.w[2] != static_cast<std::uint32_t>(p.serial >> 32))
    return false;
  result = static_cast<long>(w.w[0] | std::uint64_t{w.w[1]} << 32);
  return true;
}

/// Waits for the reply. Any lanes.
GROSR_DEVICE inline long await_reply(const view& v, const pending& p) {
  long result = 0;
  for (unsigned turn = 0; !has_reply(v, p, result); ++turn) {
    // A look across the bus takes a microsecond on a GPU: pauses begin when a call takes long.
    if (turn % 16 == 15) v.bell.ring();
    if (turn < 32)
      simt::pause_if_host(turn, "the reply to a system call");
    else
      simt::pause(turn / 32, "the reply to a system call");
  }
  return result;
}

/// One lane gives its slot back: what it read of the reply it has read.
GROSR_DEVICE inline void free_slot(const view& v, const pending& p) { v.slots.free(p.slot); }

}  // namespace grosr::sys
