// A link: a ring of words from one rank to another, of one class. The protocol, with the names of
// the steps, is in docs/internals/messages.md.
#pragma once

#include <cstdint>

#include "grosr/net/detail/arrivals.hpp"
#include "grosr/net/detail/word.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::net {

/// Words that become visible to receivers together, and that they give back together.
inline constexpr std::uint32_t chunk_words = 128;
inline constexpr std::uint64_t no_ticket = ~std::uint64_t{0};

/// Requests start tasks and change elements; replies end calls. Each has links of its own.
enum class link_class : std::uint8_t { request, reply };
inline constexpr unsigned link_classes = 2;

struct rank_state;

/// The sender's half of a link: memory of its device.
struct link_sender {
  // Written by the host, before anything runs.
  simt::bus_word* words;     ///< of the ring, where the sender can store
  std::uint32_t shift;       ///< log2 of the ring's words
  std::uint32_t from;        ///< rank
  std::uint64_t* freed;      ///< for each chunk of the ring: see freed_chunk
  std::uint32_t* stored;     ///< the same: see stored_chunk; null where a thread takes the words
  arrivals* arrives;         ///< where chunks that are whole are announced; null likewise
  const rank_state* direct;  ///< of the receiver, where its memory can be reached; else null
  // Shared by lanes of the sender.
  alignas(128) std::uint64_t tail;   ///< words reserved so far
  alignas(128) std::uint64_t limit;  ///< words for which there was room so far, as far as is known
  // Of who looks whether the present chunk is filled up.
  alignas(128) std::uint64_t seen;  ///< the chunk that was being collected
  std::uint64_t seen_at;            ///< since when (clock_ns), as far as is known
};

/// The receiver's half: memory of its device.
struct link_receiver {
  const simt::bus_word* words;
  std::uint32_t shift;
  std::uint32_t from;    ///< rank
  std::uint32_t far;     ///< 1: the sender is on another device
  std::uint64_t* freed;  ///< the sender's
};

/// What link_sender::freed holds for the place of a chunk in the ring when that chunk was consumed.
/// Only who consumed it writes there.
GROSR_DEVICE constexpr std::uint64_t freed_chunk(std::uint64_t chunk) { return chunk + 1; }
/// How many chunks were consumed, of those in place i of n, when `freed` is there.
GROSR_DEVICE constexpr std::uint64_t chunks_freed(std::uint64_t freed, std::uint64_t i,
                                                  std::uint64_t n) {
  return freed == 0 ? 0 : (freed - 1 - i) / n + 1;
}
/// What is added to link_sender::stored for the place of a chunk: the words that were stored there,
/// in all laps. So many they are when that chunk is whole.
GROSR_DEVICE constexpr std::uint32_t stored_chunk(std::uint64_t chunk, std::uint32_t shift) {
  return static_cast<std::uint32_t>((chunk * chunk_words >> shift) + 1) * chunk_words;
}
/// Lanes of `mask` meet; a whole warp runs together again from here on (simt::sync_warp).
GROSR_DEVICE inline void meet(std::uint32_t mask) {
  if (mask == simt::full_mask)
    simt::sync_warp();
  else
    simt::sync_warp(mask);
}

/// f of the mask, as one that the compiler knows if it is that of the whole warp.
template <class F>
GROSR_DEVICE auto with_mask(std::uint32_t mask, const F& f) {
  return mask == simt::full_mask ? f(simt::whole_warp{}) : f(mask);
}

GROSR_DEVICE inline std::uint32_t lap_of(std::uint64_t ticket, std::uint32_t shift) {
  return (ticket >> shift & 1) != 0 ? 0 : lap_bit;
}

/// Sends into a link. Any lanes of the sending rank.
class link_out {
 public:
  GROSR_DEVICE explicit link_out(link_sender& s)
      : s_(s), words_(s.words), stored_(s.stored), shift_(s.shift) {}

  /// One lane, for a group: the first ticket of n words, or no_ticket when there is no room.
  /// `fits`: they can be stored; else others were faster, and has_room() will say. `tight`: there
  /// was little room lately, or is now. Steps 1 to 3.
  GROSR_DEVICE std::uint64_t claim(std::uint32_t n, bool& fits, bool& tight) const {
    simt::global_ref<std::uint64_t> tail(s_.tail);
    std::uint64_t limit = known_limit();
    if (tight) {
      // Looked at first: where many find no room, nothing that they share is written.
      const std::uint64_t seen = tail.load(simt::relaxed);
      if (seen + n > limit && seen + n > (limit = look_further(&s_, limit))) return no_ticket;
    }
    const std::uint64_t first = tail.fetch_add(n, simt::relaxed);
    fits = first + n <= limit || first + n <= (limit = look_further(&s_, known_limit()));
    tight = !fits || limit - first - n < (std::uint64_t{1} << shift_) / 4;
    return first;
  }
  /// One lane: whether the words before a ticket can be stored. Step 3.
  GROSR_DEVICE bool has_room(std::uint64_t end) const {
    const std::uint64_t limit = known_limit();
    return end <= limit || end <= look_further(&s_, limit);
  }

