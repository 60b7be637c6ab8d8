// The resident kernel: a worker's life from arriving to leaving.
#pragma once

#include <utility>

#include "grosr/run/detail/meet.hpp"

namespace grosr::run {

template <class... Tasks>
class scheduler : public meeter<Tasks...> {
  using base = meeter<Tasks...>;
  using base::active_, base::b_, base::has_line_, base::hints_, base::id_, base::leads, base::look,
      base::ports, base::scout_, base::v_, base::w_;

 public:
  using typename base::shared;

  GROSR_DEVICE explicit scheduler(shared& b) : base(b) {}

  /// Whole warp: returns when the runtime parks or aborts.
  GROSR_DEVICE void loop() {
    arrive();
    // What is not done at every turn comes after so many turns, or so many runs in rows.
    unsigned turn = 1, runs = 0, row = 0;
    auto every = [&](unsigned turns) {
      const unsigned rows = turns * 8;
      return turn % turns == 0 || (runs - row) / rows != runs / rows;
    };
    for (;; ++turn, row = std::exchange(this->row_runs_, 0u), runs += row) {
      has_line_ = base::shared_lines_ = base::meets_ = this->line_left_nothing_ = false;
      ref r{};
      if (!quick_) {
        // A look at what can interrupt. After short runs every fourth turn is soon enough.
        bool ran_long = busy_ && this->run_cycles_ > base::long_run_cycles;
        if (ran_long || every(64))
          base::poll_overdue(base::all_ports());
        else if (every(16))
          base::poll_overdue(1u << (id_ + turn / 16 + runs / 128) % ports());
        if (!busy_ || this->run_cycles_ > look_cycles || every(4)) {
          std::uint64_t now = 0;
          if (leads()) now = base::meeting_is_called() ? base::meeting_called : look();
          now = simt::shuffle(simt::full_mask, now, 0);
          hints_ = static_cast<std::uint32_t>(now);
          if (now & base::interrupts) {
            base::settle();
            if ((now & base::leave_now) && leads()) base::ask_for_meeting(true);
            if (base::meet()) break;
            continue;
          }
          if (leads()) base::offer();
          simt::sync_warp();
        }
        r = base::find(turn);
      }
      bool waited = !r && !has_line_;
      if (waited) wait();
      simt::sync_warp();
      bool line = has_line_;
      // What waits for a meeting does not wait for what this warp runs now.
      if ((line || r) && leads()) base::publish_blocks();
      if (line) r = base::open_line(base::line_);
      if (r) base::run(r);
      bool found = line || r;
      // One task that left nothing: the next line may be on its way.
      quick_ = this->line_left_nothing_ && waited && !base::shared_lines_ && !every(64);
      if (found && !this->line_left_nothing_) {
        simt::sync_warp();
        // For a line's block task the block meets first: others see it when that takes longer, or
        // when one of the warps runs something else.
        bool blocks = leads() && nonempty(b_.deques) != 0 && !base::meets_;
        bool spawned = leads() && (w_.open_mask != 0 || blocks);
        if (simt::shuffle(simt::full_mask, spawned ? 1u : 0u, 0)) base::flush(blocks);
      }
      // Who had nothing and now has work: the others should look too, unless a line came alone.
      if (found && !busy_ && (!waited || base::shared_lines_)) wake_others();
      busy_ = found && !base::meets_;
      if (every(64)) base::collects(false);
      if (every(64) && leads()) {
        base::flush_stats();
        yield_keeper(v_, id_, false);
      }
    }
    depart();
  }

 private:
  static constexpr std::uint64_t look_cycles = 4096;  // about 2 us
  static constexpr unsigned keen_blocks = 96;         // whose scouts do not nap

  /// Whole warp: lets the block's other warps look for work.
  GROSR_DEVICE void wake_others() {
    if (!leads()) return;
    simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.wake).fetch_add(1, simt::relaxed);
    base::clear_hint(hungry_bit);  // those who still wait say so again
  }

