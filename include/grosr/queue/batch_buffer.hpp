// A batch buffer: a bounded buffer in device memory for the elements of one function. Many
// producers, many consumers; lanes that call together share every step on what all share.
//
//   room      places that nobody has reserved; may pass below 0 for a moment
//   tail      places reserved so far; ticket t is place t mod capacity
//   done      for each group of places: how many came back, and 1 when all before them have
//   ready     entries written so far, padding included; entry p lies in cell p mod cells
//   head      entries handed to consumers so far, in batches
//
// An element is available, reserved (talloc), ready (enq), dispatched (deq), done (tfree), and
// available again. Entries are in the order of enq and not of talloc: a slow producer holds nobody
// back, until the places behind its own are used up. docs/internals/channels.md has the protocol.
// The two arrays and the counts of done are from M. S. Orr et al., "Fine-grain task aggregation and
// coordination on GPUs", ISCA 2014; in-order freeing by a baton, and cells that say themselves
// whether they are written, are not.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr {

/// How the elements of a channel lie: one after the other; or, 32 at a time, word by word, so that
/// lanes that read one each read whole lines. A type chooses:
///   static constexpr grosr::element_layout layout = grosr::element_layout::columns;
enum class element_layout : std::uint8_t { rows, columns };

/// What a channel is asked to be.
struct channel_options {
  std::uint32_t capacity = 4096;  ///< elements; a power of two, 64 to 2^25
  /// Elements that make it worth serving, which are handed over together then: a power of two, 1 to
  /// 32, or to what a function that takes batches says. 0: 32 for a function of one lane, 1 for
  /// wider ones, as many as it takes for one that takes batches.
  std::uint32_t batch = 0;
  /// Elements that wait for so long are served, however few they are; 0: at once when a worker has
  /// nothing else to do, and not before.
  std::uint32_t patience_us = 100;
  std::string name = {};  ///< in reports
};

}  // namespace grosr

namespace grosr::queue {

/// Device memory.
struct batch_buffer_state {
  // Written by the host, while no kernel uses it.
  unsigned char* data;
  std::uint32_t* cells;
  std::uint32_t* done;
  std::uint32_t capacity, cell_mask, batch, group_shift;
  std::uint32_t kind;  ///< of who serves it
  std::uint64_t patience_ns;
  const void* server;
  // Shared.
  alignas(128) std::uint32_t room;
  alignas(128) std::uint64_t tail;
  alignas(128) std::uint64_t ready;
  alignas(128) std::uint64_t head;
  alignas(128) std::uint64_t begun;  ///< when (clock_ns) the batch that is being filled was begun
  std::uint64_t padded;              ///< entries without an element
  std::uint64_t refused;             ///< elements that found no room
  std::uint64_t alone;               ///< elements that went past it, since none were to join them
  std::uint64_t lost;                ///< of them, those that found none anywhere
  std::uint64_t foreign;             ///< elements for channels that are not this graph's
  std::uint32_t deferred;            ///< full batches for which no consumer could be sent yet
};

inline constexpr std::uint32_t columns = 32;  ///< elements that lie word by word together
/// A cell: written (bit 31), lap (5 bits, which is enough where each lap waits for the one before),
/// and place (26 bits), or padding.
inline constexpr std::uint32_t written = 1u << 31, padding = (1u << 26) - 1;
inline constexpr unsigned lap_shift = 26;
inline constexpr std::uint64_t no_ticket = ~std::uint64_t{0};

/// What does not depend on the elements. Passed by value; all calls are thread-safe.
class batch_buffer_base {
 public:
  batch_buffer_base() = default;
  GROSR_DEVICE explicit batch_buffer_base(batch_buffer_state* s) : s_(s) {}
  GROSR_DEVICE batch_buffer_state& state() const { return *s_; }
  GROSR_DEVICE batch_buffer_state* address() const { return s_; }  ///< null: no channel

