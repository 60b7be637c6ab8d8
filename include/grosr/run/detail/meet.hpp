// Meetings: how a block's warps come together to run block tasks, or to leave.
#pragma once

#include "grosr/run/detail/find.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::run {

template <class... Tasks>
class meeter : public finder<Tasks...> {
  using base = finder<Tasks...>;

 protected:
  using base::activate, base::b_, base::clear_hint, base::leads, base::must_leave, base::outrun_,
      base::says_leave, base::steal, base::unspill, base::v_, base::w_;

  GROSR_DEVICE explicit meeter(typename base::shared& b) : base(b) {}

  /// Whole warp: goes to the meeting. True when the block leaves. When a warp does not come in
  /// time the meeting is called off, and everybody goes back to work.
  GROSR_DEVICE bool meet() {
    simt::atomic_ref<std::uint32_t, simt::scope::block> meeting(b_.meeting), arrived(b_.arrived);
    bool held = true;
    if (leads()) {
      arrived.fetch_add(1, simt::acq_rel);
      std::uint64_t began = simt::clock_ns(), deadline = began + meeting_patience_ns;
      bool showed = false;
      for (unsigned turn = 0;; ++turn) {
        std::uint32_t n = arrived.load(simt::acquire);
        if (n == warps_per_block) break;
        if (!showed && simt::clock_ns() - began > show_after_ns) {
          base::publish_blocks();
          showed = true;
        }
        bool off = meeting.load(simt::relaxed) == 0;
        if ((off || (simt::clock_ns() > deadline && !must_leave())) &&
            arrived.compare_exchange(n, n - 1, simt::acq_rel)) {
          simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.next_meeting)
              .store(simt::clock_ns() + meeting_pause_ns, simt::relaxed);
          meeting.store(0, simt::relaxed);
          held = false;
          break;
        }
        // Told to abort, and a task does not end: ends it with everything else. From here, because
        // the host's calls may all be waiting for this kernel.
        if (v_.aborted() && simt::clock_ns() - began > abort_patience_ns) simt::trap();
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
          b_.verdict = !r && must_leave() ? 1 : 0;
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

  /// One lane, leaving: after an abort, when not all workers leave in time, ends them.
  GROSR_DEVICE void take_leave() const {
    simt::atomic_ref<std::uint32_t> departed(*v_.departed);
    std::uint32_t all = v_.epoch * v_.workers;  // of every kernel so far
    if (departed.fetch_add(1, simt::relaxed) + 1 == all)
      simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.state[state_left])
          .store(v_.epoch, simt::relaxed);
    if (!v_.aborted()) return;
    std::uint64_t began = simt::clock_ns();
    for (unsigned turn = 0; departed.load(simt::relaxed) != all; ++turn) {
      if (simt::clock_ns() - began > abort_patience_ns) {
        simt::trap();
        return;  // on the host, where nothing ends them
      }
      simt::pause(6, "the other workers");
    }
  }

  /// Warp 0 of a meeting: the next block task, its record in b_.record; or none.
  GROSR_DEVICE ref find_block(unsigned streak) {
    std::uint32_t hints = 0;
    if (leads()) {
      const std::uint64_t both = v_.hints_and_leave();
      if (!says_leave(both))
        hints =
            static_cast<std::uint32_t>(both) | nonempty(b_.deques) << 8 | std::uint32_t{1} << 31;
    }
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
        outrun_ = false;
        if (!r)
          r = choose_victim(v_, level, true, simt::block_id(), streak, [&](std::uint32_t victim) {
            return steal(level, v_.workers + victim);
          });
        // Who has these tasks may be in a long one and would not set the hint again.
        if (!r && leads() && !outrun_) {
          clear_hint(hint_bit(level, true));
          if (v_.block_spill[level].ready() != 0) set_bit(*v_.hints, hint_bit(level, true));
        }
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
    if (b_.early != r.bits || b_.early_published != published(b_.deques)) base::load_record(r);
    simt::sync_warp();
    if (!leads()) return;
    b_.early = 0;
    base::retire(r, 1);
    GROSR_NO_UNROLL
    for (std::uint32_t level = 0; level < priority_levels; ++level) show_kept(level);
  }

  /// One lane, nobody spawning, before a task that may be long: others may take what this block
  /// keeps, unless there is more that they can take already.
  GROSR_DEVICE void show_kept(std::uint32_t level) {
    const std::uint32_t self = v_.workers + simt::block_id(), kept = b_.deques.kept[level];
    if (kept != 0 && v_.deque(level, self).size() < kept)
      w_.spilled += publish(v_, b_.deques, self, level, kept);
  }

 private:
  static constexpr std::uint64_t meeting_patience_ns = 100'000;
  static constexpr std::uint64_t show_after_ns = 4'000;
  static constexpr std::uint64_t meeting_pause_ns = 1'000'000;
  static constexpr std::uint64_t abort_patience_ns = 1'000'000'000;
  static constexpr unsigned block_streak = 32;
};

}  // namespace grosr::run
