// Waves: relaxing edges out of order, by blocks that each keep a part of the frontier.
//
// A block keeps entries in a ring in block-shared memory and takes them in the order in which they
// came: 32 a round, whose edges it relaxes by an atomic minimum on the label of the other end; a
// few of few edges are followed by one warp alone. A vertex that was improved is a new entry of the
// same block. A block that has much hands a part to the pool when others wait there. So an entry's
// way to the next one has two accesses of memory on it: the column, and the label together with the
// row of the next entry.
//
//   label    distance << 32 | parent; the least wins, so the result does not depend on the order
//   pending  a bit for each vertex that is to be relaxed later: it is at `limit` or beyond, or there
//            was no room for its entry. Bits take no more room when they are set again.
//   work     entries in the pool, and helpers that hold some: 0 means that the wave has ended
#pragma once

#include "grosr/graph/detail/block.hpp"
#include "grosr/graph/detail/labels.hpp"
#include "grosr/graph/tuning.hpp"
#include "grosr/queue/ring.hpp"

namespace grosr::graphs {

/// A vertex to be relaxed, or a part of its edges.
struct alignas(16) wave_entry {
  vertex v;
  std::uint32_t begin, end;  ///< of its edges
  std::uint32_t distance;    ///< that it had; as the label has it
};

/// Device memory.
struct wave_state {
  alignas(128) std::uint32_t work;
  alignas(128) std::uint32_t idle;   ///< helpers without entries
  alignas(128) std::uint32_t limit;  ///< entries from this distance on wait in `pending`
  std::uint32_t marked;              ///< something is pending
  std::uint32_t refused;             ///< something nearer than the limit is, for want of room
  std::uint32_t no_early_exit;       ///< much work does not end the wave
  std::uint32_t farthest;            ///< distance of any entry that was relaxed, at most
  std::uint64_t shared_at;  ///< when (clock_ns) the coordinator first gave entries; 0: it did not
};

/// What a wave works on. `Cost` says how far an edge leads: next(distance, edge), and is_finite()
/// of that; whether entries may have been overtaken (may_be_stale); whether an edge may lead no
/// farther (may_stand_still); and whether the wave ends at what is better done in steps of the
/// whole team, large vertices and large frontiers (yields_hubs).
template <class Cost>
struct wave_view {
  graph_ref graph;
  Cost cost;
  std::uint64_t* label;
  std::uint32_t* visited;  ///< a bit for each vertex that has a label; null: not kept
  std::uint32_t* pending;
  wave_state* state;
  queue::ring_ref<wave_entry> pool;
  wave_tuning tuning;
};

inline constexpr std::uint32_t wave_ring = 512;

struct wave_store {
  wave_entry ring[wave_ring];
  std::uint16_t wide[64];
  std::uint32_t popped[4];
  // Words of three rounds in turn: those written in one are read until the next one ends.
  std::uint32_t added[3], wide_count[3], heavy[3], limit[3], idle[3];
  std::uint32_t farthest;
  std::uint32_t bound;  ///< the least distance at which this block ended the wave
  std::uint32_t marked, verdict;
  std::uint32_t alone;  ///< entries that one warp has left
};

/// A block's part in a wave: see expand_wave() below.
template <class Cost, class Team, class Context>
class expander {
 public:
  GROSR_DEVICE expander(const wave_view<Cost>& v, Team& c, Context& context, bool leads)
      : v_(v),
        row_(simt::in_global_memory(v.graph.row)),
        column_(simt::in_global_memory(v.graph.column)),
        label_(simt::in_global_memory(v.label)),
        visited_(v.visited != nullptr ? simt::in_global_memory(v.visited) : nullptr),
        team_(c),
        context_(context),
        leads_(leads),
        yields_(v.state->no_early_exit == 0) {}

