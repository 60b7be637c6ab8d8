// A worker chooses what to run next: its own, seen packets, what others hold. A warp and a block
// find work by one loop, find_as(); what differs is in as_warp and as_block (worker.hpp).
// docs/internals/scheduler.md, "Find work". The choice of a victim is in victim.hpp.
#pragma once

namespace grosr::run {

/// Whole warp: a ref for warps; or none, with a packet in hand or without.
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::find(unsigned turn) {
  return find_as<as_warp>(hints_, turn);
}

/// Whole warp: a ref for what the worker looks as. It looks from the most urgent level down, at its
/// own refs first. Ageing: now and then the levels take turns at being first, and what others hold
/// comes before what this worker holds.
template <class Policy, class... Tasks>
template <class As>
GROSR_DEVICE ref worker<Policy, Tasks...>::find_as(std::uint32_t hints, unsigned turn) {
  const bool others_first = Policy::others_first(turn);
  std::uint32_t mine = 0;
  if (leads()) mine = nonempty(As::deques(*this));
  std::uint32_t any =
      simt::shuffle(simt::full_mask, mine, 0) | hints | hint::levels_of_blocks(hints);
  GROSR_NO_UNROLL
  for (unsigned k = 0; k < priority_levels; ++k) {
    const std::uint32_t level = Policy::level_at(turn, k);
    if (!has_level(any, level)) continue;
    GROSR_NO_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      if ((half == 0) != others_first) {
        std::uint64_t own = 0;
        if (leads())
          own = pop_ref(v_, As::deques(*this), As::first(v_) + As::number(*this), level).bits;
        own = simt::shuffle(simt::full_mask, own, 0);
        if (own) return {own};
      } else if (hints & hint::of(level, As::block)) {
        if (ref r = elsewhere<As>(level, turn); r || has_packet()) return r;
      }
    }
    if ((hints & hint::of(level, !As::block)) && As::gives_way(*this, others_first)) return {};
  }
  return {};
}

/// Whole warp: a ref of the level that nobody else holds any more: from its spill ring, or stolen;
/// or a packet in hand. Clears the hint if there is none of them.
template <class Policy, class... Tasks>
template <class As>
GROSR_DEVICE ref worker<Policy, Tasks...>::elsewhere(std::uint32_t level, unsigned turn) {
  const queue::ring_ref<std::uint64_t>& ring = As::spill(v_)[level];
  if (ref r = pop_spilled(ring)) return r;
  if (!As::block && claim(level)) return {};
  lost_race_ = false;
  ref r = Policy::steal(v_, level, As::block, As::number(*this), turn,
                        [&](std::uint32_t victim) { return steal(level, As::first(v_) + victim); });
  if (r) return r;
  // Nothing there: clear the hint; work that comes sets it again. Packets that were seen in
  // between are looked for once more; deques are scanned every scan_every_cycles anyway.
  constexpr auto bit = [](std::uint32_t l) { return hint::of(l, As::block); };
  if (leads() && As::clears_hint(*this)) {
    clear_hint(bit(level));
    if (ring.ready() != 0) set_bit(v_.common.signals->hints, bit(level));
  }
  simt::sync_warp();
  if constexpr (!As::block) {
    const unsigned lane = simt::lane_id();
    if (lane < v_.sizes.rings_per_level &&
        v_.submission.rings[level * v_.sizes.rings_per_level + lane].waiting())
      set_bit(v_.common.signals->hints, bit(level));
    simt::sync_warp();
  }
  return {};
}

/// Takes a ref from a spill ring; its active count comes with it.
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::pop_spilled(const queue::ring_ref<std::uint64_t>& ring) {
  std::uint64_t bits = 0;
  if (leads() && ring.ready() != 0) {
    end_of_stall();
    ring.try_pop_n(&bits, 1);
  }
  bits = simt::shuffle(simt::full_mask, bits, 0);
  if (bits == 0) return {};
  // It is one holder less; or this worker takes its place, which counts as an activation.
  if (leads())
    activity_word().fetch_add(is_active() ? ~std::uint64_t{0} : activity_count::activation - 1,
                              simt::acq_rel);
  if (!is_active() && leads()) w_.sole_activity = 0;
  standing_ = standing::active;
  return {bits};
}

/// Claims a packet of a level that a poll has seen: it is in `packet_` then.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::claim(std::uint32_t level) {
  unsigned lane = simt::lane_id(), n = v_.sizes.rings_per_level;
  bool there = lane < n && v_.submission.rings[level * n + lane].waiting();
  std::uint32_t some = simt::ballot(simt::full_mask, there);
  if (some == 0) return false;
  activate();
  // Workers start at different rings.
  std::uint32_t later = some & ~((1u << id_ % n) - 1u);
  unsigned p = level * n + simt::lowest_bit(later ? later : some);
  std::uint32_t number = 0;
  const unsigned count =
      v_.submission.rings[p].claim(number, [&](std::uint32_t kind) { return bundle_limit(kind); });
  if (count == 0) return false;
  hand_ = hand::packet;
  if (count == 1)
    packet_ = v_.submission.rings[p].read_staged(number);
  else
    take_bundle(p, number, count);
  return true;
}

template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::steal(std::uint32_t level, std::uint32_t victim) {
  queue::deque_ref d = v_.deque(level, victim);
  std::uint32_t n = 0;
  if (leads()) n = d.size();
  if (simt::shuffle(simt::full_mask, n, 0) == 0) return {};
  activate();
  std::uint64_t bits = 0;
  if (leads()) {
    bool last = false;
    bits = d.steal(last);
    if (bits != 0) {
      ++w_.stolen;
      record_now(v_, id_, trace_event::steal, {bits}, victim);
      if (last) now_empty(level, victim);
    } else {
      lost_race_ = true;
    }
  }
  return {simt::shuffle(simt::full_mask, bits, 0)};
}

/// One lane, which took the last ref there: others do not look there any more, until more comes.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::now_empty(std::uint32_t level,
                                                      std::uint32_t victim) const {
  const bool block = victim >= v_.sizes.workers;
  const std::uint32_t i = block ? victim - v_.sizes.workers : victim, bit = 1u << i % 32;
  simt::atomic_ref<std::uint32_t> word(v_.bitmap(level, block)[i / 32]);
  // Its owner publishes and then sets the bit: one of the two sees the other.
  word.fetch_and(~bit, simt::acq_rel);
  if (v_.deque(level, victim).size() != 0) word.fetch_or(bit, simt::relaxed);
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::clear_hint(std::uint32_t bit) {
  const auto hints = v_.hints();
  if (hints.load(simt::relaxed) & bit) hints.fetch_and(~bit, simt::acq_rel);
}

}  // namespace grosr::run