  /// Stores a word of a ticket.
  GROSR_DEVICE void store(std::uint64_t ticket, const std::uint32_t* content,
                          std::uint32_t w3) const {
    const std::uint64_t mask = (std::uint64_t{1} << shift_) - 1;
    simt::bus_store(words_ + (ticket & mask),
                    {{content[0], content[1], content[2], w3 | lap_of(ticket, shift_)}});
  }

  /// One lane, when lanes that have met have stored n words, at most a chunk's, from a ticket on:
  /// counts them, and announces a chunk of which they were the last. Whether there was one. The
  /// count does not wait for the words: who reads them looks at each. Step 5.
  GROSR_DEVICE bool count_stored(std::uint64_t first, std::uint32_t n) const {
    const std::uint32_t left =
                            chunk_words - (static_cast<std::uint32_t>(first) & (chunk_words - 1)),
                        here = n < left ? n : left;
    // Where a thread takes the words it looks at them.
    if (stored_ == nullptr) return n >= left;
    bool whole = add_stored(first / chunk_words, here);
    if (n > here) whole = add_stored(first / chunk_words + 1, n - here) || whole;
    if (!whole) return false;
    // Others are not to find the known limit before there is need.
    const std::uint64_t limit = known_limit(), words = std::uint64_t{1} << shift_;
    if (limit < first + words - words / 4) look_far(&s_, limit);
    return true;
  }

  /// Lanes of `mask` together: fills up the chunk that is being collected. True when it did.
  GROSR_DEVICE bool pad(std::uint32_t mask) const {
    const unsigned leader = simt::lowest_bit(mask);
    std::uint64_t from = 0;
    std::uint32_t lack = 0;
    if (simt::lane_id() == leader) {
      simt::global_ref<std::uint64_t> tail(s_.tail);
      from = tail.load(simt::relaxed);
      const auto had = static_cast<std::uint32_t>(from) & (chunk_words - 1);
      if (had != 0) {
        lack = chunk_words - had;
        // Where there is no room, lanes wait that have tickets of this chunk.
        if (!has_room(from + lack) || !tail.compare_exchange(from, from + lack, simt::relaxed))
          lack = 0;
      }
    }
    lack = simt::shuffle(mask, lack, leader);
    if (lack == 0) return false;
    from = simt::shuffle(mask, from, leader);
    constexpr std::uint32_t nothing[3] = {0, 0, 0};
    for (std::uint32_t i = simt::rank_in(mask, simt::lane_id()); i < lack;
         i += simt::popcount(mask))
      store(from + i, nothing, header_word::of(1, operation::padding, 0));
    simt::sync_warp(mask);
    if (simt::lane_id() == leader) static_cast<void>(count_stored(from, lack));
    return true;
  }

  /// Whether a chunk is being collected.
  GROSR_DEVICE bool collects() const {
    return (simt::global_ref<std::uint64_t>(s_.tail).load(simt::relaxed) & (chunk_words - 1)) != 0;
  }
  /// The same, and for longer than `limit_ns` after somebody first looked. Senders say nothing of
  /// time: who has nothing else to do finds out.
  GROSR_DEVICE bool overdue(std::uint64_t limit_ns) const {
    const std::uint64_t tail = simt::global_ref<std::uint64_t>(s_.tail).load(simt::relaxed);
    if ((tail & (chunk_words - 1)) == 0) return false;
    // Chunk n is noted as n + 1: at first none is.
    const std::uint64_t chunk = tail / chunk_words + 1, now = simt::clock_ns();
    simt::global_ref<std::uint64_t> seen(s_.seen), seen_at(s_.seen_at);
    std::uint64_t before = seen.load(simt::acquire);
    if (before == chunk) return now - seen_at.load(simt::relaxed) > limit_ns;
    seen_at.store(now, simt::relaxed);
    seen.store(chunk, simt::release);
    return false;
  }

