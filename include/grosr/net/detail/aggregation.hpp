// Messages of a warp to one rank leave together: docs/internals/messages.md, "Buffers of a warp".
#pragma once

#include "grosr/net/detail/receive.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::net {

/// What an endpoint has sent so far, of a lane.
struct sent_so_far {
  bool buffers;    ///< the rank's warps have buffers
  bool some;       ///< the next message need not leave at once
  bool collected;  ///< of its messages some may be in its warp's buffers
};

/// The buffers of the lanes that make `mask`, who call together. Spawner: of the runtime of the
/// rank. Nobody runs code of users while it has the lock of the buffers, and so any lane may wait
/// for that, also in a task that runs where it came.
template <class Spawner>
class aggregator {
 public:
  using shared = typename Spawner::shared;

  /// Lanes of `mask` together, those with `wants`: hand a request of Words words to a rank over.
  /// The first of a lane goes at once, if there is room: most tasks that send one send no other.
  /// What follows is collected.
  template <unsigned Words, class Mask>
  GROSR_DEVICE static sent_so_far post(Spawner self, Mask mask, sent_so_far s, bool wants,
                                       std::uint32_t to, const message<Words>& m) {
    shared* const block = &self.memory();
    if (!s.buffers) {
      outbox<Spawner>::template send<Words>(block, mask, wants, to, m);
      return s;
    }
    const bool first = !simt::any(mask, s.some);
    s.some = s.some || wants;
    if (first) {
      if (outbox<Spawner>::template send_if_room<Words>(block, mask, wants, to, m)) wants = false;
      if (!simt::any(mask, wants)) return s;
    }
    add<Words>(self, mask, wants, to, m);
    s.collected = s.collected || wants;
    return s;
  }

 private:
  /// Lanes of `mask` together, those with `wants`: put a request of Words words to a rank into
  /// their warp's buffers; buffers that are full then leave. While there is no room they receive;
  /// where there is nothing to receive either, what is in a buffer becomes tasks.
  template <unsigned Words, class Mask>
  GROSR_DEVICE static void add(Spawner& self, Mask mask, bool wants, std::uint32_t to,
                               const message<Words>& m) {
    warp_buffers& w = buffers_of(self);
    const unsigned lane = simt::lane_id();
    const bool leads = lane == simt::lowest_bit(mask);
    const std::uint32_t size = state_of(self.get_view()).buffer_words;
    bool left = wants;
    std::uint32_t chunks = 0, turns = 0;
    GROSR_NO_UNROLL
    for (;;) {
      take_lock(w, mask, leads);
      const std::uint32_t group = simt::match_any(mask, left ? to : ~0u);
      const std::uint32_t had = left ? simt::shared_load(w.counts[to]) : 0;
      const std::uint32_t at = had + simt::rank_in(group, lane) * Words;
      const bool fits = left && at + Words <= size;
      if (fits)
        for (unsigned i = 0; i < Words; ++i)
          w.words[to * size + at + i] = {{m.content[3 * i], m.content[3 * i + 1],
                                          m.content[3 * i + 2],
                                          i == 0 ? m.header | first_bit : 0u}};
      const std::uint32_t all = simt::ballot(mask, fits);
      const std::uint32_t now = had + simt::popcount(all & group) * Words;
      const bool acts = left && lane == simt::lowest_bit(group);
      if (acts) simt::shared_store(w.counts[to], now);
      // Full: another group of this size would not fit.
      const std::uint32_t next = simt::popcount(group) * Words;
      std::uint32_t full = simt::ballot(mask, acts && now + next > size);
      left = left && !fits;
      bool room = true;
      GROSR_NO_UNROLL
      for (; full != 0; full &= full - 1) {
        const left_as how = leave(self, mask, simt::shuffle(mask, to, simt::lowest_bit(full)));
        if (how == left_as::no_room) room = false;
        if (how == left_as::whole_chunk) ++chunks;
      }
      give_lock_back(w, mask, leads);
      const std::uint32_t some = simt::ballot(mask, left);
      if (some == 0) break;
      if (!room) [[unlikely]]
        turns =
            receive(&self.memory(), mask, simt::shuffle(mask, to, simt::lowest_bit(some)), turns);
      if (turns == aborted) return;
    }
    take_in(self, mask, chunks);
  }

 public:
  /// Lanes of `mask` together: what is in their warp's buffers leaves. Other lanes of the warp that
  /// are in there wait for nothing of these. Tasks may run meanwhile: what they send leaves,
  /// too; what others send while that waits for room stays, and the warp's `collected` says so.
  GROSR_DEVICE GROSR_NOINLINE static void flush(shared* block, std::uint32_t mask) {
    Spawner self(simt::in_block_shared(block));
    with_mask(mask, [&](auto lanes) { take_in(self, lanes, leave_all(self, lanes)); });
    if (take_collected(self, mask)) leave_all(self, mask);
  }

