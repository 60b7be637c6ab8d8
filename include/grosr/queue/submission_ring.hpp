// Packets from the host into a device: one host-side producer lock, any warp of the device
// consumes.
//
//   host writes packets ──bus──> a polling warp sees up to 4 at once, or up to 32 where they come
//   in a stream; it takes the first ones for itself or not, and copies to the staging area what it
//   does not read at once; a polling lane copies one ──> a warp claims the oldest of those
//
//   word     claimed (32) │ held (1) │ last poll, 1024 ns units (17) │ waiting (14)   device memory
//            packets handed out; whether somebody polls; seen packets that nobody has claimed:
//            `seen` = claimed + waiting
//   staged   copies of seen packets; next[i]: the packet number that slot i takes next
//   credit   `seen`, written back to the host every quarter ring                      host memory
//
// Polling takes a lock and no thread of its own: the holder polls (leader and followers; Schmidt et
// al., "Leader/Followers", 2000). Device calls say whether a lane or the whole warp makes them.
#pragma once

#include <cstdint>

#include "grosr/queue/packet.hpp"
#include "grosr/queue/ring.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::queue {

struct submission_ring_control {
  alignas(128) std::uint64_t word;
};

/// What the poller knows while it holds the poll lock.
struct poll_lock {
  std::uint32_t seen;       ///< the packet that is due next; where a warp polls, every lane's
  std::uint32_t last_poll;  ///< the last poll's, as the control word has it; lane 0's then
};

/// Whole warp: what lane 0 got, in every lane.
GROSR_DEVICE inline bool share_lock(bool got, poll_lock& lock) {
  lock.seen = simt::shuffle(simt::full_mask, lock.seen, 0);
  lock.last_poll = simt::shuffle(simt::full_mask, lock.last_poll, 0);
  return simt::shuffle(simt::full_mask, got ? 1u : 0u, 0) != 0;
}

/// Packets that a poll sees with one load of each lane, and that it can see at all: a packet for
/// each lane of the warp that takes them.
inline constexpr unsigned poll_window = simt::warp_size / packet_words;
inline constexpr unsigned poll_depth = simt::warp_size;

/// A packet in the registers of a warp: lane k holds bus word k.
struct held_packet {
  simt::bus_word mine;

  /// Content word i, in every lane.
  GROSR_DEVICE std::uint32_t word(unsigned i) const { return packet_word(mine, 0, i); }
};

/// How old the last poll of a ring is to be before another one: once a packet has come there, and
/// before. A look across the bus takes of what the host writes to other rings.
struct poll_age {
  std::uint32_t used_ns, unused_ns;
};

/// The device's view of a submission ring; passed by value.
class submission_ring_ref {
 public:
  submission_ring_ref() = default;

  /// Whether a seen packet waits to be claimed. Any lane.
  GROSR_DEVICE bool waiting() const { return waiting_in(word().load(simt::relaxed)) != 0; }

  /// Whether nobody polls, and nobody did for so long. Any lane.
  GROSR_DEVICE bool overdue(poll_age stale) const { return overdue(load_state(), stale); }
  /// The same in two parts: other loads can be under way between them.
  GROSR_DEVICE std::uint64_t load_state() const { return word().load(simt::relaxed); }
  GROSR_DEVICE static bool overdue(std::uint64_t state, poll_age stale) {
    return free_since(state, stale);
  }

  /// One lane tries to become the poller: succeeds when nobody is, and the last poll is at least so
  /// old. Where it fails, `lock` tells what was seen all the same.
  GROSR_DEVICE bool try_lock(poll_age stale, poll_lock& lock) const {
    std::uint64_t w = word().load(simt::relaxed);
    lock = {seen_in(w), last_poll_in(w)};
    if (!free_since(w, stale)) return false;
    // A2: pairs with R2 in unlock() and accept_one().
    return word().compare_exchange(w, w | held, simt::acquire);
  }