 private:
  GROSR_DEVICE bool add_stored(std::uint64_t chunk, std::uint32_t n) const {
    const std::uint64_t last = (std::uint64_t{1} << shift_) / chunk_words - 1;
    const std::uint32_t before =
        simt::global_ref<std::uint32_t>(stored_[chunk & last]).fetch_add(n, simt::in_turn());
    if (before + n != stored_chunk(chunk, shift_)) return false;
    arrivals_ref(*simt::in_global_memory(s_.arrives)).push({chunk, s_.from});
    return true;
  }
  GROSR_DEVICE std::uint64_t known_limit() const {
    return simt::global_ref<std::uint64_t>(s_.limit).load(simt::before_store());
  }
  /// The limit, after a look at the next chunks that may have been freed.
  GROSR_DEVICE GROSR_NOINLINE static std::uint64_t look_further(link_sender* link,
                                                                std::uint64_t limit) {
    return look<4>(*link, link->freed, link->shift, limit);
  }
  /// The same of more chunks: a look takes as long as one load, and who looks meanwhile sees the
  /// same.
  GROSR_DEVICE GROSR_NOINLINE static void look_far(link_sender* link, std::uint64_t limit) {
    static_cast<void>(look<16>(*link, link->freed, link->shift, limit));
  }
  /// Chunks in order, for a message may go on in the next chunk.
  template <unsigned Ahead>
  GROSR_DEVICE static std::uint64_t look(link_sender& link, std::uint64_t* freed,
                                         std::uint32_t shift, std::uint64_t limit) {
    const std::uint64_t chunks = (std::uint64_t{1} << shift) / chunk_words,
                        from = limit / chunk_words - chunks;
    bool is_free[Ahead];
    for (unsigned k = 0; k < Ahead; ++k)
      // A2: pairs with R2 in link_in::give_back(): the receiver has read what it gives back.
      is_free[k] =
          simt::global_ref<std::uint64_t, simt::scope::system>(freed[(from + k) & (chunks - 1)])
              .load(simt::before_store()) == freed_chunk(from + k);
    std::uint32_t n = 0;
    for (bool all = true; bool is : is_free) n += (all = all && is) ? 1 : 0;
    if (n == 0) return limit;
    limit += std::uint64_t{n} * chunk_words;
    simt::global_ref<std::uint64_t>(link.limit).store_max(limit, simt::in_turn());
    return limit;
  }

  link_sender& s_;
  // Of it; in registers, since atomics keep a compiler from keeping what lies in memory.
  simt::bus_word* words_;
  std::uint32_t* stored_;
  std::uint32_t shift_;
};

/// Takes from a link. Any lanes of the receiving rank.
class link_in {
 public:
  GROSR_DEVICE explicit link_in(link_receiver& r) : r_(r), words_(r.words), shift_(r.shift) {}

  /// The word of a ticket, which a lane has stored or is about to: waits until it can be seen. `w`:
  /// what was found there.
  GROSR_DEVICE simt::bus_word load(std::uint64_t ticket) const {
    return settled(ticket, peek(ticket));
  }
  GROSR_DEVICE simt::bus_word settled(std::uint64_t ticket, simt::bus_word w) const {
    const std::uint32_t lap = lap_of(ticket, shift_);
    if (((w.w[3] ^ lap) & lap_bit) == 0) [[likely]]
      return w;
    simt::wait_until(
        [&] {
          w = peek(ticket);
          return ((w.w[3] ^ lap) & lap_bit) == 0;
        },
        simt::forever, nullptr, "the sender of a word");
    return w;
  }

  /// What lies where the word of a ticket is, or will be.
  GROSR_DEVICE simt::bus_word peek(std::uint64_t ticket) const {
    return simt::bus_load(place_of(ticket));
  }

  /// One lane, which has met those that read it: a chunk was consumed. Step 8.
  GROSR_DEVICE void give_back(std::uint64_t chunk) const {
    const std::uint64_t last = (std::uint64_t{1} << shift_) / chunk_words - 1;
    std::uint64_t& freed = r_.freed[chunk & last];
    // R2: what was read; pairs with A2 in link_out::look(). No fence, which would empty the
    // cache of the multiprocessor.
    if (r_.far != 0)
      simt::global_ref<std::uint64_t, simt::scope::system>(freed).store(freed_chunk(chunk),
                                                                        simt::release);
    else
      simt::global_ref<std::uint64_t>(freed).store(freed_chunk(chunk), simt::release);
  }

  GROSR_DEVICE std::uint32_t from() const { return r_.from; }
  GROSR_DEVICE link_receiver& state() const { return r_; }

 private:
  GROSR_DEVICE const simt::bus_word* place_of(std::uint64_t ticket) const {
    return words_ + (ticket & ((std::uint64_t{1} << shift_) - 1));
  }
  link_receiver& r_;
  const simt::bus_word* words_;
  std::uint32_t shift_;
};

}  // namespace grosr::net
