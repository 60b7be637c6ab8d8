// A worker's place on the board: whether it counts as active, and who says when all work is done.
// docs/internals/scheduler.md, "Quiescence".
#pragma once

#include <utility>

#include "grosr/run/detail/spawn.hpp"

namespace grosr::run {

template <class... Tasks>
class member : public spawner<Tasks...> {
  using base = spawner<Tasks...>;

 protected:
  using base::leads, base::v_;

  GROSR_DEVICE explicit member(typename base::shared& b) : base(b) {}

  GROSR_DEVICE unsigned ports() const { return priority_levels * v_.ports_per_level; }
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> board() const {
    return simt::atomic_ref<std::uint64_t>(*v_.board);
  }

  /// Whole warp: counts this worker as active. Before it takes what it saw elsewhere.
  GROSR_DEVICE void activate() {
    told_ = false;
    if (active_) return;
    active_ = true;
    if (!leads()) return;
    // Relaxed: whoever claims or steals next does so with a release.
    std::uint64_t before = board().fetch_add(activation, simt::relaxed);
    base::w_.alone = holders(before) == 0 ? before + activation : 0;
  }

  /// Lane p: lines claimed of port p so far.
  GROSR_DEVICE std::uint32_t lines_claimed(simt::order o) const {
    return simt::lane_id() < ports() ? v_.ports[simt::lane_id()].claimed(o) : 0;
  }

  /// Whole warp, active, with nothing in hand or deques, the block's included. `claimed` is what
  /// lines_claimed() gave after it became active, `board` what lane 0 loaded from the board after
  /// that and a system fence by every lane: if no other worker was active since this one became it,
  /// all those lines are done, and it says so.
  GROSR_DEVICE bool tell_alone(std::uint32_t claimed, std::uint64_t board) {
    bool alone = leads() && board == base::w_.alone;
    told_ = simt::shuffle(simt::full_mask, alone ? 1u : 0u, 0) != 0;
    if (told_) tell(claimed);
    return told_;
  }

  // ---- what tasks collect for others (task.hpp, collector_of) is work that no worker holds. A
  // worker that collected some looks before it rests ----

  using collector = typename collector_of<spawner<Tasks...>, Tasks...>::type;
  static constexpr bool has_collector = !std::is_void_v<collector>;

  /// Whole warp: has collected things taken, with `all` if it collected some since it last found
  /// none, else those that wait for too long. True: it may have work, and does not rest.
  GROSR_DEVICE bool collects(bool all) {
    if constexpr (has_collector) {
      std::uint32_t look = 0;
      if (leads()) look = all ? std::exchange(base::w_.pushed, 0) : finds_overdue() ? 1 : 0;
      if (simt::shuffle(simt::full_mask, look, 0) == 0) return false;
      activate();
      const bool some = collector::collect(&base::memory(), all);
      if (some && leads()) base::w_.pushed = 1;  // there may be more than it could
      base::flush(true);
      if (some) simt::pause(0, "those who take what was collected");
      return some;
    }
    return false;
  }

  /// One lane: whether something waits for too long. This worker has it taken then before it rests.
  GROSR_DEVICE bool finds_overdue() {
    if constexpr (has_collector)
      if (collector::overdue(&base::memory())) {
        base::w_.pushed = 1;
        return true;
      }
    return false;
  }

  /// Whole warp, active, hands and deques empty: stops being active. The last one publishes what is
  /// complete.
  GROSR_DEVICE void rest() {
    if (!active_) return;
    active_ = false;
    bool done = told_ && leave_board(base::w_.alone);
    while (!done) {
      std::uint64_t before = 0, after = 0;
      if (leads()) before = board().load(simt::acquire);
      before = simt::shuffle(simt::full_mask, before, 0);
      if (holders(before) != 1) {
        // Most are not the last. Who finds that it was after all takes its count back.
        if (leads()) {
          done = holders(board().fetch_sub(1, simt::acq_rel)) != 1;
          if (!done) board().fetch_add(activation, simt::acq_rel);
        }
        done = simt::shuffle(simt::full_mask, done ? 1u : 0u, 0) != 0;
        continue;
      }
      // Q1: lines claimed so far. Claimers were active before they claimed.
      std::uint32_t claimed = lines_claimed(simt::acquire);
      simt::sync_warp();
      // Q2: the board again. The same word: nobody else was active meanwhile, so all those lines,
      // and whatever their tasks spawned, are done: only who is active holds work.
      if (leads()) after = board().load(simt::acquire);
      if (simt::shuffle(simt::full_mask, after, 0) != before) continue;
      // What all workers did, before the words that say so; pairs with engine::wait_all(). Every
      // lane fences what it stores.
      simt::fence<simt::scope::system>(simt::acq_rel);
      tell(claimed);  // Q3: before the count drops, so that a later publisher writes later
      done = leave_board(before);
    }
  }

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

  bool active_ = false;  // this worker is counted on the board
  bool told_ = false;    // what is complete was published, and nothing was taken since

 private:
  GROSR_DEVICE void tell(std::uint32_t claimed) const {
    if (simt::lane_id() < ports())
      simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.quiescent[simt::lane_id()])
          .store(claimed, simt::relaxed);
    simt::sync_warp();
  }

  /// Whole warp, after tell(). Q4: false when somebody became active since the board was `seen`
  /// (lane 0's): what it claimed is not in what was told.
  GROSR_DEVICE bool leave_board(std::uint64_t seen) const {
    bool done = false;
    if (leads()) {
      simt::fence<simt::scope::system>(simt::seq_cst);
      quiet_now();
      done = board().compare_exchange(seen, seen - 1, simt::acq_rel);
    }
    return simt::shuffle(simt::full_mask, done ? 1u : 0u, 0) != 0;
  }
};

}  // namespace grosr::run