  /// One lane becomes the poller again, unless somebody else has looked meanwhile or more packets
  /// came: `lock` is what accept() or unlock() left.
  GROSR_DEVICE bool try_relock(const poll_lock& lock) const {
    std::uint64_t w = pack(lock.seen, lock.last_poll);
    return word().compare_exchange(w, w | held, simt::acquire);
  }

  /// One lane unlocks the ring.
  GROSR_DEVICE void unlock(poll_lock& lock) const {
    std::uint32_t now = poll_time() & poll_time_mask;
    word().fetch_add(changed_last_poll(lock.last_poll, now) - held,
                     simt::release);  // R2: pairs with A1, A2
    lock.last_poll = now;
  }

  /// What one look across the bus gives a lane.
  template <unsigned Parts = 1>
  struct polled {
    simt::bus_word mine[Parts];  ///< part j: word lane % 8 of packet `seen` + 4 j + lane / 8
    std::uint32_t next;          ///< the packet that the place of packet `seen` + lane in the
                                 ///< staging area waits for
    std::uint64_t word;          ///< the control word, at some moment before
    std::uint32_t time;          ///< about when it was
  };
  /// What is there of that.
  struct found {
    unsigned packets;  ///< new ones
    unsigned alike;    ///< the first of them whose content begins with the same word
  };

  /// One lane, the poller: whether the next packet has begun to come. A look across the bus.
  GROSR_DEVICE bool begins(const poll_lock& lock) const {
    const std::size_t i = lock.seen & mask_;
    return simt::bus_load(packets_ + i * packet_words).w[3] == lap_of(lock.seen, mask_ + 1);
  }

  /// The poller's whole warp loads what stands where the next packets are due: `window` of them,
  /// at most poll_window, or poll_depth where there are 8 parts. Fewer are there sooner. All loads
  /// are under way together, and others may follow before look_at() waits for them.
  template <unsigned Parts = 1>
  GROSR_DEVICE polled<Parts> poll(const poll_lock& lock, unsigned window = poll_window) const {
    const unsigned lane = simt::lane_id();
    polled<Parts> k{};
    if (Parts != 1 || lane < window * packet_words)
      for (unsigned j = 0; j < Parts; ++j) {
        const std::uint32_t i = (lock.seen + j * poll_window + lane / packet_words) & mask_;
        k.mine[j] = simt::bus_load(packets_ + std::size_t{i} * packet_words + lane % packet_words);
      }
    // A ring may have fewer places.
    if (lane < (Parts != 1 ? Parts * poll_window : window) && lane <= mask_)
      k.next =
          simt::atomic_ref<std::uint32_t>(next_[(lock.seen + lane) & mask_]).load(simt::relaxed);
    else
      k.next = lock.seen - 1;
    k.word = word().load(simt::relaxed);
    k.time = poll_time();
    return k;
  }

  /// What poll() found. Whole warp.
  template <unsigned Parts>
  GROSR_DEVICE found look_at(const poll_lock& lock, const polled<Parts>& k) const {
    const unsigned lane = simt::lane_id();
    const std::uint32_t taken = ~simt::ballot(simt::full_mask, k.next == lock.seen + lane);
    const unsigned free = taken == 0 ? poll_depth : simt::lowest_bit(taken);
    const std::uint32_t first = simt::shuffle(simt::full_mask, k.mine[0].w[0], 0);
    found f{0, 0};
    bool all_alike = true;
    for (unsigned j = 0; j < Parts; ++j) {
      if (f.packets != j * poll_window) continue;
      const std::uint32_t number = lock.seen + j * poll_window + lane / packet_words;
      const std::uint32_t votes =
          simt::ballot(simt::full_mask, k.mine[j].w[3] == lap_of(number, mask_ + 1));
      const std::uint32_t same = simt::ballot(simt::full_mask, k.mine[j].w[0] == first);
      // A group of 8 lanes is all ones; the lowest group that is not ends the count.
      std::uint32_t all = votes & votes >> 1;
      all &= all >> 2;
      all &= all >> 4;
      f.packets += groups_before(~all);
      if (all_alike) f.alike += groups_before(~(all & same));
      all_alike = f.alike == f.packets;
    }
    if (f.packets > free) f.packets = free;
    if (f.alike > free) f.alike = free;
    return f;
  }