  /// Lanes of `mask` together, after tasks ran that came as messages: what these sent leaves.
  /// Whether there was something; others may have run meanwhile, and started more.
  GROSR_DEVICE static bool flush_collected(shared* block, std::uint32_t mask) {
    Spawner self(simt::in_block_shared(block));
    const bool some = take_collected(self, mask);
    if (some) flush(block, mask);
    return some;
  }

 private:
  enum class left_as : std::uint8_t { no_room, words, whole_chunk };

  GROSR_DEVICE static warp_buffers& buffers_of(Spawner& self) {
    return self.memory().of_tasks.warps[simt::warp_id()];
  }
  template <class Mask>
  GROSR_DEVICE static void take_lock(warp_buffers& w, Mask mask, bool leads) {
    bool took = false;
    if (leads) took = simt::shared_try_lock(w.lock);
    if (!simt::any(mask, took)) [[unlikely]]
      wait_for_lock(&w, mask, leads);
  }
  GROSR_DEVICE GROSR_NOINLINE static void wait_for_lock(warp_buffers* w, std::uint32_t mask,
                                                        bool leads) {
    bool took = false;
    GROSR_NO_UNROLL
    for (unsigned turn = 0;; ++turn) {
      if (leads) took = simt::shared_try_lock(w->lock);
      if (simt::any(mask, took)) return;
      simt::pause(turn, "the buffers of the warp");
    }
  }
  template <class Mask>
  GROSR_DEVICE static void give_lock_back(warp_buffers& w, Mask mask, bool leads) {
    simt::sync_warp(mask);
    if (leads) simt::shared_store(w.lock, 0);
  }

  /// Lanes of `mask` together: whether tasks that ran here have put something into the buffers.
  template <class Mask>
  GROSR_DEVICE static bool take_collected(Spawner& self, Mask mask) {
    std::uint32_t& collected = arrivals_of(self).collected;
    bool some = false;
    if (simt::lane_id() == simt::lowest_bit(mask)) {
      some = simt::shared_load(collected) != 0;
      if (some) simt::shared_store(collected, 0);
    }
    return simt::any(mask, some);
  }

  /// Lanes of `mask` together: all buffers leave. How many chunks that made whole.
  template <class Mask>
  GROSR_DEVICE static std::uint32_t leave_all(Spawner& self, Mask mask) {
    warp_buffers& w = buffers_of(self);
    const unsigned leader = simt::lowest_bit(mask);
    const bool leads = simt::lane_id() == leader;
    const std::uint32_t ranks = state_of(self.get_view()).ranks;
    std::uint32_t chunks = 0, turns = 0;
    GROSR_NO_UNROLL
    for (std::uint32_t to = 0; to < ranks;) {
      if (simt::shuffle(mask, simt::shared_load(w.counts[to]), leader) == 0) {
        ++to;
        continue;
      }
      take_lock(w, mask, leads);
      const left_as how = leave(self, mask, to);
      give_lock_back(w, mask, leads);
      if (how == left_as::whole_chunk) ++chunks;
      if (how == left_as::no_room) turns = receive(&self.memory(), mask, to, turns);
      if (turns == aborted) break;
    }
    return chunks;
  }

  /// Lanes of `mask` together, without the lock: those who fill chunks take as many in, if some
  /// have come.
  template <class Mask>
  GROSR_DEVICE static void take_in(Spawner& self, Mask mask, std::uint32_t chunks) {
    GROSR_NO_UNROLL
    for (; chunks != 0; --chunks)
      if (!receiver<Spawner>::template take<link_class::request>(&self.memory(), mask,
                                                                 coming_tasks::run))
        break;
  }

  /// Lanes of `mask` together, without the lock, when there was no room for what is in the buffer
  /// for a rank: take a chunk in; or wait; or, when they have done so for many turns, the buffer's
  /// messages become tasks. How many turns now.
  GROSR_DEVICE GROSR_NOINLINE static std::uint32_t receive(shared* block, std::uint32_t mask,
                                                           std::uint32_t to, std::uint32_t turns) {
    Spawner self(simt::in_block_shared(block));
    constexpr std::uint32_t most_turns = 256;
    if (simt::any(mask, self.aborted())) return aborted;
    if (receiver<Spawner>::template take<link_class::request>(block, mask, coming_tasks::run)) {
      simt::pause(0, "room for messages");
      return 0;
    }
    if (turns + 1 == most_turns) {
      defer(self, mask, to);
      return 0;
    }
    simt::pause(turns, "room for messages");
    return turns + 1;
  }
  static constexpr std::uint32_t aborted = ~std::uint32_t{0};