  GROSR_DEVICE bool expand_wave(std::uint32_t seeds) {
    auto& s = store();
    const unsigned t = simt::thread_id();
    head_ = 0;
    tail_ = seeds;
    if (t == 0) {
      s.marked = s.farthest = 0;
      s.bound = unreached;
      clear(0, limit().load(simt::relaxed), idle().load(simt::relaxed));
    }
    simt::sync_block();
    bool holds = seeds != 0;
    for (unsigned turn = 0;; turn = (turn + 1) % 3, ++rounds_) {
      if (head_ == tail_) {
        const verdict answer = refill(holds, turn);
        if (answer != verdict::go) return answer != verdict::leave;
        holds = true;
      }
      if (tail_ - head_ <= alone_most) {
        go_alone(turn);
        if (tail_ == 0) continue;
      }
      advance(turn);
    }
  }

  GROSR_DEVICE static wave_store& store() { return block_scratch<wave_store>(); }

 private:
  static constexpr unsigned lanes_each = 4;       // that relax an entry
  static constexpr std::uint32_t alone_most = 8;  // entries that one warp goes on with
  static constexpr std::uint32_t most_rounds_alone = 1024;
  enum class verdict : std::uint32_t { go, over, leave };

  /// One round: relaxes up to a block's worth of entries.
  GROSR_DEVICE void advance(unsigned turn) {
    auto& s = store();
    const unsigned t = simt::thread_id();
    const std::uint32_t held = tail_ - head_;
    const std::uint32_t most = simt::block_size() / lanes_each;
    const std::uint32_t n = held < most ? held : most;
    // By the last thread, which mostly has no entry: nobody waits for these words.
    const bool clears = t == simt::block_size() - 1;
    std::uint32_t limit_seen = 0, idle_seen = 0;
    if (clears) {
      // After an abort all entries are put aside, and the wave ends.
      bool ends = false;
      if (rounds_ % 256 == 255) {
        context_.progressed();
        ends = context_.aborted();
      }
      limit_seen = ends ? 0 : limit().load(simt::relaxed);
      idle_seen = idle().load(simt::relaxed);
    }
    limit_ = s.limit[turn];
    const std::uint32_t bound = shared_word(s.bound).load(simt::relaxed);
    if (bound < limit_) limit_ = bound;
    // A warp without entries has nothing to do here.
    if (t / simt::warp_size * (simt::warp_size / lanes_each) < n) relax_entries(n, turn);
    if (clears) clear((turn + 1) % 3, limit_seen, idle_seen);
    simt::sync_block();
    const std::uint32_t wide = s.wide_count[turn];
    if (wide != 0) {
      for (std::uint32_t i = 0; i < wide; ++i) relax_wide(s.ring[s.wide[i]], turn);
      simt::sync_block();
    }
    const std::uint32_t room = wave_ring - held, added = s.added[turn];
    head_ += n;
    tail_ += added < room ? added : room;
    if (t == 0 && (s.heavy[turn] > v_.tuning.heavy || tail_ - head_ > v_.tuning.much) &&
        ends_at_much())
      end_at(s.ring[(tail_ - 1) % wave_ring].distance);
    if (tail_ - head_ > v_.tuning.share_above) share(s.idle[(turn + 1) % 3]);
  }

  /// Whole block, which holds few entries: one warp goes on with them, which waits for no other.
  GROSR_DEVICE void go_alone(unsigned turn) {
    auto& s = store();
    if (simt::warp_id() == 0) {
      const std::uint32_t left = walk(turn);
      if (simt::lane_id() == 0) s.alone = left;
    }
    simt::sync_block();
    head_ = 0;
    tail_ = s.alone;
    rounds_ |= 255;  // the next round looks whether to go on
  }