  /// Lanes of `mask` together, each for n places that follow each other (1 to 32, not the same for
  /// all): the first one's ticket; no_ticket, for all of them, when there was no room. A lane alone
  /// passes its own bit. A lane that waits for room has what is collected served (pad):
  /// places come back in order.
  GROSR_DEVICE std::uint64_t talloc(std::uint32_t mask, std::uint32_t n) const {
    std::uint32_t before = 0, all = 0;
    sum(mask, n, before, all);
    return claim_together(mask, before, all);
  }
  /// The same for one place each.
  GROSR_DEVICE std::uint64_t talloc(std::uint32_t mask) const {
    return claim_together(mask, simt::rank_in(mask, simt::lane_id()), simt::popcount(mask));
  }
  /// One lane, for any number of places: the first one's ticket, or no_ticket.
  GROSR_DEVICE std::uint64_t claim(std::uint32_t n) const {
    simt::atomic_ref<std::uint32_t> room(s_->room);
    // A1: pairs with R1 in free_from(). It decides whether a place is overwritten.
    const auto had = static_cast<std::int32_t>(room.fetch_sub(n, simt::in_turn()));
    if (had >= static_cast<std::int32_t>(n))
      return simt::atomic_ref<std::uint64_t>(s_->tail).fetch_add(n, simt::in_turn());
    room.fetch_add(n, simt::relaxed);
    return no_ticket;
  }

  /// The place of a ticket.
  GROSR_DEVICE std::uint32_t place_of(std::uint64_t ticket) const {
    return static_cast<std::uint32_t>(ticket) & (s_->capacity - 1);
  }

  /// Lanes of `mask` together: the elements of n tickets from `first` on are written, and ready.
  /// How many batches that made full: who calls sees to it that a consumer comes for each.
  GROSR_DEVICE std::uint32_t enq(std::uint32_t mask, std::uint64_t first, std::uint32_t n) const {
    std::uint32_t before = 0, all = 0;
    sum(mask, n, before, all);
    const std::uint64_t entry = announce_together(mask, before, all);
    for (std::uint32_t i = 0; i < n; ++i) put(entry + i, place_of(first + i));
    return batches_in(entry, n);
  }
  /// The same for one element each.
  GROSR_DEVICE std::uint32_t enq(std::uint32_t mask, std::uint64_t ticket) const {
    const std::uint64_t entry =
        announce_together(mask, simt::rank_in(mask, simt::lane_id()), simt::popcount(mask));
    put(entry, place_of(ticket));
    return batches_in(entry, 1);
  }
  /// One lane: n more entries: the first one's number. They are to be put() soon, each by who wrote
  /// the element and then fenced (release).
  GROSR_DEVICE std::uint64_t announce(std::uint32_t n) const {
    const std::uint32_t part = s_->batch - 1;  // of an entry's number, where in a batch it is
    const std::uint64_t entry =
        simt::atomic_ref<std::uint64_t>(s_->ready).fetch_add(n, simt::relaxed);
    // The lane that begins a batch says when.
    const std::uint32_t had = static_cast<std::uint32_t>(entry) & part;
    if (((had + n) & part) != 0 && (had == 0 || had + n > part))
      simt::atomic_ref<std::uint64_t>(s_->begun).store(simt::clock_ns(), simt::relaxed);
    return entry;
  }
  /// One lane: says where the element of an entry lies, or padding. A lane that has announced
  /// several entries, in several channels, does not wait for one while another could be put:
  /// try_put().
  GROSR_DEVICE void put(std::uint64_t entry, std::uint32_t place) const {
    // The lane that takes the entry of a lap ago is between two of its steps, or waits for one that
    // is.
    simt::wait_until([&] { return try_put(entry, place); }, simt::forever, nullptr,
                     "the last reader of a channel's entry");
  }
  /// The same; false while what was there a lap ago has not been taken.
  GROSR_DEVICE bool try_put(std::uint64_t entry, std::uint32_t place) const {
    simt::atomic_ref<std::uint32_t> cell(s_->cells[entry & s_->cell_mask]);
    const std::uint32_t mine = lap_of(entry);
    if (cell.load(simt::relaxed) != mine) return false;
    cell.store(mine | written | place, simt::relaxed);
    return true;
  }
  /// How many batches n entries from `entry` on make full: who announced them sees to it that a
  /// consumer comes for each.
  GROSR_DEVICE std::uint32_t batches_in(std::uint64_t entry, std::uint32_t n) const {
    const std::uint32_t part = s_->batch - 1;
    return ((static_cast<std::uint32_t>(entry) & part) + n) >> simt::popcount(part);
  }

