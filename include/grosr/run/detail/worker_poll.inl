// A worker takes packets from the host into the device. docs/internals/scheduler.md, "A submission
// ring" and "Waiting".
#pragma once

namespace grosr::run {

// ---- leading ----

/// Whole warp, polling w_.ring in w_.lock, hands and deques empty: polls until it has a packet,
/// something interrupts (both: the ring is unlocked), or its count in the activity word should
/// drop.
template <class Policy, class... Tasks>
GROSR_DEVICE auto worker<Policy, Tasks...>::lead() -> led {
  if (leads()) {
    begin_scan_wait();
    polls_ = true;
    simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.polls).store(1, simt::relaxed);
  }
  simt::sync_warp();
  queue::poll_lock lock = w_.lock;
  simt::sync_warp();  // all have read it before lane 0 writes it, at the end
  led result;
  std::uint32_t late_before = 0;
  for (unsigned turn = 0;; ++turn) {
    // All loads of a round are under way together: the bus is the slowest of them. After a single
    // task another one is likely.
    const unsigned ring = w_.ring;
    auto k =
        v_.submission.rings[ring].poll(lock, is_active() && turn != 0 ? 1 : queue::poll_window);
    const unsigned lane = simt::lane_id();
    const bool other = lane < rings() && lane != ring;
    const std::uint64_t state = other ? v_.submission.rings[lane].load_state() : 0;
    std::uint64_t now = 0, activity = 0;
    if (leads()) {
      now = poll_signals();
      if (is_active() || ring == 0) activity = activity_word().load(simt::relaxed);
    }
    const std::uint32_t late =
        simt::ballot(simt::full_mask,
                     other && queue::submission_ring_ref::overdue(state, Policy::poll_stale(lane)));
    packets there = accept(ring, lock, k, true, true);
    result = led::packet;
    if (there == packets::mine) break;
    if (there == packets::shared) continue;  // packets come in groups: go on handing them out
    enum : std::uint32_t { go_on = 0, give_up = 1, may_park = 2, drop_count = 4, meet = 8 };
    std::uint32_t stop = go_on;
    if (leads()) {
      if (ring == 0) obey_control();
      if (now & (interrupts | hint::work))
        stop = (now & rendezvous_called) != 0 ? give_up | meet : give_up;
      // Not when the kernel leaves already: it was looked for after taking the poll lock, which
      // whoever said so has unlocked since.
      if (stop == go_on && idles_too_long(ring, activity)) stop = may_park;
      if (is_active() && (activity != w_.sole_activity || turn >= Policy::linger_polls))
        stop |= drop_count;
      if (is_rung()) stop |= give_up;
      if (scan_due()) {
        const std::uint32_t found = scan_hints(),
                            fresh = is_active() ? found : found | hint::starving;
        if ((fresh & ~now) != 0) v_.hints().fetch_or(fresh, simt::relaxed);
        if (found || finds_overdue()) stop |= give_up;
      }
    }
    const bool unused = lock.seen == 0 && ring != 0;
    if (unused || (polls_several() && turn + 1 >= Policy::polls_of_several)) stop |= give_up;
    stop = simt::shuffle(simt::full_mask, stop, 0);
    // The warps that would poll other rings may all be busy: they were at the last turn.
    const std::uint32_t left = late & late_before;
    late_before = late;
    if (stop == go_on && left != 0 && move_to_overdue(left, lock)) continue;
    result = led::lingered;
    if (stop & drop_count) break;
    if (stop & may_park) {
      if (park()) stop |= give_up;
      if (leads()) quiet_now();
    }
    if (stop & give_up) {
      if (leads()) v_.submission.rings[ring].unlock(lock);
      back_ = !polls_several() && !unused && (stop & meet) == 0;
      if (unused && !polls_several() && leads())  // the next one, next time
        simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.ring).store((ring + 1) % rings(),
                                                                           simt::relaxed);
      result = led::interrupted;
      break;
    }
    simt::pause_if_host(idle_turns(turn), "packets from the host");
  }
  if (leads()) w_.lock = lock;
  simt::sync_warp();
  return result;
}