  /// Warp 0: follows every entry with four lanes, an edge each, as long as it leads to one other at
  /// most, which is of few edges. How many entries lie in the ring then, from place 0 on.
  GROSR_DEVICE std::uint32_t walk(unsigned turn) {
    auto& s = store();
    const unsigned lane = simt::lane_id(), part = lane % lanes_each, first = lane - part;
    const std::uint32_t held = tail_ - head_;
    wave_entry e{no_vertex, 0, 0, 0}, next = e;
    if (lane / lanes_each < held) e = s.ring[(head_ + lane / lanes_each) % wave_ring];
    limit_ = s.limit[turn];
    const std::uint32_t bound = shared_word(s.bound).load(simt::relaxed);
    if (bound < limit_) limit_ = bound;
    bool improved = part == 0 && e.begin != e.end;  // `next` is an entry
    next = e;
    vertex to = no_vertex, back = no_vertex;
    if (part < e.end - e.begin) to = column_[e.begin + part];
    bool goes_on =
        !simt::any(simt::full_mask, e.end - e.begin > lanes_each || e.distance >= limit_);
    bool owns = false;  // nobody else lowers labels now
    for (std::uint32_t rounds = 0; goes_on;) {
      next = {to, 0, 0, 0};
      improved = false;
      vertex onward = no_vertex;  // where the first edge of `next` leads
      const bool alone = owns && !meet(to, to != back);
      if (to != back) {
        const std::uint64_t before = reach(e, e.begin + part, next, alone);
        if (next.begin != next.end) onward = column_[next.begin];
        improved = is_entry(before, next);
      }
      if (Cost::yields_hubs && e.end != e.begin && e.distance > far_) far_ = e.distance;
      simt::sync_warp();  // what one lane stored, the others see
      const std::uint32_t votes = simt::ballot(simt::full_mask, improved);
      const std::uint32_t mine = votes >> first & simt::first_bits(lanes_each);
      goes_on = votes != 0 && ++rounds < most_rounds_alone &&
                !simt::any(simt::full_mask, (mine & (mine - 1)) != 0 ||
                                                (improved && next.end - next.begin > lanes_each));
      if (!goes_on) break;
      const unsigned from = first + (mine != 0 ? simt::lowest_bit(mine) : 0);
      back = e.v;
      e.v = simt::shuffle(simt::full_mask, next.v, from);
      e.begin = simt::shuffle(simt::full_mask, next.begin, from);
      e.end = simt::shuffle(simt::full_mask, next.end, from);
      e.distance = simt::shuffle(simt::full_mask, next.distance, from);
      onward = simt::shuffle(simt::full_mask, onward, from);
      if (mine == 0) {
        e = {no_vertex, 0, 0, 0};
        back = no_vertex;
      }
      to = back;
      if (part < e.end - e.begin) to = part == 0 ? onward : column_[e.begin + part];
      if (rounds % 32 == 0) {
        owns = is_only_holder();
        limit_ = simt::shuffle(simt::full_mask, limit().load(simt::relaxed), 0);
        if (simt::any(simt::full_mask, e.distance >= limit_)) {
          improved = part == 0 && e.begin != e.end;
          next = e;
          break;
        }
      }
    }
    const std::uint32_t votes = simt::ballot(simt::full_mask, improved);
    if (improved) s.ring[simt::rank_in(votes, lane)] = next;
    if (improved && ends_at_much() && next.end - next.begin > v_.tuning.heavy)
      end_at(next.distance);
    return simt::popcount(votes);
  }

  /// Whole warp, which follows entries: whether this block alone holds any. It stays so as long as
  /// it gives none away, and then labels may be read through the cache and stored.
  GROSR_DEVICE bool is_only_holder() {
    std::uint32_t holders = 0;
    if (simt::lane_id() == 0) holders = work().load(simt::acquire);
    if (simt::shuffle(simt::full_mask, holders, 0) != 1) return false;
    simt::sync_warp();
    simt::fence(simt::acquire);  // every lane's cache
    return true;
  }

  /// Whole warp: whether two of the lanes that go anywhere go to the same vertex.
  GROSR_DEVICE static bool meet(vertex to, bool goes) {
    const std::uint32_t all = simt::ballot(simt::full_mask, goes);
    if (simt::popcount(all) < 2) return false;
    const std::uint32_t same = simt::match_any(simt::full_mask, to) & all;
    return simt::any(simt::full_mask, goes && (same & (same - 1)) != 0);
  }

  GROSR_DEVICE bool ends_at_much() const { return Cost::yields_hubs && yields_; }

  /// Entries of this distance and more are left to what comes after the wave.
  GROSR_DEVICE void end_at(std::uint32_t distance) {
    limit().fetch_min(distance, simt::relaxed);
    shared_word(store().bound).fetch_min(distance, simt::relaxed);
  }

  /// One thread: prepares a round.
  GROSR_DEVICE void clear(unsigned turn, std::uint32_t limit_seen, std::uint32_t idle_seen) {
    auto& s = store();
    s.added[turn] = s.wide_count[turn] = s.heavy[turn] = 0;
    s.limit[turn] = limit_seen;
    s.idle[turn] = idle_seen;
  }