  /// Whether no older packet waits: then the poller may take the next packet before others can see
  /// it. Whole warp; stays true while the poll lock is held.
  template <unsigned Parts>
  GROSR_DEVICE bool first_is_free(const polled<Parts>& k) const {
    return simt::shuffle(simt::full_mask, waiting_in(k.word), 0) == 0;
  }

  /// The poller's warp takes in `count` packets, the first `take` of them for itself, and lets
  /// claimers have the others; unlocks the ring unless `keep`. All are copied to the staging area,
  /// but for the one when `take` is 1. `back_soon`: the next poll is this warp's if it comes within
  /// 4 us or so; else it looks overdue at once. `counted`: the warp was active before poll(), so
  /// nobody needs to be shown that first.
  template <unsigned Parts>
  GROSR_DEVICE void accept(poll_lock& lock, unsigned count, unsigned take, bool keep,
                           bool back_soon, bool counted, const polled<Parts>& k) const {
    const unsigned lane = simt::lane_id();
    const bool keeps_first = take == 1, copies = count > (keeps_first ? 1u : 0u);
    if (copies) {
      // A3: pairs with R3: the last readers of the places have finished. Other lanes saw that than
      // those that write there.
      simt::fence(simt::acquire);
      simt::sync_warp();
      for (unsigned j = 0; j < Parts; ++j) {
        const unsigned mine = j * poll_window + lane / packet_words;
        if (mine < count && !(keeps_first && mine == 0))
          // In one piece each: claim() looks at them before they are its own.
          simt::bus_store(staged_ + std::size_t{(lock.seen + mine) & mask_} * packet_words +
                              lane % packet_words,
                          k.mine[j]);
      }
      simt::sync_warp();
    }
    std::uint32_t seen = lock.seen, after = seen + count, quarter = (mask_ + 1) / 4;
    std::uint32_t now =
        keep ? lock.last_poll : (k.time + (back_soon ? 4u : poll_time_mask / 2)) & poll_time_mask;
    if (lane == 0) {
      // Its place in the staging area stays unused for a lap. An addition, not a store: the next
      // writer acquires the release of its last reader (R3) through it.
      if (keeps_first)
        simt::atomic_ref<std::uint32_t>(next_[seen & mask_]).fetch_add(mask_ + 1, simt::relaxed);
      std::uint64_t change = changed_last_poll(lock.last_poll, now) - (keep ? 0 : held) +
                             std::uint64_t{count - take} + take * one_claimed;
      // R2, R4: the staging area and the active count, before the packets can be claimed or count
      // as such.
      if (copies || !counted) simt::fence(simt::release);
      word().fetch_add(change, simt::relaxed);
      if ((after & ~(quarter - 1)) != (seen & ~(quarter - 1))) give_credit(after);
    }
    lock = {after, now};
  }

  /// One lane, the poller, whatever its warp does: takes in the next packet, if it is there, and
  /// unlocks the ring. Whether it was there.
  GROSR_DEVICE bool accept_one(poll_lock& lock) const {
    std::uint32_t i = lock.seen & mask_, lap = lap_of(lock.seen, mask_ + 1);
    simt::bus_word words[packet_words];
    for (unsigned k = 0; k < packet_words; ++k)
      words[k] = simt::bus_load(packets_ + std::size_t{i} * packet_words + k);
    // A3: pairs with R3.
    bool there = simt::atomic_ref<std::uint32_t>(next_[i]).load(simt::acquire) == lock.seen;
    for (unsigned k = 0; k < packet_words; ++k) there = there && words[k].w[3] == lap;
    if (there) {
      for (unsigned k = 0; k < packet_words; ++k)
        simt::bus_store(staged_ + std::size_t{i} * packet_words + k, words[k]);
      if ((++lock.seen & ((mask_ + 1) / 4 - 1)) == 0) give_credit(lock.seen);
    }
    std::uint32_t now = poll_time() & poll_time_mask;
    // R2: pairs with A1, A2.
    word().fetch_add(changed_last_poll(lock.last_poll, now) - held + (there ? 1 : 0),
                     simt::release);
    lock.last_poll = now;
    return there;
  }

