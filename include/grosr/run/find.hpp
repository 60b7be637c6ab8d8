// How a worker finds work, waits for it, meets its block for block tasks, and leaves.
#pragma once

#include "grosr/run/victim.hpp"
#include "grosr/run/worker.hpp"

namespace grosr::run {

template <class... Tasks>
class scheduler : public worker<Tasks...> {
  using base = worker<Tasks...>;
  using base::activate, base::active_, base::b_, base::id_, base::inlined_, base::leads,
      base::push_any, base::v_, base::w_;

 public:
  using typename base::shared;

  GROSR_DEVICE explicit scheduler(shared& b) : base(b) {}

  /// Whole warp: the resident loop. Returns when the runtime parks or aborts.
  GROSR_DEVICE void loop() {
    arrive();
    for (unsigned turn = 1;; ++turn) {
      // A look at what can interrupt. After short runs every fourth turn is soon enough.
      if (!busy_ || this->run_cycles_ > look_cycles || turn % 4 == 0) {
        std::uint64_t now = 0;
        if (leads()) now = look();
        now = simt::shuffle(simt::full_mask, now, 0);
        hints_ = static_cast<std::uint32_t>(now);
        if (now & interrupts) {
          base::settle();
          if ((now & leave_now) && leads()) ask_for_meeting(true);
          if (meet()) break;
          continue;
        }
        if (leads()) offer();
        simt::sync_warp();
      }
      if (busy_ && this->run_cycles_ > base::long_run_cycles)
        poll_all_overdue();
      else if (turn % 16 == 0)
        poll_overdue((id_ + turn / 16) % ports());
      ref r = find(turn);
      bool found = static_cast<bool>(r);
      if (found) base::run(r);
      if (found && !busy_ && !direct_) wake_others();
      busy_ = found;
      direct_ = false;
      if (turn % 64 == 0 && leads()) {
        base::flush_stats();
        yield_keeper(v_, id_, false);
      }
    }
    depart();
  }

 private:
  static constexpr std::uint64_t scan_every_cycles = 128 * 1024;  // about 64 us
  static constexpr std::uint64_t meeting_patience_ns = 100'000;
  static constexpr std::uint64_t meeting_pause_ns = 1'000'000;
  static constexpr unsigned ageing_turns = 32;
  static constexpr unsigned block_streak = 32;
  static constexpr std::uint32_t all_hints = 0x0f0fu;
  static constexpr std::uint64_t look_cycles = 4096;  // about 2 us
  // Bits of look() above the hints.
  static constexpr std::uint64_t leave_now = std::uint64_t{1} << 32;
  static constexpr std::uint64_t meeting_called = std::uint64_t{1} << 33;
  static constexpr std::uint64_t interrupts = leave_now | meeting_called;

  GROSR_DEVICE bool roams() const { return v_.blocks < ports(); }
  GROSR_DEVICE unsigned ports() const { return priority_levels * v_.ports_per_level; }

  GROSR_DEVICE bool says_leave(std::uint64_t hints_and_leave) const {
    auto leave = static_cast<std::uint32_t>(hints_and_leave >> 32);
    return leave == v_.epoch || leave == leave_abort;
  }

  GROSR_DEVICE bool must_leave() const { return says_leave(v_.hints_and_leave()); }

  /// One lane: the hints, and whether to leave or to meet.
  GROSR_DEVICE std::uint64_t look() const {
    std::uint64_t both = v_.hints_and_leave();
    std::uint64_t now = both & 0xffffffffu;
    if (says_leave(both)) now |= leave_now;
    if (simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.meeting).load(simt::relaxed) != 0)
      now |= meeting_called;
    return now;
  }

  /// One lane, between runs: publishes kept refs when somebody waits for work or runs are long;
  /// repeats this worker's hints, which a thief may have cleared.
  GROSR_DEVICE void offer() {
    if ((hints_ & hungry_bit) || this->run_cycles_ > base::long_run_cycles)
      w_.spilled += publish_all(v_, w_.deques, id_, 1);
    std::uint32_t missing = w_.deques.marked & ~hints_;
    if (missing) simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(missing, simt::relaxed);
  }