  /// One lane, on behalf of a full batch that nobody has come for yet: its first entry.
  GROSR_DEVICE std::uint64_t deq() const {
    return simt::atomic_ref<std::uint64_t>(s_->head).fetch_add(s_->batch, simt::relaxed);
  }

  /// One lane: the place that an entry names, or `padding`. Waits for who is writing it.
  GROSR_DEVICE std::uint32_t take(std::uint64_t entry) const {
    simt::atomic_ref<std::uint32_t> cell(s_->cells[entry & s_->cell_mask]);
    const std::uint32_t mine = lap_of(entry) | written;
    std::uint32_t found = 0;
    simt::wait_until([&] { return ((found = cell.load(simt::relaxed)) & ~padding) == mine; },
                     simt::forever, nullptr, "the writer of a channel's entry");
    simt::fence(simt::acquire);  // A2: pairs with R2 in enq()
    cell.store(lap_of(entry + s_->cell_mask + 1), simt::relaxed);
    return found & padding;
  }

  /// Lanes of `mask` together: what lay in their places is not looked at any more.
  GROSR_DEVICE void tfree(std::uint32_t mask, std::uint32_t place) const {
    const std::uint32_t group = place >> s_->group_shift;
    const std::uint32_t peers = simt::match_any(mask, group);
    simt::sync_warp(mask);
    if (simt::lane_id() != simt::lowest_bit(peers)) return;
    const std::uint32_t n = simt::popcount(peers);
    // R4: what the lanes read; pairs with A4 in free_from().
    if (simt::atomic_ref<std::uint32_t>(s_->done[group]).fetch_add(n, simt::release_for_warp()) +
            n ==
        group_size() + 1)
      free_from(group);
  }

  /// Places that come back together.
  GROSR_DEVICE std::uint32_t group_size() const { return 1u << s_->group_shift; }

  /// Elements that are ready and no full batch. A6: who finds none sees that who took them is
  /// active.
  GROSR_DEVICE std::uint32_t collected() const {
    return static_cast<std::uint32_t>(
               simt::atomic_ref<std::uint64_t>(s_->ready).load(simt::acquire)) &
           (s_->batch - 1);
  }
  /// Whether they wait for longer than they should, where that has a limit.
  GROSR_DEVICE bool overdue() const {
    const std::uint64_t begun = simt::atomic_ref<std::uint64_t>(s_->begun).load(simt::relaxed);
    return s_->patience_ns != 0 && simt::clock_ns() - begun > s_->patience_ns;
  }
  /// Whether pad() may fill up what is collected, with `ready` entries written: no more batches
  /// than elements have room for wait for consumers.
  GROSR_DEVICE bool may_pad(std::uint64_t ready) const {
    return ready - simt::atomic_ref<std::uint64_t>(s_->head).load(simt::relaxed) <= s_->capacity;
  }
  GROSR_DEVICE bool may_pad() const {
    return may_pad(simt::atomic_ref<std::uint64_t>(s_->ready).load(simt::relaxed));
  }

