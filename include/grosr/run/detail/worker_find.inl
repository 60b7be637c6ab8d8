// Of worker: how it chooses what to run next: its own, seen lines, what others hold.
// docs/internals/scheduler.md, "Find work". Whom it steals from is in victim.hpp.
#pragma once

namespace grosr::run {

/// Whole warp: a ref for warps; or none, with a line in hand or without. From the
/// most urgent level down, this worker's own first. Ageing: now and then the levels take turns at
/// being first, and what others hold comes before what this worker holds.
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::find(unsigned turn) {
  const bool others_first = Policy::others_first(turn);
  std::uint32_t mine = 0;
  if (leads()) mine = nonempty(w_.deques);
  std::uint32_t any =
      simt::shuffle(simt::full_mask, mine, 0) | hints_ | hint::levels_of_blocks(hints_);
  GROSR_NO_UNROLL
  for (unsigned k = 0; k < priority_levels; ++k) {
    const std::uint32_t level = Policy::level_at(turn, k);
    if (!has_level(any, level)) continue;
    GROSR_NO_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      if ((half == 0) != others_first) {
        std::uint64_t own = 0;
        if (leads()) own = pop_ref(v_, w_.deques, id_, level).bits;
        own = simt::shuffle(simt::full_mask, own, 0);
        if (own) return {own};
      } else if (hints_ & hint::of(level, false)) {
        if (ref r = elsewhere(level, turn); r || has_line()) return r;
      }
    }
    // The meeting comes at the top of the loop. Until it is allowed, go on.
    if ((hints_ & hint::of(level, true)) && leads()) ask_for_meeting(false);
  }
  return {};
}

template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::elsewhere(std::uint32_t level, unsigned turn) {
  if (ref r = unspill(v_.spill[level])) return r;
  if (claim(level)) return {};
  ref r = Policy::steal(v_, level, false, id_, turn,
                        [&](std::uint32_t victim) { return steal(level, victim); });
  if (r) return r;
  // Nothing there: clear the hint; work that comes sets it again. Lines that were seen in
  // between are looked for once more; deques are scanned every scan_every_cycles anyway.
  unsigned lane = simt::lane_id();
  if (leads()) clear_hint(hint::of(level, false));
  if (leads() && v_.spill[level].ready() != 0) set_bit(*v_.hints, hint::of(level, false));
  simt::sync_warp();
  if (lane < v_.ports_per_level && v_.ports[level * v_.ports_per_level + lane].waiting())
    set_bit(*v_.hints, hint::of(level, false));
  simt::sync_warp();
  return {};
}

/// Takes a ref from a spill ring; its active count comes with it.
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::unspill(const queue::ring_ref<std::uint64_t>& ring) {
  std::uint64_t bits = 0;
  if (leads() && ring.ready() != 0) {
    end_of_stall();
    ring.try_pop_n(&bits, 1);
  }
  bits = simt::shuffle(simt::full_mask, bits, 0);
  if (bits == 0) return {};
  // It is one holder less; or this worker takes its place, which counts as an activation.
  if (leads())
    board_word().fetch_add(is_active() ? ~std::uint64_t{0} : board_count::activation - 1,
                           simt::acq_rel);
  if (!is_active() && leads()) w_.alone = 0;
  standing_ = standing::active;
  return {bits};
}

/// Claims a line of a level that a poll has seen: it is in `line_` then.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::claim(std::uint32_t level) {
  unsigned lane = simt::lane_id(), n = v_.ports_per_level;
  bool there = lane < n && v_.ports[level * n + lane].waiting();
  std::uint32_t some = simt::ballot(simt::full_mask, there);
  if (some == 0) return false;
  activate();
  // Workers start at different ports.
  std::uint32_t later = some & ~((1u << id_ % n) - 1u);
  unsigned p = level * n + simt::lowest_bit(later ? later : some);
  std::uint64_t got = 0;
  if (leads()) {
    std::uint32_t number;
    if (v_.ports[p].claim(number)) got = std::uint64_t{1} << 32 | number;
  }
  got = simt::shuffle(simt::full_mask, got, 0);
  if (got == 0) return false;
  line_ = v_.ports[p].read_mirror(static_cast<std::uint32_t>(got));
  hand_ = hand::line;
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
      if (last) now_empty(level, victim);
    } else {
      outrun_ = true;
    }
  }
  return {simt::shuffle(simt::full_mask, bits, 0)};
}

/// One lane, which took the last ref there: others do not look there any more, until more comes.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::now_empty(std::uint32_t level,
                                                      std::uint32_t victim) const {
  const bool block = victim >= v_.workers;
  const std::uint32_t i = block ? victim - v_.workers : victim, bit = 1u << i % 32;
  simt::atomic_ref<std::uint32_t> word(v_.bitmap(level, block)[i / 32]);
  // Its owner publishes and then sets the bit: one of the two sees the other.
  word.fetch_and(~bit, simt::acq_rel);
  if (v_.deque(level, victim).size() != 0) word.fetch_or(bit, simt::relaxed);
}

template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::clear_hint(std::uint32_t bit) {
  simt::atomic_ref<std::uint32_t> hints(*v_.hints);
  if (hints.load(simt::relaxed) & bit) hints.fetch_and(~bit, simt::acq_rel);
}

}  // namespace grosr::run