  /// Lanes of `mask` together, which have the lock: the words for a rank go into its link, if there
  /// is room. Others may have reserved words in between: then the lanes receive until there is
  /// room, and start what comes, for it may wait for what follows these words.
  template <class Mask>
  GROSR_DEVICE static left_as leave(Spawner& self, Mask mask, std::uint32_t to) {
    warp_buffers& w = buffers_of(self);
    rank_state& s = state_of(self.get_view());
    const link_out link = s.to(link_class::request, to);
    const unsigned leader = simt::lowest_bit(mask);
    simt::sync_warp(mask);  // the words are there
    const std::uint32_t n = simt::shared_load(w.counts[to]);
    std::uint64_t first = no_ticket;
    bool fits = true;
    if (simt::lane_id() == leader) {
      bool tight = (w.tight >> to & 1) != 0;
      first = n == 0 ? no_ticket : link.claim(n, fits, tight);
      w.tight = (w.tight & ~(1u << to)) | (tight ? 1u : 0u) << to;
    }
    if (n == 0) return left_as::words;
    first = simt::shuffle(mask, first, leader);
    if (first == no_ticket) return left_as::no_room;
    if (simt::shuffle(mask, fits ? 0u : 1u, leader) != 0) [[unlikely]]
      if (!wait_for_room(&self.memory(), mask, to, first + n)) return left_as::words;
    const bool whole = store(link, w.words + to * s.buffer_words, mask, first, n);
    if (simt::lane_id() == leader) {
      self.note_pushed();
      simt::shared_store(w.counts[to], 0);
    }
    simt::sync_warp(mask);
    return whole ? left_as::whole_chunk : left_as::words;
  }

  /// Lanes of `mask` together, with tickets before `end`. Who has tickets before these has room
  /// first. False: the rank is aborted; their places are not theirs yet, and the words are dropped.
  GROSR_DEVICE GROSR_NOINLINE static bool wait_for_room(shared* block, std::uint32_t mask,
                                                        std::uint32_t to, std::uint64_t end) {
    Spawner self(simt::in_block_shared(block));
    const link_out link = state_of(self.get_view()).to(link_class::request, to);
    const bool leads = simt::lane_id() == simt::lowest_bit(mask);
    GROSR_NO_UNROLL
    for (;;) {
      if (simt::any(mask, self.aborted())) {
        if (leads) simt::shared_store(buffers_of(self).counts[to], 0);
        return false;
      }
      if (simt::any(mask, leads && link.has_room(end))) return true;
      // Where something came, too: others of the warp may be who makes room.
      const bool took =
          receiver<Spawner>::template take<link_class::request>(block, mask, coming_tasks::start);
      simt::pause(took ? 0 : 2, "room for messages");
    }
  }

  /// Lanes of `mask` together: stores n words at their tickets. Whether a chunk is whole now.
  template <class Mask>
  GROSR_DEVICE static bool store(const link_out& link, const simt::bus_word* words, Mask mask,
                                 std::uint64_t first, std::uint32_t n) {
    const std::uint32_t lanes = simt::popcount(mask);
    GROSR_NO_UNROLL
    for (std::uint32_t i = simt::rank_in(mask, simt::lane_id()); i < n; i += lanes)
      link.store(first + i, words[i].w, words[i].w[3]);
    simt::sync_warp(mask);
    bool filled = false;
    if (simt::lane_id() == simt::lowest_bit(mask)) filled = link.count_stored(first, n);
    return simt::any(mask, filled);
  }

  /// Lanes of `mask` together, without the lock: each message in the buffer for a rank becomes a
  /// task.
  GROSR_DEVICE static void defer(Spawner& self, std::uint32_t mask, std::uint32_t to) {
    warp_buffers& w = buffers_of(self);
    const std::uint32_t rank = simt::rank_in(mask, simt::lane_id()), lanes = simt::popcount(mask);
    take_lock(w, mask, rank == 0);
    simt::sync_warp(mask);
    const std::uint32_t n = simt::shared_load(w.counts[to]);
    const simt::bus_word* const words = w.words + to * state_of(self.get_view()).buffer_words;
    GROSR_NO_UNROLL
    for (std::uint32_t i = rank; i < n; i += lanes) {
      if ((words[i].w[3] & first_bit) == 0) continue;
      message<most_words> m{};
      m.header = words[i].w[3] & ~first_bit;
      const unsigned of = header_word::words_of(m.header);
      for (unsigned k = 0; k < of; ++k)
        for (unsigned j = 0; j < 3; ++j) m.content[3 * k + j] = words[i + k].w[j];
      outbox<Spawner>::template defer<link_class::request>(&self.memory(), to, m);
    }
    simt::sync_warp(mask);
    if (rank == 0) simt::shared_store(w.counts[to], 0);
    give_lock_back(w, mask, rank == 0);
    // The task that runs here may go on for long.
    if (rank == 0) Spawner::publish_held(&self.memory());
    simt::sync_warp(mask);
  }
};

}  // namespace grosr::net