  // ---- coming and going ----

  GROSR_DEVICE void arrive() {
    if (simt::lane_id() == 0) {
      w_.deques = {};
      w_.open_mask = 0;
      w_.left = spawner<Tasks...>::no_frame;
      w_.spawned = w_.inlined = w_.spilled = w_.rejected = w_.failed = w_.joined = 0;
      w_.tasks = w_.batches = w_.stolen = 0;
      w_.busy_ns = 0;
      w_.host_told = w_.alone = 0;
      w_.scanned = simt::cycle_count();
      w_.told_type = w_.told_serial = w_.makes_way = 0;
      w_.pushed = v_.saves[id_].active;  // it may have
      w_.port = simt::block_id() % ports();
      w_.spare_count = w_.ready_count = 0;
      for (auto& o : w_.open) {
        o.batch = no_batch;
        o.count = nowhere;
      }
      adopt(w_.deques, id_);
      active_ = v_.saves[id_].active != 0;
      w_.stock_count = v_.saves[id_].stock_count;
      w_.frame_count = v_.saves[id_].frame_count;
    }
    if (simt::lane_id() < frame_group - 1)
      w_.frames[simt::lane_id()] = v_.saves[id_].frames[simt::lane_id()];
    if (simt::lane_id() < stock_capacity)
      w_.stock[simt::lane_id()] = v_.saves[id_].stock[simt::lane_id()];
    active_ = simt::shuffle(simt::full_mask, active_ ? 1u : 0u, 0) != 0;
    if (simt::thread_id() == 0) {
      b_.deques = {};
      b_.meeting = b_.arrived = b_.verdict = b_.scout = b_.wake = b_.cancelling = b_.polls = 0;
      b_.port = simt::block_id() % ports();
      b_.early = 0;
      b_.next_meeting = 0;
      adopt(b_.deques, v_.workers + simt::block_id());
      if (simt::block_id() == 0) {
        base::quiet_now();
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
    w_.frame_count = base::frames_at_hand();
    while (w_.spare_count != 0) w_.frames[w_.frame_count++] = w_.spare[--w_.spare_count];
    spill_frames(&v_, &w_, 0);
    publish_all(v_, w_.deques, id_, 0);
    if (simt::warp_id() == 0) publish_all(v_, b_.deques, v_.workers + simt::block_id(), 0);
    yield_keeper(v_, id_, true);
    worker_save& save = v_.saves[id_];
    save.active = active_ ? 1 : 0;
    save.stock_count = w_.stock_count;
    save.frame_count = w_.frame_count;
    for (std::uint32_t i = 0; i < w_.frame_count; ++i) save.frames[i] = w_.frames[i];
    for (std::uint32_t i = 0; i < w_.stock_count; ++i) save.stock[i] = w_.stock[i];
    base::flush_stats();
    base::take_leave();
  }

  // ---- waiting ----

  /// Whole warp without work: waits until there may be some, or has taken a line (`has_line_`).
  GROSR_DEVICE void wait() {
    // The block's deque counts as this worker's: it rests only when that is empty too.
    std::uint32_t block_work = 0;
    if (leads() && (block_work = nonempty(b_.deques)) != 0 && !base::ask_for_meeting(false))
      base::publish_blocks();
    if (base::collects(true)) return;
    if (simt::shuffle(simt::full_mask, block_work, 0) != 0) {
      simt::pause(3, "the block's meeting");
      return;
    }
    base::settle();
    // Alone on the board it says that all is done, and keeps its count for a while if it polls: the
    // next line then needs no fence.
    if (active_ && !base::told_ && !quick_) {
      std::uint32_t claimed = base::lines_claimed(simt::relaxed);
      simt::fence<simt::scope::system>(simt::acq_rel);
      simt::sync_warp();  // every lane's claims before the board
      base::tell_alone(claimed, leads() ? base::board().load(simt::relaxed) : 0);
    }
    bool holds = false;
    if (base::back_) {
      bool again = leads() && v_.ports[w_.port].retake_role(w_.role);
      holds = simt::shuffle(simt::full_mask, again ? 1u : 0u, 0) != 0;
      base::back_ = false;
    }
    bool linger = holds && base::told_;
    for (;;) {
      if (active_ && !linger) {
        base::rest();
        if (leads()) base::end_of_work();
        simt::sync_warp();
      }
      if (!holds) {
        if (watch() == watched::work) break;
        holds = true;
      }
      if (base::lead() != base::led::lingered) break;
      linger = false;
    }
    if (!has_line_) base::end_of_scouting();
    simt::sync_warp();
  }

  /// Whole warp, hands empty: one warp of the block, the scout, looks at device memory until there
  /// may be work or it has the role of polling w_.port; the others sleep until it wakes them.
  enum class watched : std::uint32_t { nothing, work, role };
  GROSR_DEVICE watched watch() {
    using shared_word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
    std::uint32_t self = simt::warp_id() + 1, wake = 0;
    if (leads()) base::begin_scan_wait();
    watched verdict = watched::nothing;
    const bool keen = simt::block_id() < keen_blocks;
    if (leads()) wake = shared_word(b_.wake).load(simt::relaxed);
    for (unsigned turn = 0;; ++turn) {
      if (leads()) {
        if (!scout_) {
          std::uint32_t free = 0;
          scout_ = shared_word(b_.scout).load(simt::relaxed) == 0 &&
                   shared_word(b_.scout).compare_exchange(free, self, simt::relaxed);
          // Where the last line came from, the next one is likely.
          if (scout_) {
            w_.port = shared_word(b_.port).load(simt::relaxed);
            if (base::roams())
              shared_word(b_.port).store((w_.port + v_.blocks) % ports(), simt::relaxed);
          }
        }
        if (scout_) {
          std::uint64_t now = look();
          // Not all at once, so that little work does not wake everybody: the keen ones, and an
          // eighth of the others at each look.
          bool mine = keen || (id_ / warps_per_block + turn) % 8 == 0;
          bool long_ago = base::scan_due();
          if ((now & base::interrupts) || ((now & base::all_hints) && mine))
            verdict = watched::work;
          else if (v_.ports[w_.port].take_role(base::poll_stale_ns, w_.role))
            verdict = watched::role;
          else if (long_ago || (base::roams() && turn > 0))
            verdict = watched::work;
          else if ((now & hungry_bit) == 0)
            simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(hungry_bit, simt::relaxed);
          // Hints are only hints: after a long wait look at more.
          if (long_ago) {
            std::uint32_t found = base::scan_hints();
            if (verdict == watched::nothing && base::finds_overdue()) verdict = watched::work;
            if (found) simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(found, simt::relaxed);
            if (verdict == watched::work && !base::roams())  // next time
              shared_word(b_.port).store(w_.port = (w_.port + 1) % ports(), simt::relaxed);
          }
        } else if (shared_word(b_.wake).load(simt::relaxed) != wake ||
                   shared_word(b_.meeting).load(simt::relaxed) != 0) {
          verdict = watched::work;
        }
      }
      auto all = static_cast<watched>(
          simt::shuffle(simt::full_mask, static_cast<std::uint32_t>(verdict), 0));
      if (all != watched::nothing) return all;
      // A line that comes may be for the whole block.
      const bool soon = keen || (!scout_ && shared_word(b_.polls).load(simt::relaxed) != 0);
      simt::pause(soon ? 0 : turn < 4 ? turn : 6, "work");
    }
  }

  bool busy_ = false;   // the last turn ran something
  bool quick_ = false;  // the last turn ran one task from the port it polled, and all is done
};

/// The kernel.
template <class... Tasks>
struct resident {
  view v;

  GROSR_DEVICE void operator()() const {
    using worker_type = scheduler<Tasks...>;
    auto& b = simt::block_shared<typename worker_type::shared>();
    b.set_view(v);
    worker_type(b).loop();
  }
};

}  // namespace grosr::run