  /// Whole warp: claims the oldest seen packet, and with it those after it whose content begins
  /// with the same word, `most(word)` at most: the number of the first, and how many, which is 0
  /// when there are none.
  template <class Most>
  GROSR_DEVICE unsigned claim(std::uint32_t& number, Most&& most) const {
    const unsigned lane = simt::lane_id();
    std::uint64_t w = 0;
    // A1: pairs with R2: the staging area holds every packet below `seen`.
    if (lane == 0) w = word().load(simt::acquire);
    for (;;) {
      w = simt::shuffle(simt::full_mask, w, 0);
      const std::uint32_t waits = waiting_in(w);
      if (waits == 0) return 0;
      number = claimed_in(w);
      unsigned n = 1;
      if (waits > 1) {
        // Where others claim them first, something else may stand here: then this claim fails.
        std::uint32_t& begins = staged_[std::size_t{(number + lane) & mask_} * packet_words].w[0];
        const std::uint32_t mine = simt::atomic_ref<std::uint32_t>(begins).load(simt::relaxed);
        const std::uint32_t first = simt::shuffle(simt::full_mask, mine, 0);
        const std::uint32_t other = ~simt::ballot(simt::full_mask, lane < waits && mine == first);
        const unsigned alike = other == 0 ? simt::warp_size : simt::lowest_bit(other);
        n = most(first);
        n = n < alike ? n : alike;
      }
      bool got = false;
      if (lane == 0) {
        const std::uint64_t change = n * (one_claimed - 1);
        do got = word().compare_exchange(w, w + change, simt::acq_rel);  // R4
        while (!got && claimed_in(w) == number && waiting_in(w) >= n);
      }
      if (simt::shuffle(simt::full_mask, got ? 1u : 0u, 0) != 0) return n;
    }
  }

  /// How many packets were ever claimed. Writes of claimers before they claimed are visible after;
  /// with `o` relaxed, after an acquire fence.
  GROSR_DEVICE std::uint32_t claimed(simt::order o = simt::acquire) const {
    return claimed_in(word().load(o));  // A4: pairs with R4
  }

  /// The warp reads the packet it claimed, and frees its place in the staging area.
  GROSR_DEVICE held_packet read_staged(std::uint32_t number) const {
    unsigned lane = simt::lane_id();
    held_packet l{};
    std::uint32_t i = number & mask_;
    if (lane < packet_words) l.mine = staged_[std::size_t{i} * packet_words + lane];
    simt::sync_warp();
    if (lane == 0) next_packet(number);
    return l;
  }

  /// A lane reads the first n words of the content of a packet that its warp claimed.
  GROSR_DEVICE void read_staged(std::uint32_t number, std::uint32_t* to, unsigned n) const {
    const simt::bus_word* at = staged_ + std::size_t{number & mask_} * packet_words;
    for (unsigned b = 0; 3 * b < n; ++b) {
      const simt::bus_word held = at[b];
      for (unsigned i = 0; i < 3; ++i)
        if (3 * b + i < n) to[3 * b + i] = held.w[i];
    }
  }
  /// A lane frees the place of a packet that it read so.
  GROSR_DEVICE void free_staged(std::uint32_t number) const { next_packet(number); }

  /// One lane: whether the host has written the packet that comes next, though nobody polled it.
  GROSR_DEVICE bool unseen() const {
    std::uint32_t number = seen_in(word().load(simt::acquire));
    packet content;
    return read_packet(packets_ + std::size_t{number & mask_} * packet_words, content,
                       lap_of(number, mask_ + 1));
  }

 private:
  friend class submission_rings_ref;
  friend class submission_ring_memory;
  static constexpr unsigned waiting_bits = 14;
  static constexpr std::uint32_t poll_time_mask = 0x1ffff;
  static constexpr std::uint64_t held = std::uint64_t{1} << 31;
  static constexpr std::uint64_t one_claimed = std::uint64_t{1} << 32;