/// Whole warp, polling, with what poll() gave: takes in the packets that are there. `keep`: the
/// poll lock is kept while all of them are shared. `take`: a packet that is first in its ring is
/// for this warp: it is in `packet_` then, and the ring is unlocked.
template <class Policy, class... Tasks>
GROSR_DEVICE auto worker<Policy, Tasks...>::accept(unsigned ring, queue::poll_lock& lock,
                                                   const queue::submission_ring_ref::polled<>& k,
                                                   bool take, bool keep) -> packets {
  const queue::submission_ring_ref p = v_.submission.rings[ring];
  const queue::submission_ring_ref::found f = p.look_at(lock, k);
  if (f.packets == 0) return packets::none;
  const bool first = take && p.first_is_free(k), counted = is_active();
  if (first) activate();
  // A single short task is done before anybody else could be there. Whether it takes longer is
  // not known before, but others look some 4 us after a poll would be overdue.
  const packet_header h = packet_header::of({k.mine[0]}, 1);
  const bool single = first && f.packets == 1 && h.carries_task();
  const unsigned limit = !first ? 0 : f.packets == 1 ? 1 : bundle_limit(h.kind);
  const std::uint32_t number = lock.seen;
  took t{f.packets, f.alike < limit ? f.alike : limit};
  const bool many = take && f.packets == queue::poll_window;
  if (ring == 0 && leads() && number % 64 + (many ? queue::poll_depth : f.packets) >= 64)
    obey_control();  // also in a stream of packets
  if (many) {
    if (leads()) w_.lock = lock;
    simt::sync_warp();
    t = simt::opaque(&accept_many)(&b_, limit, !first, counted);
    lock = w_.lock;
    simt::sync_warp();  // all have read it before lane 0 writes it again
  } else {
    p.accept(lock, t.packets, t.mine, keep && !first, single, counted, k);
  }
  if (first) back_ = single;
  if (t.packets > t.mine && leads()) {
    // H1: after the ring's word; pairs with the clearing in elsewhere(), which then looks at
    // rings.
    v_.hints().fetch_or(hint::of(ring / v_.sizes.rings_per_level, false), simt::acq_rel);
  }
  if (!first) {
    // A look at places that the host is about to write makes its writes slower.
    if (keep && t.packets != queue::poll_depth) simt::space_looks(Policy::look_away_ns);
    return packets::shared;
  }
  if (leads() && !polls_several())
    simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.ring).store(ring, simt::relaxed);
  hand_ = t.packets > t.mine ? hand::packet_of_many : hand::packet;
  if (t.mine == 1)
    packet_ = {k.mine[0]};
  else
    take_bundle(ring, number, t.mine);
  return packets::mine;
}

/// Whole warp, polling w_.ring in w_.lock, after it saw as many packets as it looked for: looks for
/// more, and takes them in, up to `limit` of the first for this warp where they are of one kind.
/// Out of line, and called by its address, for the registers of both.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE auto worker<Policy, Tasks...>::accept_many(shared* block,
                                                                       unsigned limit, bool keep,
                                                                       bool counted) -> took {
  worker self(simt::in_block_shared(block));
  const queue::submission_ring_ref p = self.v_.submission.rings[self.w_.ring];
  queue::poll_lock lock = self.w_.lock;
  const auto k = p.poll<queue::poll_depth / queue::poll_window>(lock);
  const queue::submission_ring_ref::found f = p.look_at(lock, k);
  const unsigned mine = f.alike < limit ? f.alike : limit;
  p.accept(lock, f.packets, mine, keep, false, counted, k);
  if (leads()) self.w_.lock = lock;
  simt::sync_warp();
  return {f.packets, mine};
}

/// Whole warp: so many packets, from this one of a ring, are in hand. They lie in the staging area.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::take_bundle(unsigned ring, std::uint32_t number,
                                                        unsigned count) {
  packet_.mine = {{ring, number, 0, 0}};
  bundle_ = count;
}

/// Whole warp: how many packets whose content begins with this word a warp may take to run them
/// side by side: 1 unless they carry lane tasks of a type that was short of late, and no trace is
/// written, which shows where each task ran.
template <class Policy, class... Tasks>
GROSR_DEVICE unsigned worker<Policy, Tasks...>::bundle_limit(std::uint32_t kind) {
  packet_header h{};
  h.kind = kind;
  if (!h.carries_task() || v_.trace.events != nullptr) return 1;
  std::uint32_t limit = 0;
  if (leads()) {
    limit = simt::atomic_ref(v_.common.bundle_limits[h.type()]).load(simt::relaxed);
    if (limit == 0) limit = 1;
    w_.bundle_limits[h.type()] = static_cast<std::uint8_t>(limit);
  }
  return simt::shuffle(simt::full_mask, limit, 0);
}

// ---- rings that nobody polled for a while ----

/// Whole warp: polls those of the rings in `which` that nobody polled for a while. It only lets
/// everybody see the packets: hints tell when they are more urgent than what workers have. Whether
/// there were any.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::poll_overdue(std::uint32_t which) {
  which = overdue(which);
  if (which == 0) return false;
  queue::poll_lock mine{};
  const std::uint32_t some = take_begun(which, mine);
  share_begun(some, mine);
  return some != 0;
}