  /// Full batches for which a consumer is still to be sent: notes n more, or takes them over.
  GROSR_DEVICE void defer(std::uint32_t n) const {
    simt::atomic_ref<std::uint32_t>(s_->deferred).fetch_add(n, simt::acq_rel);
  }
  GROSR_DEVICE std::uint32_t take_deferred() const {
    simt::atomic_ref<std::uint32_t> deferred(s_->deferred);
    return deferred.load(simt::acquire) == 0 ? 0 : deferred.exchange(0, simt::acq_rel);
  }
  /// Whether there are any.
  GROSR_DEVICE bool has_deferred() const {
    return simt::atomic_ref<std::uint32_t>(s_->deferred).load(simt::relaxed) != 0;
  }

  /// Lanes of `mask` together: fill up the batch that is being collected. True when they did: the
  /// caller sees to a consumer for it. False: there was nothing to do, somebody else did it, or
  /// more batches than elements have room for wait for consumers already.
  GROSR_DEVICE bool pad(std::uint32_t mask) const {
    const unsigned leader = simt::lowest_bit(mask);
    std::uint64_t from = 0;
    std::uint32_t lack = 0;
    if (simt::lane_id() == leader) {
      simt::atomic_ref<std::uint64_t> ready(s_->ready);
      from = ready.load(simt::relaxed);
      const std::uint32_t batch = s_->batch, some = static_cast<std::uint32_t>(from) & (batch - 1);
      if (some != 0 && may_pad(from) &&
          // R6: that this worker is active; pairs with A6 in collected().
          ready.compare_exchange(from, from + batch - some, simt::acq_rel)) {
        lack = batch - some;
        simt::atomic_ref<std::uint64_t>(s_->padded).fetch_add(lack, simt::relaxed);
      }
    }
    lack = simt::shuffle(mask, lack, leader);
    from = simt::shuffle(mask, from, leader);
    for (std::uint32_t i = simt::rank_in(mask, simt::lane_id()); i < lack;
         i += simt::popcount(mask))
      put(from + i, padding);
    return lack != 0;
  }

 protected:
  /// What the lanes of `mask` before this one want, and all of them.
  GROSR_DEVICE static void sum(std::uint32_t mask, std::uint32_t n, std::uint32_t& before,
                               std::uint32_t& all) {
    before = all = 0;
    for (unsigned bit = 0; bit < 6; ++bit) {
      const std::uint32_t those = simt::ballot(mask, (n >> bit & 1) != 0);
      before += simt::rank_in(those, simt::lane_id()) << bit;
      all += simt::popcount(those) << bit;
    }
  }

  GROSR_DEVICE std::uint64_t claim_together(std::uint32_t mask, std::uint32_t before,
                                            std::uint32_t all) const {
    const unsigned leader = simt::lowest_bit(mask);
    std::uint64_t first = simt::lane_id() == leader ? claim(all) : 0;
    first = simt::shuffle(mask, first, leader);
    simt::sync_warp(mask);  // A1 holds for all
    return first == no_ticket ? no_ticket : first + before;
  }
  GROSR_DEVICE std::uint64_t announce_together(std::uint32_t mask, std::uint32_t before,
                                               std::uint32_t all) const {
    const unsigned leader = simt::lowest_bit(mask);
    simt::fence(simt::release);  // R2: the elements; pairs with A2 in take()
    const std::uint64_t entry = simt::lane_id() == leader ? announce(all) : 0;
    return simt::shuffle(mask, entry, leader) + before;
  }

  /// What a cell says when the entry may be written there.
  GROSR_DEVICE std::uint32_t lap_of(std::uint64_t entry) const {
    const auto lap = static_cast<std::uint32_t>(entry >> simt::popcount(s_->cell_mask));
    return (lap & 31) << lap_shift;
  }

