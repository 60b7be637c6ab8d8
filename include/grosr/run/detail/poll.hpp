// Polling: how lines come from the host into the device, and how an idle worker waits for them.
// docs/internals/scheduler.md, "A port", "Waiting" and "Park and resume".
#pragma once

#include "grosr/run/detail/worker.hpp"

namespace grosr::run {

template <class... Tasks>
class poller : public worker<Tasks...> {
  using base = worker<Tasks...>;

 protected:
  using base::activate, base::active_, base::b_, base::id_, base::leads, base::ports,
      base::push_any, base::v_, base::w_;

  GROSR_DEVICE explicit poller(typename base::shared& b) : base(b) {}

  static constexpr std::uint64_t scan_every_cycles = 128 * 1024;  // about 64 us
  static constexpr std::uint32_t all_hints = 0x0f0fu;
  static constexpr unsigned linger_polls = 8;  // about 8 us
  // Bits of look() above the hints.
  static constexpr std::uint64_t leave_now = std::uint64_t{1} << 32;
  static constexpr std::uint64_t meeting_called = std::uint64_t{1} << 33;
  static constexpr std::uint64_t interrupts = leave_now | meeting_called;

  /// With fewer blocks than ports, each block's poller goes round several.
  GROSR_DEVICE bool roams() const { return v_.blocks < ports(); }

  GROSR_DEVICE bool says_leave(std::uint64_t hints_and_leave) const {
    auto leave = static_cast<std::uint32_t>(hints_and_leave >> 32);
    return leave == v_.epoch || leave == leave_abort;
  }

  GROSR_DEVICE bool must_leave() const { return says_leave(v_.hints_and_leave()); }

  /// One lane: whether the block's warps are to meet.
  GROSR_DEVICE bool meeting_is_called() const {
    return simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.meeting).load(simt::relaxed) != 0;
  }

  /// One lane: the hints, and whether to leave or to meet.
  GROSR_DEVICE std::uint64_t look() const {
    std::uint64_t both = v_.hints_and_leave();
    std::uint64_t now = both & 0xffffffffu;
    if (says_leave(both)) now |= leave_now;
    using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
    const std::uint32_t cancelling = both & cancelling_bit;
    if (word(b_.cancelling).load(simt::relaxed) != cancelling)
      word(b_.cancelling).store(cancelling, simt::relaxed);
    if (meeting_is_called()) now |= meeting_called;
    return now;
  }