  /// Four lanes an entry, an edge each: few instructions one after the other, which is what a round
  /// waits for besides memory.
  GROSR_DEVICE void relax_entries(std::uint32_t n, unsigned turn) {
    auto& s = store();
    const std::uint32_t mine = simt::thread_id() / lanes_each;
    wave_entry e{no_vertex, 0, 0, 0};
    if (mine < n) e = s.ring[(head_ + mine) % wave_ring];
    const bool first = simt::thread_id() % lanes_each == 0;
    // One for the warp, so that the lanes of an entry agree: another thread may lower it just now.
    limit_ = simt::shuffle(simt::full_mask, limit_, 0);
    if (e.distance >= limit_) {
      if (first && mine < n) mark(e.v);
      e.end = e.begin;
    } else if (e.end - e.begin > wide_degree) {
      if (first)
        s.wide[simt::shared_add(s.wide_count[turn], 1)] =
            static_cast<std::uint16_t>((head_ + mine) % wave_ring);
      e.end = e.begin;
    } else if (Cost::may_be_stale && mine < n &&
               distance_of(label(e.v).load(simt::relaxed)) != e.distance) {
      e.end = e.begin;
    }
    if (Cost::yields_hubs && mine < n && e.distance < limit_ && e.distance > far_)
      far_ = e.distance;
    std::uint32_t edge = e.begin + simt::thread_id() % lanes_each;
    do {
      relax(e, edge, turn);
      edge += lanes_each;
    } while (simt::any(simt::full_mask, edge < e.end));
  }

  /// Whole block.
  GROSR_DEVICE void relax_wide(const wave_entry& entry, unsigned turn) {
    const wave_entry e = entry;
    // All lanes of a warp or none: who made the label less has made another entry for it.
    if (Cost::may_be_stale &&
        simt::any(simt::full_mask, distance_of(label(e.v).load(simt::relaxed)) != e.distance))
      return;
    for (std::uint32_t base = e.begin; base < e.end; base += simt::block_size())
      relax(e, base + simt::thread_id(), turn);
  }

  /// Whole warp: one edge of each lane's entry, if it has that.
  GROSR_DEVICE void relax(const wave_entry& e, std::uint32_t edge, unsigned turn) {
    wave_entry next{no_vertex, 0, 0, 0};
    bool improved = false;
    if (edge < e.end) {
      next.v = column_[edge];
      const std::uint64_t before = reach(e, edge, next);
      improved = is_entry(before, next);
      if (improved && Cost::yields_hubs && next.end - next.begin > wide_degree)
        simt::shared_add(store().heavy[turn], weight_of(next));
    }
    const std::uint32_t votes = simt::ballot(simt::full_mask, improved);
    if (votes == 0) return;
    const unsigned lane = simt::lane_id();
    std::uint32_t base = 0;
    if (lane == 0) base = simt::shared_add(store().added[turn], simt::popcount(votes));
    base = simt::shuffle(simt::full_mask, base, 0);
    if (!improved) return;
    const std::uint32_t place = tail_ + base + simt::rank_in(votes, lane);
    if (place - head_ < wave_ring)
      store().ring[place % wave_ring] = next;
    else
      defer(next.v);
  }

  /// Lowers the label of next.v by an edge of an entry, and completes `next`; what the label was.
  /// `alone`: nobody else does anything with labels.
  GROSR_DEVICE std::uint64_t reach(const wave_entry& e, std::uint32_t edge, wave_entry& next,
                                   bool alone = false) {
    next.distance = v_.cost.next(e.distance, edge);
    const std::uint64_t before =
        alone ? lower_alone(next.v, e, next.distance) : lower(next.v, e, next.distance);
    next.begin = row_[next.v];
    next.end = row_[next.v + 1];
    return before;
  }

  /// Whether what was reached is to be relaxed in this wave.
  GROSR_DEVICE bool is_entry(std::uint64_t before, const wave_entry& next) {
    if (distance_of(before) <= next.distance) return false;
    if (visited_ != nullptr)
      simt::atomic_ref<std::uint32_t>(visited_[next.v / 32])
          .fetch_or(1u << next.v % 32, simt::relaxed);
    if (next.distance < limit_) return next.end != next.begin;
    mark(next.v);
    return false;
  }

