// Records from a device to the host: any lanes produce, one host thread at a time consumes.
//
//   record   64 bytes = 4 bus words; each holds 12 bytes, 3 bytes, and 1 byte of lap
//   ring     record n lies at n mod capacity and carries lap n div capacity + 1, of which 8 bits
//            are enough: every place is written once per lap, so a reader only has to tell one
//            lap from the last
//   tail     next ticket                                   device memory
//   credit   records the host has consumed                 host memory, cached in device memory
//
// A producer takes a ticket, sees that there is room for it, and writes. It looks across the bus
// only when the cached credit says full. Tickets cannot be given back, so who takes one writes its
// record; try_take() takes one only when there is room already. Records that one warp writes under
// consecutive tickets reach the bus as whole lines.
#pragma once

#include <cstdint>
#include <utility>

#include "grosr/queue/ring.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"

namespace grosr::queue {

inline constexpr unsigned record_words = 4;  // bus words in a record

/// The content of a record: 60 bytes.
struct record {
  std::uint32_t word[3 * record_words];
  std::uint32_t part[record_words];  ///< the low 24 bits of each
};

struct call_ring_control {
  alignas(128) std::uint64_t tail;
  alignas(128) std::uint64_t credit_cached;
};

/// The device's view of a call ring; passed by value. Any number of lanes use it at once.
class call_ring_ref {
 public:
  call_ring_ref() = default;

  /// One lane takes `count` consecutive tickets and returns the first. Each has to be written, when
  /// has_room() says so.
  GROSR_DEVICE std::uint64_t take(unsigned count) const {
    return simt::atomic_ref<std::uint64_t>(control_->tail).fetch_add(count, simt::relaxed);
  }

  /// The same if there is room for all of them now.
  GROSR_DEVICE bool try_take(unsigned count, std::uint64_t& first) const {
    simt::atomic_ref<std::uint64_t> tail(control_->tail);
    first = tail.load(simt::relaxed);
    while (has_room(first + count - 1))
      if (tail.compare_exchange(first, first + count, simt::relaxed)) return true;
    return false;
  }

  /// What is known of the host's credit; a load to be under way beside others.
  GROSR_DEVICE std::uint64_t known_credit() const {
    return simt::atomic_ref<std::uint64_t>(control_->credit_cached)
        .load(simt::before_store());  // A2
  }

  /// Whether the record before this ticket's, a lap ago, was consumed. Any lane.
  GROSR_DEVICE bool has_room(std::uint64_t ticket) const {
    return has_room(ticket, known_credit());
  }
  GROSR_DEVICE bool has_room(std::uint64_t ticket, std::uint64_t known) const {
    return knows_room(ticket, known) || ask_for_room(ticket, known);
  }

  /// The same as far as `known` says: lanes that have the same one agree.
  GROSR_DEVICE bool knows_room(std::uint64_t ticket, std::uint64_t known) const {
    return ticket < known + mask_ + 1;
  }

  /// One lane writes the record of its ticket, for which there is room. Costs the bus four writes
  /// that are no whole line, which is slow where the host looks at that line meanwhile: lanes that
  /// are together rather use the next two.
  GROSR_DEVICE void write(std::uint64_t ticket, const record& r) const {
    simt::bus_word* to = words_ + (ticket & mask_) * record_words;
    std::uint32_t lap = lap_of(ticket);
    for (unsigned i = 0; i < record_words; ++i) simt::bus_store(to + i, word_of(r, i, lap));
  }

  /// Each lane of `mask` writes the record of its ticket, `first` plus its rank in the mask. Four
  /// neighbours that all are in the mask write whole lines.
  GROSR_DEVICE void write_all(std::uint32_t mask, std::uint64_t first, const record& r) const {
    const unsigned lane = simt::lane_id(), column = lane % 4, quad = lane - column;
    const std::uint64_t ticket = first + simt::rank_in(mask, lane);
    const std::uint32_t neighbours = 0xfu << quad;
    if ((mask & neighbours) != neighbours) return write(ticket, r);
    simt::bus_word out[record_words];
    const std::uint32_t lap = lap_of(ticket);
    for (unsigned i = 0; i < record_words; ++i) out[i] = word_of(r, i, lap);
    // They exchange words until each has the one of its column of all four records: in two steps,
    // the transposition of a 4 by 4 matrix.
    if (mask == simt::full_mask) {  // apart: a GPU runs a collective once for each mask
      exchange<1>(out, lane, simt::full_mask);
      exchange<2>(out, lane, simt::full_mask);
    } else {
      exchange<1>(out, lane, neighbours);
      exchange<2>(out, lane, neighbours);
    }
    for (unsigned i = 0; i < record_words; ++i)
      simt::bus_store(words_ + ((ticket - column + i) & mask_) * record_words + column, out[i]);
  }

  /// Lanes of `mask` write one record together, as `leader`, one of them, has it.
  GROSR_DEVICE void write_together(std::uint32_t mask, unsigned leader, std::uint64_t ticket,
                                   const record& r) const {
    if (!simt::stores_combine() || simt::popcount(mask) < record_words) {
      if (simt::lane_id() == leader) write(ticket, r);
      return;
    }
    const unsigned rank = simt::rank_in(mask, simt::lane_id());
    ticket = simt::shuffle(mask, ticket, leader);
    simt::bus_word mine{};
    for (unsigned i = 0; i < record_words; ++i) {
      const simt::bus_word w = word_of(r, i, lap_of(ticket));
      for (unsigned k = 0; k < 4; ++k) {
        const std::uint32_t v = simt::shuffle(mask, w.w[k], leader);
        if (rank == i) mine.w[k] = v;
      }
    }
    if (rank < record_words) simt::bus_store(words_ + (ticket & mask_) * record_words + rank, mine);
  }