  /// One lane: this group's places are free, and so are those of groups behind it that only waited
  /// for that: the baton goes from group to group.
  GROSR_DEVICE GROSR_NOINLINE void free_from(std::uint32_t group) const {
    const std::uint32_t size = group_size(), last = s_->capacity / size - 1;
    std::uint32_t freed = 0;
    GROSR_NO_UNROLL
    for (bool whole = true; whole; freed += size) {
      simt::atomic_ref<std::uint32_t>(s_->done[group]).store(0, simt::relaxed);
      group = group == last ? 0 : group + 1;
      // R5: that the last one counts from 0 again; to whoever frees this one.
      whole = simt::atomic_ref<std::uint32_t>(s_->done[group]).fetch_add(1, simt::acq_rel) == size;
    }
    simt::fence(simt::acq_rel);  // A4, and R1: pairs with A1 in talloc()
    simt::atomic_ref<std::uint32_t>(s_->room).fetch_add(freed, simt::relaxed);
  }

  batch_buffer_state* s_ = nullptr;
};

template <class T>
constexpr element_layout layout_of() {
  if constexpr (requires { requires std::is_same_v<decltype(T::layout), const element_layout>; })
    return T::layout;
  else
    return element_layout::rows;
}

/// Bytes that an element takes.
template <class T>
inline constexpr std::uint32_t element_bytes = layout_of<T>() == element_layout::columns
                                                   ? (sizeof(T) + 3) / 4 * 4
                                                   : sizeof(T);

/// A batch buffer of elements of one type, as a device sees it.
template <class T>
class batch_buffer_ref : public batch_buffer_base {
  static_assert(std::is_trivially_copyable_v<T>,
                "grosr: elements of a channel must be trivially copyable");
  static_assert(alignof(T) <= 16, "grosr: elements of a channel are aligned to at most 16 bytes");

 public:
  using batch_buffer_base::batch_buffer_base;
  static constexpr bool in_rows = layout_of<T>() == element_layout::rows;

  GROSR_DEVICE T load(std::uint32_t place) const {
    if constexpr (in_rows) {
      return at(place);
    } else {
      T value;
      std::uint32_t words[element_bytes<T> / 4];
      const std::uint32_t* from = column(place);
      for (unsigned i = 0; i < element_bytes<T> / 4; ++i) words[i] = from[i * columns];
      __builtin_memcpy(&value, words, sizeof(T));
      return value;
    }
  }
  GROSR_DEVICE void store(std::uint32_t place, const T& value) const {
    if constexpr (in_rows) {
      at(place) = value;
    } else {
      std::uint32_t words[element_bytes<T> / 4] = {};
      __builtin_memcpy(words, &value, sizeof(T));
      std::uint32_t* to = column(place);
      for (unsigned i = 0; i < element_bytes<T> / 4; ++i) to[i * columns] = words[i];
    }
  }
  /// The element itself, where it lies in one piece.
  GROSR_DEVICE T& at(std::uint32_t place) const {
    static_assert(in_rows, "grosr: an element in columns has no address: load() and store() it");
    return reinterpret_cast<T*>(s_->data)[place];
  }

 private:
  GROSR_DEVICE std::uint32_t* column(std::uint32_t place) const {
    return reinterpret_cast<std::uint32_t*>(s_->data) +
           std::uint64_t{place / columns} * (element_bytes<T> / 4 * columns) + place % columns;
  }
};

/// Owner of a batch buffer's memory. Movable.
class batch_buffer {
 public:
  batch_buffer() = default;
  /// Throws error(invalid_option, out_of_memory). `at`: where its state lies; null: of its own.
  batch_buffer(device d, const channel_options& o, std::uint32_t element_bytes,
               batch_buffer_state* at = nullptr);

  batch_buffer_state* state() const { return at_; }
  /// A copy of its state, for reports.
  batch_buffer_state look() const;
  /// Says who serves it, before any kernel uses it.
  void serve(const void* server, std::uint32_t kind, std::uint32_t batch);

  /// Device memory that one takes, its state apart.
  static std::size_t bytes(std::uint32_t capacity, std::uint32_t element_bytes);

 private:
  device device_;
  batch_buffer_state* at_ = nullptr;
  simt::buffer<batch_buffer_state> own_;
  simt::buffer<unsigned char> data_;
  simt::buffer<std::uint32_t> cells_, done_;
};

}  // namespace grosr::queue