  GROSR_DEVICE static std::uint32_t weight_of(const wave_entry& e) {
    return e.end - e.begin < 1u << 16 ? e.end - e.begin : 1u << 16;
  }

  /// Lowers a label to a distance by way of an entry's vertex; what it was.
  GROSR_DEVICE std::uint64_t lower(vertex to, const wave_entry& by, std::uint32_t distance) {
    const std::uint64_t wanted = label_of(distance, by.v);
    if (!Cost::is_finite(distance)) return 0;
    if (!Cost::may_stand_still || distance != by.distance)
      return label(to).fetch_min(wanted, simt::relaxed);
    // An edge without length: a lesser parent at the same distance could be a descendant.
    std::uint64_t found = label(to).load(simt::relaxed);
    while (distance < distance_of(found) &&
           !label(to).compare_exchange(found, wanted, simt::relaxed)) {
    }
    return found;
  }

  GROSR_DEVICE std::uint64_t lower_alone(vertex to, const wave_entry& by, std::uint32_t distance) {
    if (!Cost::is_finite(distance)) return 0;
    const std::uint64_t found = label_[to], wanted = label_of(distance, by.v);
    const bool stands_still = Cost::may_stand_still && distance == by.distance;
    if (stands_still ? distance < distance_of(found) : wanted < found) label_[to] = wanted;
    return found;
  }

  /// Whole block: hands entries to those who wait; calls for more of them when nobody does.
  GROSR_DEVICE void share(std::uint32_t idle) {
    auto& s = store();
    const unsigned t = simt::thread_id(), size = simt::block_size();
    const std::uint32_t held = tail_ - head_;
    if (idle == 0) {
      if (t == 0) team_.call_one(context_);
      return;
    }
    std::uint32_t given = held / 2;
    if (given > idle * size) given = idle * size;
    if (t == 0) work().fetch_add(given, simt::relaxed);
    if (t == 0 && leads_ && v_.state->shared_at == 0) v_.state->shared_at = simt::clock_ns();
    simt::sync_block();
    std::uint32_t refused = 0;
    for (std::uint32_t i = t; i / simt::warp_size * simt::warp_size < given; i += size) {
      const bool mine = i < given;
      const std::uint32_t mask = simt::ballot(simt::full_mask, mine);
      if (!mine) continue;
      const wave_entry e = s.ring[(tail_ - given + i) % wave_ring];
      if (!v_.pool.try_push(mask, e)) {
        defer(e.v);
        ++refused;
      }
    }
    simt::sync_warp();
    refused = warp_sum(refused);
    if (simt::lane_id() == 0 && refused != 0) work().fetch_sub(refused, simt::relaxed);
    tail_ -= given;
    simt::sync_block();
  }

  /// Whole block, holding nothing: waits for entries of the pool.
  GROSR_DEVICE verdict refill(bool holds, unsigned turn) {
    auto& s = store();
    const unsigned t = simt::thread_id(), lane = simt::lane_id(), warp = simt::warp_id();
    if (holds && far_ != 0) {
      shared_word(s.farthest).fetch_max(far_, simt::relaxed);
      far_ = 0;
    }
    simt::sync_block();
    if (t == 0) {
      if (holds) tell_marks();
      if (holds) work().fetch_sub(1, simt::acq_rel);
      idle().fetch_add(1, simt::relaxed);
    }
    for (;;) {
      if (t == 0) s.verdict = static_cast<std::uint32_t>(wait());
      simt::sync_block();
      const auto answer = static_cast<verdict>(s.verdict);
      if (answer != verdict::go) {
        if (t == 0) idle().fetch_sub(1, simt::relaxed);
        simt::sync_block();
        return answer;
      }
      wave_entry e;
      const bool got = v_.pool.try_pop(simt::full_mask, e);
      const std::uint32_t votes = simt::ballot(simt::full_mask, got);
      if (lane == 0) s.popped[warp] = simt::popcount(votes);
      simt::sync_block();
      std::uint32_t before = 0, total = 0;
      for (unsigned w = 0; w < simt::block_size() / simt::warp_size; ++w) {
        if (w < warp) before += s.popped[w];
        total += s.popped[w];
      }
      if (got) s.ring[before + simt::rank_in(votes, lane)] = e;
      // Entries that were in the pool count as this block from here on, which wait() has added.
      if (t == 0) {
        work().fetch_sub(total != 0 ? total : 1, simt::acq_rel);
        if (total != 0) {
          idle().fetch_sub(1, simt::relaxed);
          clear(turn, limit().load(simt::relaxed), 0);
        }
      }
      simt::sync_block();
      if (total != 0) {
        head_ = 0;
        tail_ = total;
        return verdict::go;
      }
    }
  }