  GROSR_DEVICE simt::atomic_ref<std::uint64_t> word() const {
    return simt::atomic_ref<std::uint64_t>(control_->word);
  }
  GROSR_DEVICE static std::uint32_t claimed_in(std::uint64_t w) {
    return static_cast<std::uint32_t>(w >> 32);
  }
  GROSR_DEVICE static std::uint32_t waiting_in(std::uint64_t w) {
    return static_cast<std::uint32_t>(w) & ((1u << waiting_bits) - 1);
  }
  GROSR_DEVICE static std::uint32_t seen_in(std::uint64_t w) {
    return claimed_in(w) + waiting_in(w);
  }
  GROSR_DEVICE static std::uint32_t last_poll_in(std::uint64_t w) {
    return static_cast<std::uint32_t>(w) >> waiting_bits & poll_time_mask;
  }
  /// The word when nobody polls and nothing waits.
  GROSR_DEVICE static std::uint64_t pack(std::uint32_t claimed, std::uint32_t last_poll) {
    return std::uint64_t{claimed} << 32 | last_poll << waiting_bits;
  }
  /// What to add to the word: only the poller changes the time, so it knows the old one.
  GROSR_DEVICE static std::uint64_t changed_last_poll(std::uint32_t from, std::uint32_t to) {
    return (std::uint64_t{to} - from) << waiting_bits;
  }
  GROSR_DEVICE static std::uint32_t poll_time() {
    return static_cast<std::uint32_t>(simt::clock_ns() >> 10);
  }
  GROSR_DEVICE static bool free_since(std::uint64_t w, poll_age stale) {
    // A time in the next few microseconds is no old one.
    std::uint32_t age = (poll_time() - last_poll_in(w)) & poll_time_mask;
    const std::uint32_t least = seen_in(w) == 0 ? stale.unused_ns : stale.used_ns;
    return (w & held) == 0 && age >= least / 1024 && age < poll_time_mask - 8;
  }

  /// How many groups of 8 bits are before the first whose lowest bit is set.
  GROSR_DEVICE static unsigned groups_before(std::uint32_t missing) {
    missing &= 0x01010101u;
    return missing == 0 ? poll_window : simt::lowest_bit(missing) / packet_words;
  }

  GROSR_DEVICE void give_credit(std::uint32_t seen) const {
    simt::atomic_ref<std::uint32_t, simt::scope::system>(*credit_).store(seen, simt::relaxed);
  }

  GROSR_DEVICE void next_packet(std::uint32_t number) const {
    simt::atomic_ref<std::uint32_t>(next_[number & mask_])
        .store(number + mask_ + 1, simt::release);  // R3: pairs with A3
  }

  submission_ring_control* control_ = nullptr;
  const simt::bus_word* packets_ = nullptr;
  simt::bus_word* staged_ = nullptr;
  std::uint32_t* next_ = nullptr;
  std::uint32_t* credit_ = nullptr;
  std::uint32_t mask_ = 0;
};

/// Host memory that a ring's credit takes, in words: a line of its own, for each ring's producer
/// reads its own.
inline constexpr std::size_t credit_words = 32;

/// The device's view of several rings of one capacity; passed by value. Their memory lies side by
/// side, so that a ring follows from its number: no table of refs is read on the way to a packet.
class submission_rings_ref {
 public:
  submission_rings_ref() = default;

  GROSR_DEVICE submission_ring_ref operator[](std::uint32_t ring) const {
    const std::size_t packets = std::size_t{ring} * (first_.mask_ + 1);
    submission_ring_ref r = first_;
    r.control_ += ring;
    r.packets_ += packets * packet_words;
    r.staged_ += packets * packet_words;
    r.next_ += packets;
    r.credit_ += ring * credit_words;
    return r;
  }

 private:
  friend class submission_ring_memory;
  submission_ring_ref first_;
};

}  // namespace grosr::queue
