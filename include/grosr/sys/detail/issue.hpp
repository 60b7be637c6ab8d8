// One call's way to the server and back, for lanes: slot, record, reply.
#pragma once

#include "grosr/simt/wait.hpp"
#include "grosr/sys/detail/layout.hpp"

namespace grosr::sys {

inline constexpr std::uint32_t no_place = 0xffffffffu;
inline constexpr std::uint32_t single_homes = 4;     ///< warps whose single slots are in one word
inline constexpr std::uint32_t no_slot = 0xffffffu;  ///< a record's slot has 24 bits

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
GROSR_DEVICE inline std::uint32_t claim_each(const view& v, const queue::slot_bitmap_ref& places,
                                             std::uint32_t mask) {
  const unsigned lane = simt::lane_id();
  const std::uint32_t home = home_word(v, places.words());
  for (std::uint32_t rest = mask;;) {
    const unsigned leader = simt::lowest_bit(rest), wanted = simt::popcount(rest);
    queue::slot_bitmap_ref::claimed c;
    if (lane == leader) c = places.claim(home, wanted);
    c.word = simt::shuffle(rest, c.word, leader);
    c.bits = simt::shuffle(rest, c.bits, leader);
    const unsigned rank = simt::rank_in(rest, lane), got = simt::popcount(c.bits);
    if (got == 0) return no_place;
    if (rank < got) return c.nth(rank);
    rest &= ~simt::lowest_bits(rest, got);
  }
}

/// Waits until there is room for the record of ticket `last`. Lanes of `mask` together.
GROSR_DEVICE GROSR_NOINLINE inline void await_room(const view& v, const queue::call_ring_ref& ring,
                                                   std::uint32_t mask, std::uint64_t last) {
  if (simt::lane_id() == simt::lowest_bit(mask) && !ring.has_room(last)) {
    v.doorbell.ring();
    simt::wait_until([&] { return ring.has_room(last); }, simt::forever, nullptr,
                     "room for a system call");
  }
  simt::sync_warp(mask);
}

/// Tickets and slots for the calls of some lanes, as their leader got them.
struct reserved {
  std::uint64_t first = 0, known = 0;
  queue::slot_bitmap_ref::claimed slots;
  bool taken = true;  ///< tickets
};

/// What is done with a call that is not awaited when it has its slot: nothing.
struct not_awaited {
  static constexpr bool awaited = false;
  GROSR_DEVICE void operator()(const pending&) const {}
};

/// One lane reserves for `count` calls. With `attempt` as many tickets as slots, if there is room;
/// else `count` tickets, and perhaps fewer slots.
template <bool Awaited>
GROSR_DEVICE reserved reserve(const view& v, const queue::call_ring_ref& ring, unsigned count,
                              bool attempt) {
  reserved r;
  const queue::slot_bitmap_ref& slots = Awaited ? v.awaited_slots : v.slots;
  // All three are under way at once.
  if (!attempt) r.first = ring.take(count);
  r.known = ring.known_credit();
  const std::uint32_t home = home_word(v, slots.words());
  // Single slots of neighbouring warps lie side by side, so that the server writes fewer lines.
  if (count == 1)
    r.slots = slots.claim_one(home / single_homes * single_homes, home % single_homes);
  if (r.slots.bits == 0) r.slots = slots.claim(home, count);
  if (attempt) {
    r.taken = r.slots.bits != 0 && ring.try_take(simt::popcount(r.slots.bits), r.first);
    if (!r.taken && r.slots.bits != 0) {
      slots.free(r.slots.word, r.slots.bits);
      r.slots.bits = 0;
    }
  }
  return r;
}

template <class Claimed>
GROSR_DEVICE std::uint32_t first_slot(const view& v) {
  return Claimed::awaited ? v.first_awaited : 0;
}

/// The calls of one SM go through one shard.
GROSR_DEVICE inline std::uint32_t shard_here(const view& v) {
  return simt::sm_id() & (v.shard_count - 1);
}

/// A ticket is there, and no slot: a record that says nothing, because others' come behind it.
GROSR_DEVICE inline void say_nothing(call_record& r) {
  r.slot = no_slot;
  r.number = call_nothing;
  r.flags = 0;
  r.target = {};
}

/// Each lane of `mask` writes its record, the slot filled in; they call together, and each learns
/// for itself whether there was a slot: the lowest ones have it, and those that have none learn
/// which lanes have none. With `attempt` there must be room for all of them as well. `claimed`: is
/// called with the slot before the record is written.
template <class Claimed>
GROSR_DEVICE inline bool try_issue(const view& v, std::uint32_t mask, bool attempt, call_record& r,
                                   pending& p, std::uint32_t& without, const Claimed& claimed) {
  const unsigned lane = simt::lane_id(), leader = simt::lowest_bit(mask);
  const unsigned rank = simt::rank_in(mask, lane);
  const std::uint32_t shard = simt::shuffle(mask, shard_here(v), leader);
  const queue::call_ring_ref ring = v.shards[shard];
  reserved got;
  if (lane == leader) got = reserve<Claimed::awaited>(v, ring, simt::popcount(mask), attempt);
  got.first = simt::shuffle(mask, got.first, leader);
  got.known = simt::shuffle(mask, got.known, leader);
  got.slots.word = simt::shuffle(mask, got.slots.word, leader);
  got.slots.bits = simt::shuffle(mask, got.slots.bits, leader);
  const bool has_slot = rank < simt::popcount(got.slots.bits);
  if (!has_slot) without = mask & ~simt::lowest_bits(mask, simt::popcount(got.slots.bits));
  if (attempt) {
    mask = simt::ballot(mask, has_slot);
    if (!has_slot) return false;
  }
  if (has_slot) {
    p.slot = r.slot = first_slot<Claimed>(v) + got.slots.nth(rank);
    p.serial = serial_of(got.first + rank, shard, v.shard_shift);
    claimed(p);
  } else {
    say_nothing(r);
  }
  const std::uint64_t last = got.first + simt::popcount(mask) - 1;
  // All of them wait or none: what each would find across the bus may differ.
  if (!ring.knows_room(last, got.known)) [[unlikely]]
    await_room(v, ring, mask, last);
  ring.write_all(mask, got.first, r.pack());
  return has_slot;
}

/// Lanes of `mask` write one record together: what their leader, the lowest, has. `able`, of the
/// leader: whether it is to be written at all. Whether it was; `p` then is the same in all of them.
/// `claimed`: the leader calls it with the slot before the record is written.
template <class Claimed>
GROSR_DEVICE inline bool try_issue_one(const view& v, std::uint32_t mask, bool attempt, bool able,
                                       call_record& r, pending& p, const Claimed& claimed) {
  const unsigned leader = simt::lowest_bit(mask);
  const bool leads = simt::lane_id() == leader;
  const std::uint32_t shard = simt::shuffle(mask, shard_here(v), leader);
  const queue::call_ring_ref ring = v.shards[shard];
  reserved got;
  got.taken = false;
  if (leads && able) {
    got = reserve<Claimed::awaited>(v, ring, 1, attempt);
    if (got.slots.bits != 0)
      p.slot = r.slot = first_slot<Claimed>(v) + got.slots.first();
    else
      say_nothing(r);
    if (got.taken && !ring.has_room(got.first, got.known)) [[unlikely]]
      await_room(v, ring, 1u << leader, got.first);
  }
  p.slot = simt::shuffle(mask, p.slot, leader);
  got.first = simt::shuffle(mask, got.first, leader);
  p.serial = serial_of(got.first, shard, v.shard_shift);
  if (simt::shuffle(mask, got.taken ? 1u : 0u, leader) == 0) return false;
  if (leads && p.slot != no_place) claimed(p);
  ring.write_together(mask, leader, got.first, r.pack());
  return p.slot != no_place;
}

/// Whether this is the call's reply.
GROSR_DEVICE inline bool is_reply(const pending& p, const simt::bus_word& w) {
  return w.w[3] == static_cast<std::uint32_t>(p.serial) &&
         w.w[2] == static_cast<std::uint32_t>(p.serial >> 32);
}
GROSR_DEVICE inline long result_in(const simt::bus_word& w) {
  return static_cast<long>(w.w[0] | std::uint64_t{w.w[1]} << 32);
}

/// Whether the reply has come; any lanes. Bytes that the server wrote before are visible then to
/// loads past the caches (bus_load), and to others after a fence.
GROSR_DEVICE inline bool has_reply(const view& v, const pending& p, long& result) {
  const simt::bus_word w = simt::bus_load(v.replies + p.slot);  // A2: pairs with R2 in reply()
  result = result_in(w);
  return is_reply(p, w);
}

/// Waits for the reply. Any lanes.
GROSR_DEVICE inline long await_reply(const view& v, const pending& p) {
  // A look across the bus takes a microsecond on a GPU, and a record half of that on its way there.
  // So the first look is not made at once, and at first two are under way. With thousands of warps
  // that wait the bus has no room for more looks, hence pauses then.
  constexpr unsigned eager = 3, first_ns = 300, apart_ns = 300;
  const simt::bus_word* at = v.replies + p.slot;
  simt::space_looks(first_ns);
  simt::bus_word older = simt::bus_load(at);  // A2: pairs with R2 in reply()
  v.doorbell.ring();
  simt::space_looks(apart_ns);
  for (unsigned turn = 0; turn < eager; ++turn) {
    const simt::bus_word newer = simt::bus_load(at);
    if (is_reply(p, older)) return result_in(older);
    older = newer;
    simt::pause_if_host(turn, "the reply to a system call");
  }
  if (is_reply(p, older)) return result_in(older);
  long result = 0;
  for (unsigned turn = 0; !has_reply(v, p, result); ++turn) {
    if (turn % 16 == 0) v.doorbell.ring();
    simt::pause(turn + 3, "the reply to a system call");
  }
  return result;
}

/// One lane gives its slot back: what it read of the reply it has read.
GROSR_DEVICE inline void free_slot(const view& v, const pending& p) { v.slots.free(p.slot); }

}  // namespace grosr::sys