  /// Thread 0: until there are entries in the pool, and counts this block in then.
  GROSR_DEVICE verdict wait() {
    const std::uint64_t began = simt::clock_ns();
    for (unsigned turn = 0;; ++turn) {
      if (v_.pool.ready() != 0) {
        work().fetch_add(1, simt::relaxed);
        return verdict::go;
      }
      if (work().load(simt::acquire) == 0 || context_.aborted()) return verdict::over;
      if (!leads_ && (turn & 63) == 63 &&
          (simt::clock_ns() - began > patience_ns || context_.yield_to_higher()))
        return verdict::leave;
      simt::pause_if_host(turn, "entries of a wave");
    }
  }

  /// Any lane: relaxes the vertex later.
  GROSR_DEVICE void mark(vertex v) {
    simt::atomic_ref<std::uint32_t>(v_.pending[v / 32]).fetch_or(1u << v % 32, simt::relaxed);
    shared_word(store().marked).store(1, simt::relaxed);
  }

  /// The same, though it is near enough: there is no room for its entry.
  GROSR_DEVICE void defer(vertex v) {
    mark(v);
    simt::atomic_ref<std::uint32_t>(v_.state->refused).store(1, simt::relaxed);
  }

  GROSR_DEVICE void tell_marks() {
    auto& s = store();
    if (s.farthest != 0) {
      simt::atomic_ref<std::uint32_t>(v_.state->farthest).fetch_max(s.farthest, simt::relaxed);
      s.farthest = 0;
    }
    if (s.marked == 0) return;
    s.marked = 0;
    simt::atomic_ref<std::uint32_t>(v_.state->marked).store(1, simt::relaxed);
  }

  GROSR_DEVICE simt::atomic_ref<std::uint32_t> work() const {
    return simt::atomic_ref<std::uint32_t>(v_.state->work);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> idle() const {
    return simt::atomic_ref<std::uint32_t>(v_.state->idle);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> limit() const {
    return simt::atomic_ref<std::uint32_t>(v_.state->limit);
  }
  GROSR_DEVICE static simt::atomic_ref<std::uint32_t, simt::scope::block> shared_word(
      std::uint32_t& word) {
    return simt::atomic_ref<std::uint32_t, simt::scope::block>(word);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> label(vertex v) const {
    return simt::atomic_ref<std::uint64_t>(label_[v]);
  }

  static constexpr std::uint32_t wide_degree = 32;  // more edges: the whole block's
  static constexpr std::uint64_t patience_ns = 100'000;

  const wave_view<Cost>& v_;
  const std::uint32_t* const row_;  // as in v_, in registers
  const vertex* const column_;
  std::uint64_t* const label_;
  std::uint32_t* const visited_;
  Team& team_;
  Context& context_;
  bool leads_, yields_;
  std::uint32_t head_ = 0, tail_ = 0, limit_ = 0, far_ = 0, rounds_ = 0;
};

/// Whole block: relaxes until the wave has ended. `seeds` entries lie in the ring already, and
/// `work` counts this block if there are any. False: this helper is to leave.
template <class Cost, class Team, class Context>
GROSR_DEVICE GROSR_NOINLINE bool expand_wave(const wave_view<Cost>& v, Team& team, Context& context,
                                             bool leads, std::uint32_t seeds) {
  return expander<Cost, Team, Context>(v, team, context, leads).expand_wave(seeds);
}

}  // namespace grosr::graphs
