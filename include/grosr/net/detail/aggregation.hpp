// Messages of a warp to one rank leave together: docs/internals/messages.md, "Buffers of a warp".
#pragma once

#include "grosr/net/detail/receive.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::net {

/// The buffers of the lanes that make `mask`, who call together. Spawner: of the runtime of the
/// rank.
template <class Spawner>
class aggregator {
 public:
  using shared = typename Spawner::shared;

  /// Lanes of `mask` together, those with `wants`: put a request of Words words to a rank into
  /// their warp's buffers; buffers that are full then leave. False: other lanes of the warp are in
  /// there now, and nothing was done.
  template <unsigned Words>
  GROSR_DEVICE static bool add(Spawner& self, std::uint32_t mask, bool wants, std::uint32_t to,
                               const message<Words>& m) {
    warp_buffers& w = buffers_of(self);
    const unsigned lane = simt::lane_id();
    const bool leads = lane == simt::lowest_bit(mask);
    if (!take_lock(w, mask, leads)) return false;
    const std::uint32_t size = state_of(self.get_view()).buffer_words;
    bool left = wants;
    GROSR_NO_UNROLL
    do {
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
      GROSR_NO_UNROLL
      for (; full != 0; full &= full - 1)
        leave(self, mask, simt::shuffle(mask, to, simt::lowest_bit(full)));
    } while (simt::any(mask, left));
    give_lock_back(w, mask, leads);
    return true;
  }

  /// Lanes of `mask` together: what is in their warp's buffers leaves. Other lanes of the warp that
  /// are in there wait for nothing of these.
  GROSR_DEVICE GROSR_NOINLINE static void flush(shared* block, std::uint32_t mask) {
    Spawner self(simt::in_block_shared(block));
    warp_buffers& w = buffers_of(self);
    const bool leads = simt::lane_id() == simt::lowest_bit(mask);
    GROSR_NO_UNROLL
    for (unsigned turn = 0; !take_lock(w, mask, leads); ++turn)
      simt::pause(turn, "the buffers of the warp");
    const std::uint32_t ranks = state_of(self.get_view()).ranks;
    GROSR_NO_UNROLL
    for (std::uint32_t to = 0; to < ranks; ++to)
      if (simt::shuffle(mask, simt::shared_load(w.counts[to]), simt::lowest_bit(mask)) != 0)
        leave(self, mask, to);
    give_lock_back(w, mask, leads);
  }

 private:
  GROSR_DEVICE static warp_buffers& buffers_of(Spawner& self) {
    return self.memory().of_tasks.warps[simt::warp_id()];
  }
  GROSR_DEVICE static bool take_lock(warp_buffers& w, std::uint32_t mask, bool leads) {
    bool took = false;
    if (leads) took = simt::shared_try_lock(w.lock);
    return simt::any(mask, took);
  }
  GROSR_DEVICE static void give_lock_back(warp_buffers& w, std::uint32_t mask, bool leads) {
    simt::sync_warp(mask);
    if (leads) simt::shared_store(w.lock, 0);
  }

  /// Lanes of `mask` together, which have the lock: the words for a rank go into its link. Those
  /// who fill a chunk take one in, if one has come.
  GROSR_DEVICE static void leave(Spawner& self, std::uint32_t mask, std::uint32_t to) {
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
      first = link.claim(n, fits, tight);
      w.tight = (w.tight & ~(1u << to)) | (tight ? 1u : 0u) << to;
    }
    first = simt::shuffle(mask, first, leader);
    const bool now = simt::shuffle(mask, first != no_ticket && fits ? 1u : 0u, leader) != 0;
    if (!now) [[unlikely]] {
      leave_when_there_is_room(&self.memory(), mask, to, n, first);
    } else {
      if (store(link, w.words + to * s.buffer_words, mask, first, n))
        receiver<Spawner>::template take<link_class::request>(&self.memory(), mask);
    }
    if (simt::lane_id() == leader) {
      self.note_pushed();
      simt::shared_store(w.counts[to], 0);
    }
    simt::sync_warp(mask);
  }

  /// Lanes of `mask` together: stores n words at their tickets. Whether a chunk is whole now.
  GROSR_DEVICE static bool store(const link_out& link, const simt::bus_word* words,
                                 std::uint32_t mask, std::uint64_t first, std::uint32_t n) {
    const std::uint32_t lanes = simt::popcount(mask);
    GROSR_NO_UNROLL
    for (std::uint32_t i = simt::rank_in(mask, simt::lane_id()); i < n; i += lanes)
      link.store(first + i, words[i].w, words[i].w[3]);
    simt::sync_warp(mask);
    bool filled = false;
    if (simt::lane_id() == simt::lowest_bit(mask)) filled = link.count_stored(first, n);
    return simt::any(mask, filled);
  }

  /// Lanes of `mask` together, which have the lock: n words for a rank, which may have tickets, go
  /// into its link when there is room. Meanwhile they receive; where there is nothing to receive
  /// either, messages without tickets become tasks.
  GROSR_DEVICE GROSR_NOINLINE static void leave_when_there_is_room(
      shared* block, std::uint32_t mask, std::uint32_t to, std::uint32_t n, std::uint64_t first) {
    Spawner self(simt::in_block_shared(block));
    rank_state& s = state_of(self.get_view());
    const simt::bus_word* const words = buffers_of(self).words + to * s.buffer_words;
    const link_out link = s.to(link_class::request, to);
    const unsigned leader = simt::lowest_bit(mask);
    constexpr unsigned attempts = 256;
    bool fits = false, tight = true;
    unsigned idle = 0;
    GROSR_NO_UNROLL
    for (;;) {
      const bool took = receiver<Spawner>::template take<link_class::request>(block, mask);
      idle = took ? 0 : idle + 1;
      const bool aborted = simt::any(mask, self.aborted());
      if (first == no_ticket) {
        if (aborted || idle == attempts) return defer(block, words, n, to, mask);
        tight = true;
        if (simt::lane_id() == leader) first = link.claim(n, fits, tight);
        first = simt::shuffle(mask, first, leader);
      } else {
        // Who has tickets before these has room first.
        if (aborted) return;  // dropped: their places are not theirs yet
        if (simt::lane_id() == leader) fits = link.has_room(first + n);
      }
      if (simt::shuffle(mask, first != no_ticket && fits ? 1u : 0u, leader) != 0) break;
      if (!took) simt::pause(first == no_ticket ? idle : 2, "room for messages");
    }
    static_cast<void>(store(link, words, mask, first, n));
  }

  /// Each message of n words becomes a task.
  GROSR_DEVICE GROSR_NOINLINE static void defer(shared* block, const simt::bus_word* words,
                                                std::uint32_t n, std::uint32_t to,
                                                std::uint32_t mask) {
    const std::uint32_t rank = simt::rank_in(mask, simt::lane_id()), lanes = simt::popcount(mask);
    GROSR_NO_UNROLL
    for (std::uint32_t i = rank; i < n; i += lanes) {
      if ((words[i].w[3] & first_bit) == 0) continue;
      message<most_words> m{};
      m.header = words[i].w[3] & ~first_bit;
      const unsigned of = header_word::words_of(m.header);
      for (unsigned k = 0; k < of; ++k)
        for (unsigned j = 0; j < 3; ++j) m.content[3 * k + j] = words[i + k].w[j];
      outbox<Spawner>::template defer<link_class::request>(block, to, m);
    }
  }
};

}  // namespace grosr::net