/// Whole warp, polling w_.ring in `lock`: polls another ring from now on where packets have begun
/// to come to one of those in `which`, while nobody polled it for a while. False: to none.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::move_to_overdue(std::uint32_t which,
                                                            queue::poll_lock& lock) {
  queue::poll_lock mine{};
  const std::uint32_t some = take_begun(which, mine);
  if (some == 0) return false;
  const unsigned first = simt::highest_bit(some);  // the most urgent
  share_begun(some & ~(1u << first), mine);
  if (leads()) {
    v_.submission.rings[w_.ring].unlock(lock);
    w_.ring = first;
  }
  lock = {simt::shuffle(simt::full_mask, mine.seen, first),
          simt::shuffle(simt::full_mask, mine.last_poll, first)};
  simt::sync_warp();
  return true;
}

/// Whole warp: those of the rings in `which` that nobody polled for a while.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t worker<Policy, Tasks...>::overdue(std::uint32_t which) const {
  unsigned lane = simt::lane_id();
  bool due =
      (which >> lane & 1) != 0 && v_.submission.rings[lane].overdue(Policy::poll_stale(lane));
  return simt::ballot(simt::full_mask, due);
}

/// Whole warp: takes the poll locks of rings in `which`, a ring a lane, and keeps them, each lane
/// its own, where packets have begun to come: of those rings.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t worker<Policy, Tasks...>::take_begun(std::uint32_t which,
                                                                queue::poll_lock& mine) {
  // The looks across the bus are under way together.
  const unsigned lane = simt::lane_id();
  const bool got = (which >> lane & 1) != 0 &&
                   v_.submission.rings[lane].try_lock(Policy::poll_stale(lane), mine);
  const bool there = got && v_.submission.rings[lane].begins(mine);
  if (got && !there) {
    if (lane == 0) obey_control();
    v_.submission.rings[lane].unlock(mine);
  }
  simt::sync_warp();
  return simt::ballot(simt::full_mask, there);
}

/// Whole warp: lets everybody see the packets of such rings, and unlocks them.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::share_begun(std::uint32_t some,
                                                        const queue::poll_lock& mine) {
  GROSR_NO_UNROLL
  for (std::uint32_t rest = some; rest != 0; rest &= rest - 1) {
    const unsigned ring = simt::lowest_bit(rest);
    queue::poll_lock lock{simt::shuffle(simt::full_mask, mine.seen, ring),
                          simt::shuffle(simt::full_mask, mine.last_poll, ring)};
    auto k = v_.submission.rings[ring].poll(lock);
    if (accept(ring, lock, k, false, false) == packets::none && leads()) {
      if (ring == 0) obey_control();
      v_.submission.rings[ring].unlock(lock);
    }
    simt::sync_warp();
  }
}

// ---- what hints may have missed ----

/// One lane, before a wait: what hints may have missed is looked for in scan_every_cycles.
/// A poller that goes round the rings waits in many pieces.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::begin_scan_wait() {
  if (!polls_several()) w_.scanned = simt::cycle_count();
}

/// One lane: whether it is time to look for that.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::scan_due() {
  std::uint64_t now = simt::cycle_count();
  if (now - w_.scanned < Policy::scan_every_cycles) return false;
  w_.scanned = now;
  return true;
}

/// Levels whose bitmaps are not empty, as hint bits. One lane.
template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t worker<Policy, Tasks...>::scan_hints() {
  // One word and one ring a level, not all; others the next time, for this worker may be the only
  // one that waits.
  const std::uint32_t at = id_ + w_.scans++;
  std::uint32_t hints = 0;
  GROSR_NO_UNROLL
  for (unsigned l = 0; l < priority_levels; ++l) {
    std::uint32_t& w = v_.bitmap(l, false)[at % v_.sizes.warp_bitmap_words];
    std::uint32_t& b = v_.bitmap(l, true)[at % v_.sizes.block_bitmap_words];
    if (simt::atomic_ref<std::uint32_t>(w).load(simt::relaxed)) hints |= hint::of(l, false);
    if (simt::atomic_ref<std::uint32_t>(b).load(simt::relaxed)) hints |= hint::of(l, true);
    if (v_.submission.rings[l * v_.sizes.rings_per_level + at % v_.sizes.rings_per_level].waiting())
      hints |= hint::of(l, false);
  }
  return hints;
}

}  // namespace grosr::run