  /// Whole warp, active: deals with a line. A task that it carries is run, and a block task goes to
  /// the block; else returns the ref that this warp must run.
  GROSR_DEVICE ref open_line(const queue::held_line& l) {
    line_header h = line_header::of(l);
    if (h.carries_task()) {
      end_of_scouting();
      base::run_line(h, l);
      return {};
    }
    std::uint32_t type = h.type();
    ref r = ref::make(h.slot, true, 0, h.count, type, h.level(), true);
    bool meets = false, early = false;
    if (leads()) {
      w_.line = h;
      if (h.count > 1 || base::is_block_type(type)) {
        slot_info& s = v_.slots[h.slot];
        s.total = h.count;
        s.ticket = h.ticket;
        s.ticket_lines = h.ticket_lines;
        s.generation = h.generation;
        s.ticket_generation = h.ticket_generation;
      }
      if (base::is_block_type(type)) {
        const std::uint32_t before = published(b_.deques);
        push_any(r, false);
        meets = ask_for_meeting(false) && h.count == 1;
        std::uint64_t none = 0;
        early =
            meets && simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.early).compare_exchange(
                         none, r.split().bits, simt::relaxed);
        if (early) b_.early_published = before;
      }
    }
    end_of_scouting();  // who comes after sees the call for a meeting, and polls nothing before it
    simt::sync_warp();
    if (!base::is_block_type(type)) return r;
    meets_ = simt::shuffle(simt::full_mask, meets ? 1u : 0u, 0) != 0;
    // While the others come, and before this warp does.
    if (simt::shuffle(simt::full_mask, early ? 1u : 0u, 0) != 0) load_record(r);
    return {};
  }

  /// Whole warp: a block task's record into block-shared memory.
  GROSR_DEVICE void load_record(ref r) {
    const unsigned lane = simt::lane_id();
    const std::uint32_t stride = stride_at(r.type());
    if (lane < stride / 16) {
      const unsigned char* from = base::batch_at(r) + r.first() * stride + lane * 16;
      piece p;
      if (r.slot()) {
        simt::bus_word b = simt::bus_load(reinterpret_cast<const simt::bus_word*>(from));
        for (unsigned k = 0; k < 4; ++k) p.w[k] = b.w[k];
      } else {
        p = *reinterpret_cast<const piece*>(from);
      }
      reinterpret_cast<piece*>(b_.record)[lane] = p;
    }
    simt::sync_warp();
  }
  GROSR_DEVICE static std::uint32_t stride_at(std::uint32_t type) {
    std::uint32_t i = 0, stride = 16;
    ((type == i++ ? stride = stride_of<Tasks> : 0), ...);
    return stride;
  }

  /// One lane: asks the block's warps to meet at their next step. False: they did not come a moment
  /// ago.
  GROSR_DEVICE bool ask_for_meeting(bool now) {
    if (!now &&
        simt::clock_ns() < simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.next_meeting)
                               .load(simt::relaxed))
      return false;
    simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.meeting).store(1, simt::relaxed);
    return true;
  }

  /// Whole warp: it does not poll, and is no longer the block's scout, if it was.
  GROSR_DEVICE void end_of_scouting() {
    if (!leads()) return;
    using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
    if (polls_) word(b_.polls).store(0, simt::relaxed);
    if (scout_) word(b_.scout).store(0, simt::relaxed);
    polls_ = scout_ = false;
  }

  // ---- taking lines in ----

  /// Whole warp, polling, with what peek() gave: takes in the lines that are there. `keep`: the
  /// role is kept while all of them are shared. `take`: a line that is first in its ring is for
  /// this warp: it is in `line_` then, and the role is given back.
  enum class lines { none, shared, mine };
  GROSR_DEVICE lines accept(unsigned port, queue::poll_role& role,
                            const queue::ingress_ref::peeked& k, bool take, bool keep) {
    const queue::ingress_ref& p = v_.ports[port];
    unsigned n = p.valid_lines(role, k);
    if (n == 0) return lines::none;
    bool first = take && p.first_is_free(k), counted = active_;
    if (first) activate();
    // A single short task is done before anybody else could be there. What it takes longer for is
    // not known before, but others look some 4 us after a poll would be overdue.
    bool single = first && n == 1 && line_header::of({k.mine}, 1).carries_task();
    if (port == 0 && leads() && role.seen % 64 + n >= 64)
      obey_control();  // also in a stream of lines
    p.accept(role, n, first, keep && !first, single, counted, k);
    if (first) back_ = single;
    if ((n > 1 || !first) && leads()) {
      // H1: after the port's word; pairs with the clearing in elsewhere(), which then looks at
      // ports.
      simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(
          hint_bit(port / v_.ports_per_level, false), simt::acq_rel);
    }
    if (!first) return lines::shared;
    if (leads() && !roams())
      simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.port).store(port, simt::relaxed);
    shared_lines_ = n > 1;
    line_ = {k.mine};
    has_line_ = true;
    return lines::mine;
  }

  /// Whole warp: polls those of the ports in `which` that nobody polled for a while. It only lets
  /// everybody see the lines: hints tell when they are more urgent than what workers have. Whether
  /// there were any.
  GROSR_DEVICE bool poll_overdue(std::uint32_t which) {
    which = overdue(which);
    if (which == 0) return false;
    queue::poll_role mine{};
    const std::uint32_t some = take_begun(which, mine);
    share_begun(some, mine);
    return some != 0;
  }

  /// Whole warp, polling w_.port in `role`: polls another port from now on where lines have begun
  /// to come to one of those in `which`, while nobody polled it for a while. False: to none.
  GROSR_DEVICE bool move_to_overdue(std::uint32_t which, queue::poll_role& role) {
    queue::poll_role mine{};
    const std::uint32_t some = take_begun(which, mine);
    if (some == 0) return false;
    const unsigned first = simt::highest_bit(some);  // the most urgent
    share_begun(some & ~(1u << first), mine);
    if (leads()) {
      v_.ports[w_.port].give_role(role);
      w_.port = first;
    }
    role = {simt::shuffle(simt::full_mask, mine.seen, first),
            simt::shuffle(simt::full_mask, mine.tick, first)};
    simt::sync_warp();
    return true;
  }

  /// One lane, before a wait: what hints may have missed is looked for in scan_every_cycles. Who
  /// goes round the ports waits in many pieces.
  GROSR_DEVICE void begin_scan_wait() {
    if (!roams()) w_.scanned = simt::cycle_count();
  }

  /// One lane: whether it is time to look for that.
  GROSR_DEVICE bool scan_due() {
    std::uint64_t now = simt::cycle_count();
    if (now - w_.scanned < scan_every_cycles) return false;
    w_.scanned = now;
    return true;
  }

  /// One lane, port 0 held: does what the host asks for.
  GROSR_DEVICE void obey_control() {
    std::uint32_t c = simt::atomic_ref<std::uint32_t, simt::scope::system>(
                          const_cast<std::uint32_t&>(*v_.control))
                          .load(simt::relaxed);
    // Also what is asked of the kernel behind this one: it starts when this one has left. Epochs
    // have 30 bits here and wrap.
    if (static_cast<std::int32_t>(((c >> 2) - v_.epoch) << 2) < 0) return;
    simt::atomic_ref<std::uint32_t> leave(v_.hints[1]);
    if (static_cast<request>(c & 3) == request::park) {
      say_leaving();
      leave.store(v_.epoch, simt::release);
    } else if (static_cast<request>(c & 3) == request::abort && !v_.aborted()) {
      name_running(v_);
      leave.store(leave_abort, simt::release);
    }
  }

  /// One lane: tells the host what runs on every worker, before an abort changes it.
  GROSR_DEVICE GROSR_NOINLINE static void name_running(const view& v) {
    using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
    for (std::uint32_t w = 0; w < v.workers; ++w)
      word(v.running_host[w])
          .store(told_word(simt::atomic_ref<std::uint32_t>(v.running[w]).load(simt::relaxed), 0),
                 simt::relaxed);
    word(v.state[state_named]).store(v.epoch, simt::release);  // N1: pairs with running_at_abort()
  }

  GROSR_DEVICE void say_leaving() {
    simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.state).store(v_.epoch << 1 | 1u,
                                                                          simt::relaxed);
    simt::fence<simt::scope::system>(simt::seq_cst);  // P1: pairs with the fence in submit
  }

  // ---- leading ----

  /// Whole warp: takes the roles of ports in `which`, a port a lane, and keeps them, each lane its
  /// own, where lines have begun to come: of those ports.
  GROSR_DEVICE std::uint32_t take_begun(std::uint32_t which, queue::poll_role& mine) {
    // The looks across the bus are under way together.
    const unsigned lane = simt::lane_id();
    const bool got =
        (which >> lane & 1) != 0 && v_.ports[lane].take_role(base::poll_stale_ns, mine);
    const bool there = got && v_.ports[lane].begins(mine);
    if (got && !there) {
      if (lane == 0) obey_control();
      v_.ports[lane].give_role(mine);
    }
    simt::sync_warp();
    return simt::ballot(simt::full_mask, there);
  }

  /// Whole warp: lets everybody see the lines of such ports, and gives the roles back.
  GROSR_DEVICE void share_begun(std::uint32_t some, const queue::poll_role& mine) {
    GROSR_NO_UNROLL
    for (std::uint32_t rest = some; rest != 0; rest &= rest - 1) {
      const unsigned port = simt::lowest_bit(rest);
      queue::poll_role role{simt::shuffle(simt::full_mask, mine.seen, port),
                            simt::shuffle(simt::full_mask, mine.tick, port)};
      auto k = v_.ports[port].peek(role);
      if (accept(port, role, k, false, false) == lines::none && leads()) {
        if (port == 0) obey_control();
        v_.ports[port].give_role(role);
      }
      simt::sync_warp();
    }
  }

  /// Whole warp, polling w_.port in w_.role, hands and deques empty: polls until it has a line,
  /// something interrupts (both: the role is given back), or its count on the board should drop.
  enum class led { line, interrupted, lingered };
  GROSR_DEVICE led lead() {
    if (leads()) {
      begin_scan_wait();
      polls_ = true;
      simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.polls).store(1, simt::relaxed);
    }
    simt::sync_warp();
    queue::poll_role role = w_.role;
    led verdict;
    std::uint32_t late_before = 0;
    for (unsigned turn = 0;; ++turn) {
      // All loads of a round are under way together: the bus is the slowest of them. After a single
      // task another one is likely.
      const unsigned port = w_.port;
      auto k = v_.ports[port].peek(role, active_ && turn != 0 ? 1 : queue::poll_window);
      const unsigned lane = simt::lane_id();
      const bool other = lane < ports() && lane != port;
      const std::uint64_t glance = other ? v_.ports[lane].glance() : 0;
      std::uint64_t now = 0, board = 0;
      if (leads()) {
        now = look();
        if (active_ || port == 0) board = base::board().load(simt::relaxed);
      }
      const std::uint32_t late = simt::ballot(
          simt::full_mask, other && queue::ingress_ref::overdue(glance, base::poll_stale_ns));
      lines there = accept(port, role, k, true, true);
      verdict = led::line;
      if (there == lines::mine) break;
      if (there == lines::shared) continue;  // lines come in groups: go on handing them out
      enum : std::uint32_t { go_on = 0, give_up = 1, may_park = 2, drop_count = 4, meet = 8 };
      std::uint32_t stop = go_on;
      if (leads()) {
        if (port == 0) obey_control();
        if (now & (interrupts | all_hints))
          stop = (now & meeting_called) != 0 ? give_up | meet : give_up;
        // Not when the kernel leaves already: it was looked for after taking the role, which
        // whoever said so has given back since.
        if (stop == go_on && port == 0 && v_.idle_us != 0 && holders(board) == 0 &&
            base::quiet_for() > v_.idle_us)
          stop = may_park;
        if (active_ && (board != w_.alone || turn >= linger_polls)) stop |= drop_count;
        if (scan_due()) {
          const std::uint32_t found = scan_hints(), news = active_ ? found : found | hungry_bit;
          if ((news & ~now) != 0)
            simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(news, simt::relaxed);
          if (found || base::finds_overdue()) stop |= give_up;
        }
      }
      if (roams() && turn >= 3) stop |= give_up;
      stop = simt::shuffle(simt::full_mask, stop, 0);
      // The warps that would poll other ports may all be busy: they were at the last turn.
      const std::uint32_t left = late & late_before;
      late_before = late;
      if (stop == go_on && left != 0 && move_to_overdue(left, role)) continue;
      verdict = led::lingered;
      if (stop & drop_count) break;
      if (stop & may_park) {
        if (park()) stop |= give_up;
        if (leads()) base::quiet_now();
      }
      if (stop & give_up) {
        if (leads()) v_.ports[port].give_role(role);
        back_ = !roams() && (stop & meet) == 0;
        verdict = led::interrupted;
        break;
      }
      simt::pause_if_host(turn, "lines from the host");
    }
    if (leads()) w_.role = role;
    simt::sync_warp();
    return verdict;
  }

  GROSR_DEVICE std::uint32_t all_ports() const { return ~0u >> (32 - ports()); }

  /// Whole warp: those of the ports in `which` that nobody polled for a while.
  GROSR_DEVICE std::uint32_t overdue(std::uint32_t which) const {
    unsigned lane = simt::lane_id();
    bool due = (which >> lane & 1) != 0 && v_.ports[lane].overdue(base::poll_stale_ns);
    return simt::ballot(simt::full_mask, due);
  }

  /// Levels whose bitmaps are not empty, as hint bits. One lane.
  GROSR_DEVICE std::uint32_t scan_hints() const {
    // One word a wait, not all: over the workers of a device every word is looked at often.
    std::uint32_t hints = 0;
    GROSR_NO_UNROLL
    for (unsigned l = 0; l < priority_levels; ++l) {
      std::uint32_t& w = v_.bitmap(l, false)[id_ % v_.warp_bitmap_words];
      std::uint32_t& b = v_.bitmap(l, true)[id_ % v_.block_bitmap_words];
      if (simt::atomic_ref<std::uint32_t>(w).load(simt::relaxed)) hints |= hint_bit(l, false);
      if (simt::atomic_ref<std::uint32_t>(b).load(simt::relaxed)) hints |= hint_bit(l, true);
      if (v_.ports[l * v_.ports_per_level + id_ % v_.ports_per_level].waiting())
        hints |= hint_bit(l, false);
    }
    return hints;
  }

  /// Whole warp, port 0 held (so only one parks): leaves the GPU unless there is work after all.
  GROSR_DEVICE bool park() {
    // Looked for twice: to submitters, `leaving` is gone, so it is not said while work is seen.
    if (!has_arrived() || work_waits()) return false;
    if (leads()) say_leaving();
    simt::sync_warp();
    bool busy = work_waits();
    if (leads()) {
      if (busy)
        simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.state).store(v_.epoch << 1,
                                                                              simt::relaxed);
      else
        simt::atomic_ref<std::uint32_t>(v_.hints[1]).store(v_.epoch, simt::release);
    }
    return !busy;
  }

  /// Whole warp: whether block 0 has said that this kernel is there. Before, it could still say so
  /// after somebody has said that it leaves.
  GROSR_DEVICE bool has_arrived() const {
    bool there = leads() && simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.state).load(
                                simt::relaxed) == v_.epoch << 1;
    return simt::any(simt::full_mask, there);
  }

  /// Whole warp: whether a line was not taken, or a worker is active.
  GROSR_DEVICE bool work_waits() const {
    unsigned lane = simt::lane_id();
    // Lines first, the board last: a worker that takes a line is active before it does.
    bool busy = lane < ports() && (v_.ports[lane].unseen() || v_.ports[lane].waiting());
    busy = simt::any(simt::full_mask, busy);
    if (!busy && leads()) busy = holders(base::board().load(simt::acquire)) != 0;
    return simt::any(simt::full_mask, busy);
  }

  // The leader's:
  bool scout_ = false;       // it looks out for the block
  bool polls_ = false;       // it polls, or has just had a line
  queue::held_line line_{};  // the line that this worker took and has not opened yet
  bool has_line_ = false;
  bool back_ = false;          // nobody polled w_.port since this worker did, perhaps
  bool shared_lines_ = false;  // there were lines for others besides
  bool meets_ = false;         // the last line's task waits for a meeting
};

}  // namespace grosr::run