  /// Whole warp that had nothing and now has a ref: the block's other warps should look too.
  GROSR_DEVICE void wake_others() {
    if (!leads()) return;
    simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.wake).fetch_add(1, simt::relaxed);
    clear_hint(hungry_bit);  // those who still wait say so again
  }

  // ---- coming and going ----

  GROSR_DEVICE void arrive() {
    if (simt::lane_id() == 0) {
      w_.deques = {};
      w_.open_mask = 0;
      w_.spawned = w_.inlined = w_.spilled = w_.rejected = w_.failed = 0;
      for (auto& o : w_.open) o.batch = no_batch;
      adopt(w_.deques, id_);
      active_ = v_.saves[id_].active != 0;
      w_.stock_count = v_.saves[id_].stock_count;
    }
    if (simt::lane_id() < stock_capacity)
      w_.stock[simt::lane_id()] = v_.saves[id_].stock[simt::lane_id()];
    active_ = simt::shuffle(simt::full_mask, active_ ? 1u : 0u, 0) != 0;
    if (simt::thread_id() == 0) {
      b_.deques = {};
      b_.meeting = b_.arrived = b_.verdict = b_.scout = b_.wake = 0;
      b_.next_meeting = 0;
      adopt(b_.deques, v_.workers + simt::block_id());
      if (simt::block_id() == 0) {
        quiet_now();
        simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.state).store(v_.epoch << 1,
                                                                              simt::release);
      }
    }
    simt::sync_block();
  }

  GROSR_DEVICE void adopt(deque_local& d, std::uint32_t index) const {
    GROSR_NO_UNROLL
    for (unsigned l = 0; l < priority_levels; ++l) {
      d.owner[l] = v_.deque(l, index).adopt();
      bool block = index >= v_.workers;
      std::uint32_t i = block ? index - v_.workers : index;
      simt::atomic_ref<std::uint32_t> word(v_.bitmap(l, block)[i / 32]);
      if (d.owner[l].bottom != d.owner[l].top_seen) {
        d.nonempty |= 1u << l;
        d.marked |= 1u << l;
        word.fetch_or(1u << i % 32, simt::relaxed);
        set_bit(*v_.hints, hint_bit(l, block));
      } else {
        word.fetch_and(~(1u << i % 32), simt::relaxed);
      }
    }
  }

  GROSR_DEVICE void depart() {
    simt::sync_warp();
    if (!leads()) return;
    publish_all(v_, w_.deques, id_, 0);
    if (simt::warp_id() == 0) publish_all(v_, b_.deques, v_.workers + simt::block_id(), 0);
    yield_keeper(v_, id_, true);
    worker_save& save = v_.saves[id_];
    save.active = active_ ? 1 : 0;
    save.stock_count = w_.stock_count;
    for (std::uint32_t i = 0; i < w_.stock_count; ++i) save.stock[i] = w_.stock[i];
    base::flush_stats();
  }

  // ---- the board ----

  /// One lane: the runtime came to rest, or woke, now.
  GROSR_DEVICE void quiet_now() const {
    simt::atomic_ref<std::uint64_t>(*v_.quiet_since).store(simt::clock_ns(), simt::relaxed);
  }

  /// One lane: microseconds since then.
  GROSR_DEVICE std::uint64_t quiet_for() const {
    std::uint64_t since = simt::atomic_ref<std::uint64_t>(*v_.quiet_since).load(simt::relaxed);
    std::uint64_t now = simt::clock_ns();
    return now > since ? (now - since) / 1000 : 0;
  }

  /// Whole warp, with nothing in hand or deques, the block's included: stops being active; the
  /// last one publishes what is complete.
  GROSR_DEVICE void rest() {
    if (!active_) return;
    unsigned lane = simt::lane_id();
    simt::atomic_ref<std::uint64_t> board(*v_.board);
    for (bool done = false; !done;) {
      std::uint64_t before = 0, after = 0;
      if (leads()) before = board.load(simt::acquire);
      before = simt::shuffle(simt::full_mask, before, 0);
      if (holders(before) != 1) {
        // Most are not the last. Who finds that it was after all takes its count back.
        if (leads()) {
          done = holders(board.fetch_sub(1, simt::acq_rel)) != 1;
          if (!done) board.fetch_add(activation, simt::acq_rel);
        }
        done = simt::shuffle(simt::full_mask, done ? 1u : 0u, 0) != 0;
        continue;
      }
      // Q1: lines claimed so far. Claimers were active before they claimed.
      std::uint32_t claimed = lane < ports() ? v_.ports[lane].claimed() : 0;
      simt::sync_warp();
      // Q2: the board again. The same word: nobody else was active meanwhile, so all those lines,
      // and whatever their tasks spawned, are done: only who is active holds work.
      if (leads()) after = board.load(simt::acquire);
      if (simt::shuffle(simt::full_mask, after, 0) != before) continue;
      // What all workers did, before the words that say so; pairs with engine::wait_all(). Every
      // lane that stores one: a fence orders only what its own lane stores.
      simt::fence<simt::scope::system>(simt::acq_rel);
      // Q3: published before the count drops, so that a later publisher writes later.
      if (lane < ports())
        simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.quiescent[lane])
            .store(claimed, simt::relaxed);
      simt::sync_warp();
      // Q4: fails when somebody became active since Q2: its lines are not in what was published.
      if (leads()) {
        simt::fence<simt::scope::system>(simt::seq_cst);
        quiet_now();
        done = board.compare_exchange(after, after - 1, simt::acq_rel);
      }
      done = simt::shuffle(simt::full_mask, done ? 1u : 0u, 0) != 0;
    }
    active_ = false;
  }

  // ---- finding ----

  /// Whole warp: a ref for warps, or none after a wait or when something interrupts.
  GROSR_DEVICE ref find(unsigned turn) {
    if (turn % ageing_turns == 0)
      if (ref r = find_aged(turn)) return r;
    // The most urgent of this worker's own, unless the hints promise something above it.
    std::uint64_t mine = 0;
    if (leads()) mine = own(highest_hint(hints_)).bits;
    mine = simt::shuffle(simt::full_mask, mine, 0);
    if (mine) return {mine};
    GROSR_NO_UNROLL
    for (unsigned k = 0; k < priority_levels; ++k) {
      std::uint32_t level = priority_levels - 1 - k;
      if (hints_ & hint_bit(level, false))
        if (ref r = elsewhere(level, turn)) return r;
      if (leads()) mine = own_at(level).bits;
      mine = simt::shuffle(simt::full_mask, mine, 0);
      if (mine) return {mine};
      // The meeting comes at the top of the loop. Until it is allowed, go on.
      if ((hints_ & hint_bit(level, true)) && leads()) ask_for_meeting(false);
    }
    return wait();
  }

  /// Ageing: the levels take turns at being first, and what others hold comes before what this
  /// worker holds.
  GROSR_DEVICE ref find_aged(unsigned turn) {
    GROSR_NO_UNROLL
    for (unsigned k = 0; k < priority_levels; ++k) {
      std::uint32_t level = (turn / ageing_turns + k) % priority_levels;
      if (hints_ & hint_bit(level, false))
        if (ref r = elsewhere(level, turn)) return r;
      std::uint64_t mine = 0;
      if (leads()) mine = own_at(level).bits;
      mine = simt::shuffle(simt::full_mask, mine, 0);
      if (mine) return {mine};
      if ((hints_ & hint_bit(level, true)) && leads()) ask_for_meeting(false);
    }
    return {};
  }

  /// One lane: the newest of this worker's own refs at the highest level that has some, but none
  /// below `least`.
  GROSR_DEVICE ref own(std::uint32_t least) {
    std::uint32_t levels = w_.deques.nonempty >> least << least;
    while (levels != 0) {
      std::uint32_t level = 31 - simt::leading_zeros(levels);
      if (ref r = own_at(level)) return r;
      levels &= ~(1u << level);
    }
    return {};
  }

  GROSR_DEVICE ref own_at(std::uint32_t level) { return pop_ref(v_, w_.deques, id_, level); }

  /// The highest level that hints name, for warps or blocks; 0 when there is none.
  GROSR_DEVICE static std::uint32_t highest_hint(std::uint32_t hints) {
    std::uint32_t levels = (hints | hints >> 8) & 0xfu;
    return levels == 0 ? 0 : 31 - simt::leading_zeros(levels);
  }

  GROSR_DEVICE ref elsewhere(std::uint32_t level, unsigned turn) {
    if (ref r = unspill(v_.spill[level])) return r;
    if (ref r = claim(level)) return r;
    ref r = choose_victim(v_, level, false, id_, turn,
                          [&](std::uint32_t victim) { return steal(level, victim); });
    if (r) return r;
    // Nothing there: clear the hint; work that comes sets it again. Lines that were seen in
    // between are looked for once more; deques are scanned every scan_every_ns anyway.
    unsigned lane = simt::lane_id();
    if (leads()) clear_hint(hint_bit(level, false));
    simt::sync_warp();
    if (lane < v_.ports_per_level && v_.ports[level * v_.ports_per_level + lane].waiting())
      set_bit(*v_.hints, hint_bit(level, false));
    simt::sync_warp();
    return {};
  }

  GROSR_DEVICE void clear_hint(std::uint32_t bit) {
    simt::atomic_ref<std::uint32_t> hints(*v_.hints);
    if (hints.load(simt::relaxed) & bit) hints.fetch_and(~bit, simt::acq_rel);
  }

  /// Takes a ref from a spill ring; its active count comes with it.
  GROSR_DEVICE ref unspill(const queue::ring_ref<std::uint64_t>& ring) {
    std::uint64_t bits = 0;
    if (leads() && ring.ready() != 0) ring.try_pop_n(&bits, 1);
    bits = simt::shuffle(simt::full_mask, bits, 0);
    if (bits == 0) return {};
    if (active_) {
      if (leads()) simt::atomic_ref<std::uint64_t>(*v_.board).fetch_sub(1, simt::acq_rel);
    }
    active_ = true;
    return {bits};
  }

  GROSR_DEVICE ref steal(std::uint32_t level, std::uint32_t victim) {
    queue::deque_ref d = v_.deque(level, victim);
    std::uint32_t n = 0;
    if (leads()) n = d.size();
    if (simt::shuffle(simt::full_mask, n, 0) == 0) return {};
    activate();
    std::uint64_t bits = 0;
    if (leads()) {
      bits = d.steal();
      if (bits) ++this->stolen_;
    }
    return {simt::shuffle(simt::full_mask, bits, 0)};
  }

  /// Claims a line of a level that a poll has seen.
  GROSR_DEVICE ref claim(std::uint32_t level) {
    unsigned lane = simt::lane_id(), n = v_.ports_per_level;
    bool there = lane < n && v_.ports[level * n + lane].waiting();
    std::uint32_t some = simt::ballot(simt::full_mask, there);
    if (some == 0) return {};
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
    if (got == 0) return {};
    return open_line(v_.ports[p].read_mirror(static_cast<std::uint32_t>(got)));
  }

  /// Turns a line into a ref that this warp must run at once, or none when it was for blocks.
  GROSR_DEVICE ref open_line(const queue::held_line& l) {
    unsigned lane = simt::lane_id();
    line_header h;
    h.kind = l.word(0);
    h.count = l.word(1);
    h.slot = l.word(2);
    h.ticket = l.word(3);
    h.ticket_lines = l.word(4);
    h.generation = l.word(5);
    h.ticket_generation = l.word(6);
    std::uint32_t type = h.kind & 0xff, level = h.kind >> 8 & 0xff;
    bool in_line = h.kind >> 16 & 1;
    if (in_line) {
      unsigned word = line_payload_word + lane % (line_payload_bytes / 4);
      unsigned from = l.base + word / 3;
      std::uint32_t w0 = simt::shuffle(simt::full_mask, l.mine.w[0], from);
      std::uint32_t w1 = simt::shuffle(simt::full_mask, l.mine.w[1], from);
      std::uint32_t w2 = simt::shuffle(simt::full_mask, l.mine.w[2], from);
      if (lane < line_payload_bytes / 4)
        reinterpret_cast<std::uint32_t*>(w_.stage)[lane] = word % 3 == 0   ? w0
                                                           : word % 3 == 1 ? w1
                                                                           : w2;
    }
    ref r = ref::make(h.slot, true, 0, h.count, type, level, true);
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
      if (base::is_block_type(type)) push_any(r, false);
    }
    simt::sync_warp();
    inlined_ = in_line;
    return base::is_block_type(type) ? ref{} : r;
  }

  // ---- polling ----

  /// Whole warp, cursor held, with what peek() gave: takes in the lines that are there; the caller
  /// then holds the cursor if there were none or if they are shared and `keep`. `take`: a line that
  /// is first in its ring is for this warp.
  enum class lines { none, shared, mine };
  GROSR_DEVICE lines accept(unsigned port, std::uint32_t& seen, const queue::ingress_ref::peeked& k,
                            bool take, bool keep, ref& got) {
    const queue::ingress_ref& p = v_.ports[port];
    unsigned n = p.valid_lines(seen, k);
    if (n == 0) return lines::none;
    bool first = take && p.first_is_free(seen, k);
    if (first) activate();
    seen = p.accept(seen, n, first, keep && !first, k);
    if (first) {
      got = open_line({k.mine, 0});
      direct_ = n == 1;
    }
    if ((n > 1 || !first) && leads()) {
      // H1: after the cursor; pairs with the clearing in elsewhere(), which then looks at ports.
      simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(
          hint_bit(port / v_.ports_per_level, false), simt::acq_rel);
    }
    return first ? lines::mine : lines::shared;
  }

  /// Whole warp, after a long run: polls every port that nobody polled for a while, and then knows
  /// what is more urgent than its own.
  GROSR_DEVICE void poll_all_overdue() {
    unsigned lane = simt::lane_id();
    std::uint32_t overdue = simt::ballot(
        simt::full_mask, lane < ports() && v_.ports[lane].overdue(base::poll_stale_ns));
    if (overdue == 0) return;
    GROSR_NO_UNROLL
    for (; overdue != 0; overdue &= overdue - 1) poll_overdue(simt::lowest_bit(overdue));
    std::uint32_t now = 0;
    if (leads()) now = static_cast<std::uint32_t>(look());
    hints_ = simt::shuffle(simt::full_mask, now, 0);
  }

  /// Whole warp, busy: polls a port when nobody did for a while. It only lets everybody see the
  /// lines: a hint tells when they are more urgent than what workers have.
  GROSR_DEVICE void poll_overdue(unsigned port) {
    std::uint64_t got = 0;
    if (leads()) {
      std::uint32_t seen;
      if (v_.ports[port].hold_cursor(base::poll_stale_ns, seen))
        got = std::uint64_t{1} << 32 | seen;
    }
    got = simt::shuffle(simt::full_mask, got, 0);
    if (got == 0) return;
    auto seen = static_cast<std::uint32_t>(got);
    ref none{};
    auto k = v_.ports[port].peek(seen);
    if (accept(port, seen, k, false, false, none) == lines::none && leads()) {
      if (port == 0) obey_control();
      v_.ports[port].free_cursor(seen);
    }
    simt::sync_warp();
  }

  /// One lane, port 0 held: does what the host asks for.
  GROSR_DEVICE void obey_control() {
    std::uint32_t c = simt::atomic_ref<std::uint32_t, simt::scope::system>(
                          const_cast<std::uint32_t&>(*v_.control))
                          .load(simt::relaxed);
    if (c >> 2 != v_.epoch) return;
    simt::atomic_ref<std::uint32_t> leave(v_.hints[1]);
    if (static_cast<request>(c & 3) == request::park) {
      say_leaving();
      leave.store(v_.epoch, simt::release);
    } else if (static_cast<request>(c & 3) == request::abort) {
      leave.store(leave_abort, simt::release);
    }
  }

  GROSR_DEVICE void say_leaving() {
    simt::atomic_ref<std::uint32_t, simt::scope::system>(*v_.state).store(v_.epoch << 1 | 1u,
                                                                          simt::relaxed);
    simt::fence<simt::scope::system>(simt::seq_cst);  // P1: pairs with the fence in submit
  }

  // ---- waiting ----

  /// Whole warp without work: rests, polls if nobody does, returns when there may be work.
  GROSR_DEVICE ref wait() {
    // The block's deque counts as this worker's: it rests only when that is empty too.
    std::uint32_t block_work = 0;
    if (leads() && (block_work = nonempty(b_.deques)) != 0) ask_for_meeting(false);
    if (simt::shuffle(simt::full_mask, block_work, 0) != 0) {
      simt::pause(3, "the block's meeting");
      return {};
    }
    base::settle();
    rest();
    if (leads()) base::end_of_work();
    return idle();
  }

  /// Whole warp, resting: one warp of the block, the scout, looks at device memory; the others
  /// sleep until it wakes them.
  GROSR_DEVICE ref idle() {
    using shared_word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
    // With fewer blocks than ports each scout goes round several.
    unsigned port = (id_ / warps_per_block + rounds_++ * v_.blocks) % ports();
    std::uint32_t self = simt::warp_id() + 1, wake = 0, seen = 0;
    bool scout = false;
    std::uint64_t began = simt::cycle_count();
    enum : std::uint32_t { none, out, lead_port } verdict = none;
    if (leads()) wake = shared_word(b_.wake).load(simt::relaxed);
    for (unsigned turn = 0;; ++turn) {
      if (leads()) {
        if (!scout) {
          std::uint32_t free = 0;
          scout = shared_word(b_.scout).load(simt::relaxed) == 0 &&
                  shared_word(b_.scout).compare_exchange(free, self, simt::relaxed);
        }
        if (scout) {
          std::uint64_t now = look();
          // Not all at once: an eighth of the scouts at each look, so that little work does not
          // wake everybody.
          bool mine = (id_ / warps_per_block + turn) % 8 == 0;
          if ((now & interrupts) || ((now & all_hints) && mine))
            verdict = out;
          else if (v_.ports[port].hold_cursor(led_ ? 0 : base::poll_stale_ns, seen))
            verdict = lead_port;
          else if (simt::cycle_count() - began > scan_every_cycles || (roams() && turn > 0))
            verdict = out;
          else if ((now & hungry_bit) == 0)
            simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(hungry_bit, simt::relaxed);
        } else if (shared_word(b_.wake).load(simt::relaxed) != wake ||
                   shared_word(b_.meeting).load(simt::relaxed) != 0) {
          verdict = out;
        }
      }
      std::uint32_t go = simt::shuffle(simt::full_mask, static_cast<std::uint32_t>(verdict), 0);
      if (go == lead_port) {
        led_ = true;
        ref r = lead(port, simt::shuffle(simt::full_mask, seen, 0));
        if (leads()) shared_word(b_.scout).store(0, simt::relaxed);
        return r;
      }
      if (go == out) break;
      simt::pause(turn < 4 ? turn : 6, "work");
    }
    if (leads() && scout) {
      // Hints are only hints: after a long wait look at more.
      if (simt::cycle_count() - began > scan_every_cycles) {
        std::uint32_t found = scan_hints();
        if (found) simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(found, simt::relaxed);
      }
      shared_word(b_.scout).store(0, simt::relaxed);
    }
    simt::sync_warp();
    return {};
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

  /// Whole warp, idle, cursor held: polls until a line comes or something interrupts.
  GROSR_DEVICE ref lead(unsigned port, std::uint32_t seen) {
    std::uint64_t began = simt::cycle_count();
    for (unsigned turn = 0;; ++turn) {
      // All loads of a round are under way together: the bus is the slowest of them.
      auto k = v_.ports[port].peek(seen);
      std::uint64_t now = 0;
      std::uint32_t active = 1;
      if (leads()) {
        now = look();
        if (port == 0)
          active = holders(simt::atomic_ref<std::uint64_t>(*v_.board).load(simt::relaxed));
      }
      ref got{};
      lines there = accept(port, seen, k, true, true, got);
      if (there == lines::mine) return got;
      if (there == lines::shared) continue;  // lines come in groups: go on handing them out
      std::uint32_t stop = 0;
      if (leads()) {
        if (port == 0) obey_control();
        stop = (now & (interrupts | all_hints)) != 0 ? 1 : 0;
        if (port == 0 && v_.idle_us != 0 && active == 0 && quiet_for() > v_.idle_us) stop |= 2;
        if (simt::cycle_count() - began > scan_every_cycles) {
          began = simt::cycle_count();
          std::uint32_t found = scan_hints();
          if (found) {
            simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(found, simt::relaxed);
            stop |= 1;
          }
        }
      }
      if (roams() && turn >= 3) stop |= 1;
      stop = simt::shuffle(simt::full_mask, stop, 0);
      if (stop & 2) {
        if (park()) stop |= 1;
        if (leads()) quiet_now();
      }
      if (stop & 1) {
        if (leads()) v_.ports[port].free_cursor(seen);
        simt::sync_warp();
        return {};
      }
      simt::pause_if_host(turn, "lines from the host");
    }
  }

  /// Whole warp, port 0 held (so only one parks): leaves the GPU unless there is work after all.
  GROSR_DEVICE bool park() {
    // Looked for twice: to submitters, `leaving` is gone, so it is not said while work is seen.
    if (work_waits()) return false;
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

  /// Whole warp: whether a line was not taken, or a worker is active.
  GROSR_DEVICE bool work_waits() const {
    unsigned lane = simt::lane_id();
    // Lines first, the board last: a worker that takes a line is active before it does.
    bool busy = lane < ports() && (v_.ports[lane].unseen() || v_.ports[lane].waiting());
    busy = simt::any(simt::full_mask, busy);
    if (!busy && leads())
      busy = holders(simt::atomic_ref<std::uint64_t>(*v_.board).load(simt::acquire)) != 0;
    return simt::any(simt::full_mask, busy);
  }

  // ---- meetings ----

  /// One lane: asks the block's warps to meet at their next step.
  GROSR_DEVICE void ask_for_meeting(bool now) {
    if (!now &&
        simt::clock_ns() < simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.next_meeting)
                               .load(simt::relaxed))
      return;
    simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.meeting).store(1, simt::relaxed);
  }

  /// Whole warp: goes to the meeting. True when the block leaves. When a warp does not come in
  /// time the meeting is called off, and everybody goes back to work.
  GROSR_DEVICE bool meet() {
    simt::atomic_ref<std::uint32_t, simt::scope::block> meeting(b_.meeting), arrived(b_.arrived);
    bool held = true;
    if (leads()) {
      arrived.fetch_add(1, simt::acq_rel);
      std::uint64_t deadline = simt::clock_ns() + meeting_patience_ns;
      for (unsigned turn = 0;; ++turn) {
        std::uint32_t n = arrived.load(simt::acquire);
        if (n == warps_per_block) break;
        bool off = meeting.load(simt::relaxed) == 0;
        if ((off || (simt::clock_ns() > deadline && !must_leave())) &&
            arrived.compare_exchange(n, n - 1, simt::acq_rel)) {
          simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.next_meeting)
              .store(simt::clock_ns() + meeting_pause_ns, simt::relaxed);
          meeting.store(0, simt::relaxed);
          held = false;
          break;
        }
        simt::pause(turn < 3 ? turn : 3, "the block's other warps");
      }
    }
    if (!simt::shuffle(simt::full_mask, held ? 1u : 0u, 0)) return false;
    simt::sync_block();
    for (unsigned streak = 0;; ++streak) {
      if (simt::warp_id() == 0) {
        ref r = streak < block_streak ? find_block(streak) : ref{};
        if (leads()) {
          b_.task_ref = r.bits;
          b_.task_failed = 0;
          b_.verdict = must_leave() && !r ? 1 : 0;
          if (!r) b_.meeting = b_.arrived = 0;
        }
      }
      simt::sync_block();
      ref r{b_.task_ref};
      if (!r) break;
      base::run_block(r);
      simt::sync_block();
    }
    bool leaving = b_.verdict != 0;
    simt::sync_block();
    return leaving;
  }

  /// Warp 0 of a meeting: the next block task, its record in b_.record; or none.
  GROSR_DEVICE ref find_block(unsigned streak) {
    std::uint32_t hints = 0;
    if (leads())
      hints = must_leave() ? 0
                           : simt::atomic_ref<std::uint32_t>(*v_.hints).load(simt::relaxed) |
                                 nonempty(b_.deques) << 8 | std::uint32_t{1} << 31;
    hints = simt::shuffle(simt::full_mask, hints, 0);
    if (hints >> 31 == 0) return {};
    std::uint32_t self = v_.workers + simt::block_id();
    GROSR_NO_UNROLL
    for (unsigned k = 0; k < priority_levels; ++k) {
      std::uint32_t level = priority_levels - 1 - k;
      ref r{};
      if (leads()) r = pop_ref(v_, b_.deques, self, level);
      r = {simt::shuffle(simt::full_mask, r.bits, 0)};
      if (!r && (hints & hint_bit(level, true))) {
        r = unspill(v_.block_spill[level]);
        if (!r)
          r = choose_victim(v_, level, true, simt::block_id(), streak, [&](std::uint32_t victim) {
            return steal(level, v_.workers + victim);
          });
        if (!r && leads()) clear_hint(hint_bit(level, true));
      }
      if (r) {
        activate();
        load_block_task(r);
        return r;
      }
      // Warps have something more urgent than what blocks could still find.
      if (hints & hint_bit(level, false)) return {};
    }
    return {};
  }

  GROSR_DEVICE void load_block_task(ref r) {
    unsigned lane = simt::lane_id();
    const unsigned char* at = base::batch_at(r);
    std::uint32_t stride = stride_at(r.type());
    if (lane < stride / 16) {
      auto* from = at + r.first() * stride + lane * 16;
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
    if (leads()) base::retire(r, 1);
  }

  GROSR_DEVICE static std::uint32_t stride_at(std::uint32_t type) {
    std::uint32_t i = 0, stride = 16;
    ((type == i++ ? stride = stride_of<Tasks> : 0), ...);
    return stride;
  }

  std::uint32_t hints_ = 0;
  std::uint32_t rounds_ = 0;  // waits so far
  bool busy_ = false;         // the last turn ran something
  bool direct_ = false;       // the ref found came across the bus alone: nobody else needs to look
  bool led_ = false;          // led its port before: its code is warm, so it is preferred
};

/// The resident kernel.
template <class... Tasks>
struct resident {
  view v;

  GROSR_DEVICE void operator()() const {
    using engine = scheduler<Tasks...>;
    auto& b = simt::block_shared<typename engine::shared>();
    b.set_view(v);
    engine(b).loop();
  }
};

}  // namespace grosr::run