 private:
  friend class call_ring;

  GROSR_DEVICE GROSR_NOINLINE bool ask_for_room(std::uint64_t ticket, std::uint64_t known) const {
    // A1: pairs with R1 in give_credit(): the host has read what it gives credit for.
    std::uint64_t now =
        simt::atomic_ref<std::uint64_t, simt::scope::system>(*credit_).load(simt::before_store());
    simt::atomic_ref<std::uint64_t> cached(control_->credit_cached);
    while (known < now &&
           !cached.compare_exchange(known, now, simt::in_turn())) {  // R2: pairs with A2
    }
    return ticket < now + mask_ + 1;
  }

  GROSR_DEVICE std::uint32_t lap_of(std::uint64_t ticket) const {
    return (static_cast<std::uint32_t>(ticket >> shift_) + 1) & 0xff;
  }

  GROSR_DEVICE static simt::bus_word word_of(const record& r, unsigned i, std::uint32_t lap) {
    return {{r.word[3 * i], r.word[3 * i + 1], r.word[3 * i + 2], r.part[i] << 8 | lap}};
  }

  /// Swaps, of the words in rows and columns of lanes that differ in bit Step, the upper right with
  /// the lower left.
  template <unsigned Step>
  GROSR_DEVICE static void exchange(simt::bus_word* rows, unsigned lane, std::uint32_t mask) {
    const bool lower = (lane & Step) != 0;
    for (unsigned i = 0; i < record_words; ++i) {
      if (i & Step) continue;
      simt::bus_word &a = rows[i], &b = rows[i | Step];
      for (unsigned k = 0; k < 4; ++k) {
        std::uint32_t give = lower ? a.w[k] : b.w[k];
        std::uint32_t got = simt::shuffle(mask, give, lane ^ Step);
        (lower ? a.w[k] : b.w[k]) = got;
      }
    }
  }

  call_ring_control* control_ = nullptr;
  simt::bus_word* words_ = nullptr;
  std::uint64_t* credit_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint32_t shift_ = 0;
};

/// What pop_while() is told of a record: to take it and go on, to take it as the last one, or to
/// leave it where it is and end.
enum class pop_result { more, last, left };

/// Owner of a call ring, and its consumer side. Not movable.
class call_ring {
 public:
  /// Throws error(invalid_option) unless `capacity` (records) is a power of two and at least 32.
  call_ring(device d, std::uint32_t capacity);

  /// What kernels get; valid while this lives.
  call_ring_ref ref() const;

  /// Calls `take(record, ticket)` for the oldest records that are there, until it returns something
  /// else than pop_result::more or there are no more; how many were taken. One thread at a time.
  /// Their places are given back by give_credit().
  template <class Take>
  unsigned pop_while(Take&& take) {
    unsigned count = 0;
    for (pop_result what = pop_result::more; what == pop_result::more; ++count) {
      const std::uint64_t ticket = consumed_ + count;
      const simt::bus_word* at = place_of(ticket);
      const auto lap = static_cast<std::uint8_t>((ticket >> shift_) + 1);
      __builtin_prefetch(place_of(ticket + 8));
      record r;
      if (!load(at, lap, r, std::make_index_sequence<record_words>())) break;
      what = take(r, ticket);
      if (what == pop_result::left) break;
    }
    if (count != 0)
      simt::atomic_ref<std::uint64_t>(consumed_).store(consumed_ + count, simt::release);
    return count;
  }

  /// Whether pop_while() would find a record. Any thread; a hint while another one pops.
  bool ready() const { return has_lap(consumed()); }

  /// Lets producers have the places of all records popped so far. The thread that pops.
  void give_credit();

  /// Records popped so far. Any thread.
  std::uint64_t consumed() const {
    return simt::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(consumed_))
        .load(simt::acquire);
  }

  /// Tickets taken so far, read from device memory. Any thread.
  std::uint64_t taken() const;

 private:
  const simt::bus_word* place_of(std::uint64_t ticket) const {
    return words_.data() + (ticket & (capacity_ - 1)) * record_words;
  }
  /// Whether all words carry the lap. Spelled out, so that what `take` does not use costs nothing.
  template <std::size_t... I>
  static bool load(const simt::bus_word* at, std::uint8_t lap, record& r,
                   std::index_sequence<I...>) {
    const simt::bus_word v[] = {simt::bus_load_from_host(at + I)...};
    ((r.word[3 * I] = v[I].w[0], r.word[3 * I + 1] = v[I].w[1], r.word[3 * I + 2] = v[I].w[2],
      r.part[I] = v[I].w[3] >> 8),
     ...);
    return (... && (static_cast<std::uint8_t>(v[I].w[3]) == lap));
  }
  bool has_lap(std::uint64_t ticket) const {
    return static_cast<std::uint8_t>(simt::bus_load_from_host(place_of(ticket)).w[3]) ==
           static_cast<std::uint8_t>((ticket >> shift_) + 1);
  }

  device device_;
  std::uint32_t capacity_;
  std::uint32_t shift_;
  std::uint64_t consumed_ = 0;
  simt::buffer<call_ring_control> control_;
  simt::buffer<simt::bus_word> words_;
  simt::buffer<std::uint64_t> credit_;
};

}  // namespace grosr::queue
