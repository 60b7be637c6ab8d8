// A worker: one warp that runs tasks, also those that lines carry, and with its block's other warps
// block tasks; and says when they are complete. How batches are run is in runner.hpp, finding work
// in find.hpp, taking what tasks spawn in spawn.hpp.
#pragma once

#include "grosr/run/detail/runner.hpp"

namespace grosr::run {

template <class... Tasks>
class worker : public runner<Tasks...> {
  using base = runner<Tasks...>;

 protected:
  GROSR_DEVICE explicit worker(typename base::shared& b) : base(b) {}

  using base::activate, base::b_, base::begin_run, base::end_of_way, base::end_run, base::flush,
      base::id_, base::invoke, base::leads, base::long_run_cycles, base::news_cycles,
      base::push_any, base::run_cycles_, base::run_ready, base::tell_host, base::v_, base::w_;
  using typename base::context_type, typename base::ran, typename base::types;

  static constexpr std::uint32_t no_slot = 0xffffffffu;

  // ---- running ----

  /// Whole warp: runs what `r` names, or its first tasks, and says which of a slot are done.
  GROSR_DEVICE void run(ref r) {
    if (pending_slot_ != no_slot && !(r.slot() && r.where() == pending_slot_)) settle();
    begin_busy();
    const ran result = base::run_refs(r);
    end_busy();
    run_cycles_ = result.cycles;
    row_runs_ = result.runs;
    if (r.slot() && result.done != 0)
      complete(r.whole() && result.done == r.count() ? r : r.split(), result.done, result.failures,
               r.count() > result.done);
  }

  /// Whole warp, active: runs the task of a line that carries it (lane and warp types), and says
  /// that it is complete.
  GROSR_DEVICE void run_line(const line_header& h, const queue::held_line& l) {
    settle();
    std::uint32_t type = h.type();
    begin_busy();
    ((type == types::template index_of<Tasks>() ? (run_line_typed<Tasks>(h, l), 0) : 0), ...);
    end_busy();
  }

  template <class T>
  GROSR_DEVICE void run_line_typed(const line_header& h, const queue::held_line& l) {
    if constexpr (width_of<T>() != width::block) {
      constexpr std::uint32_t type = types::template index_of<T>();
      constexpr unsigned words = stride_of<T> / 4;
      std::uint32_t payload[words];
      for (unsigned i = 0; i < words; ++i) payload[i] = l.word(line_payload_word + i);
      T task;
      __builtin_memcpy(&task, payload, sizeof(T));
      // For quiescence: while this worker is alone nobody else claims, so it is not too early.
      std::uint32_t claimed = base::lines_claimed(simt::relaxed);
      begin_run(type, true);
      simt::sync_warp();
      int status = 0;
      task_end end;
      if (width_of<T>() == width::warp || leads()) {
        context_type c(*this, width_of<T>(), h.level(), 0);
        status = invoke(task, c);
        end = c.end();
      }
      simt::sync_warp();
      base::template keep_ready<T>(end);
      run_ready(true);
      std::uint32_t bad = simt::ballot(simt::full_mask, status != 0);
      if (bad != 0 && simt::lane_id() == simt::lowest_bit(bad)) base::keep_error(&b_, task, status);
      end_run(type, 1, bad ? 1 : 0);
      simt::fence<simt::scope::system>(simt::acq_rel);  // R2; and for tell_alone()
      std::uint64_t board = leads() ? base::board().load(simt::relaxed) : 0;
      if (leads())
        finish(h.slot, h.generation, h.ticket, h.ticket_generation, h.ticket_lines, bad != 0);
      line_left_nothing_ = hands_empty();
      if (line_left_nothing_) base::tell_alone(claimed, board);
    }
  }

  /// Whole warp, between runs: whether nothing is left of what this worker took or was given.
  GROSR_DEVICE bool hands_empty() {
    bool some = leads() && (w_.open_mask != 0 || w_.pushed != 0 || nonempty(w_.deques) != 0 ||
                            nonempty(b_.deques) != 0);
    return simt::shuffle(simt::full_mask, some ? 1u : 0u, 0) == 0;
  }

  /// Whole block: runs the block task that warp 0 laid into block-shared memory.
  GROSR_DEVICE void run_block(ref r) {
    begin_busy();
    ((r.type() == types::template index_of<Tasks>() ? (run_block_typed<Tasks>(r), 0) : 0), ...);
    end_busy();
  }

  template <class T>
  GROSR_DEVICE void run_block_typed(ref r) {
    if constexpr (width_of<T>() == width::block) {
      constexpr std::uint32_t type = types::template index_of<T>();
      T task;
      __builtin_memcpy(&task, b_.record, sizeof(T));
      if (simt::warp_id() == 0) {
        begin_run(type, r.slot());
      } else if (leads()) {
        end_of_way();
        w_.run_began = simt::cycle_count();
      }
      simt::sync_warp();
      context_type c(*this, width::block, r.level(), 0);
      int status = invoke(task, c);
      std::uint32_t bad = simt::ballot(simt::full_mask, status != 0);
      if (bad != 0 && simt::lane_id() == simt::lowest_bit(bad) &&
          simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.task_failed)
                  .exchange(1, simt::relaxed) == 0)
        base::keep_error(&b_, task, status);
      simt::sync_warp();
      base::template keep_ready<T>(c.end());
      run_ready(true);
      flush(false);
      // Warps that were not active may not rest soon, and what went wrong is to be seen.
      if (simt::warp_id() != 0 && leads() && (w_.failed | w_.rejected) != 0) flush_stats();
      // Only the warp that found the task was active for sure; what others spawned is theirs now.
      if (simt::shuffle(simt::full_mask, w_.deques.nonempty | w_.pushed, 0) != 0) activate();
      simt::sync_block();
      if (simt::warp_id() == 0) {
        bool failed = b_.task_failed != 0;
        end_run(type, 1, failed ? 1 : 0);
        if (r.slot()) complete(r, 1, failed ? 1 : 0, false);
      }
    }
  }

  // ---- completion ----

  /// Whole warp: `n` tasks of a slot were run, `failed` of them with an error. Counts that the next
  /// run is likely to add to are settled later: at the latest before this worker rests.
  GROSR_DEVICE void complete(ref r, std::uint32_t n, std::uint32_t failed, bool more) {
    simt::sync_warp();
    if (r.whole()) {
      if (leads()) {
        const line_header& l = w_.line;
        report(l.slot, l.generation, l.ticket, l.ticket_generation, l.ticket_lines, failed != 0);
      }
      return;
    }
    if (pending_slot_ != r.where()) settle();
    pending_slot_ = r.where();
    pending_done_ += n;
    pending_failed_ += failed;
    if (!more) settle();
  }

  /// Whole warp: adds what is pending to its slot's counter; whoever completes it reports.
  GROSR_DEVICE void settle() {
    if (pending_slot_ == no_slot) return;
    simt::sync_warp();
    if (leads()) {
      slot_info& s = v_.slots[pending_slot_];
      simt::atomic_ref<std::uint64_t> count(s.count);
      // Read before the count: after it another worker may complete the slot, and the next line in
      // it overwrites the total.
      const std::uint32_t total = s.total;
      // Who did all of them needs no count: it was 0 and stays that.
      const bool alone = pending_done_ == total;
      std::uint64_t now = counted(pending_done_, pending_failed_);
      simt::fence<simt::scope::system>(simt::acq_rel);  // R1: what the tasks did, before the count
      if (alone) {                                      // and R2
        finish(pending_slot_, s.generation, s.ticket, s.ticket_generation, s.ticket_lines,
               now >> 32 != 0);
      } else {
        now += count.fetch_add(now, simt::relaxed);
        if (static_cast<std::uint32_t>(now) == total) {
          count.fetch_sub(now, simt::relaxed);
          report(pending_slot_, s.generation, s.ticket, s.ticket_generation, s.ticket_lines,
                 now >> 32 != 0);
        }
      }
    }
    pending_slot_ = no_slot;
    pending_done_ = pending_failed_ = 0;
  }

  /// One lane: completes a line, and its ticket with its last line.
  GROSR_DEVICE void report(std::uint32_t slot, std::uint32_t generation, std::uint32_t ticket,
                           std::uint32_t ticket_generation, std::uint32_t ticket_lines,
                           bool failed) {
    simt::fence<simt::scope::system>(simt::acq_rel);  // R2
    finish(slot, generation, ticket, ticket_generation, ticket_lines, failed);
  }

  /// One lane, after R2, which releases results, the slab's reading and the counters' resetting;
  /// and acquires what others did for the same count (A2, pairs with their R1). The words pair with
  /// the acquires in engine::done() and engine::take_slot().
  GROSR_DEVICE void finish(std::uint32_t slot, std::uint32_t generation, std::uint32_t ticket,
                           std::uint32_t ticket_generation, std::uint32_t ticket_lines,
                           bool failed) {
    using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
    // What returned because it was told to abort has not been run.
    if (run_cycles_ > long_run_cycles && v_.aborted()) return;
    if (ticket_lines > 1) {
      simt::atomic_ref<std::uint64_t> count(v_.slots[ticket].count);
      std::uint64_t more = counted(1, failed ? 1 : 0);
      std::uint64_t now = count.fetch_add(more, simt::relaxed) + more;
      if (static_cast<std::uint32_t>(now) == ticket_lines) {
        count.fetch_sub(now, simt::relaxed);
        simt::fence<simt::scope::system>(simt::acq_rel);  // A2 and R2 for the other lines
        word(v_.slot_words[ticket])
            .store(slot_word(ticket_generation, now >> 32 != 0), simt::relaxed);
      }
    }
    word(v_.slot_words[slot]).store(slot_word(generation, failed), simt::relaxed);
  }

  // ---- accounting ----

  /// Whole warp, around what it runs.
  GROSR_DEVICE void begin_busy() {
    if (leads()) w_.busy_began = simt::clock_ns();
  }
  GROSR_DEVICE void end_busy() {
    if (leads()) w_.busy_ns += simt::clock_ns() - w_.busy_began;
  }

  /// One lane, before a wait: nothing runs here any more.
  GROSR_DEVICE void end_of_work() {
    simt::atomic_ref<std::uint32_t>(v_.running[id_]).store(0, simt::relaxed);
    yield_keeper(v_, id_, true);
    if (w_.told_type != 0 && w_.run_began - w_.host_told > news_cycles) tell_host(0, w_.run_began);
    if (w_.batches != 0) flush_stats();
  }

  /// One lane: writes the counters where the host can copy them from.
  GROSR_DEVICE void flush_stats() {
    worker_stats& s = v_.stats[id_];
    const worker_stats was = s;  // nobody else writes it; all loads are under way together
    const auto put = [](std::uint64_t& to, std::uint64_t value) {
      simt::atomic_ref<std::uint64_t>(to).store(value, simt::relaxed);
    };
    put(s.tasks, was.tasks + w_.tasks + w_.inlined + w_.joined);
    put(s.spawned, was.spawned + w_.spawned + w_.inlined);
    put(s.batches, was.batches + w_.batches);
    put(s.stolen, was.stolen + w_.stolen);
    put(s.inlined, was.inlined + w_.inlined);
    put(s.spilled, was.spilled + w_.spilled);
    put(s.failed, was.failed + w_.failed);
    put(s.rejected, was.rejected + w_.rejected);
    put(s.joined, was.joined + w_.joined);
    put(s.busy_ns, was.busy_ns + w_.busy_ns);
    w_.busy_ns = 0;
    w_.tasks = w_.batches = w_.stolen = w_.failed = 0;
    w_.spawned = w_.inlined = w_.spilled = w_.rejected = w_.joined = 0;
  }

  std::uint32_t row_runs_ = 0;      // runs of the last row
  bool line_left_nothing_ = false;  // the last run was a line's task and left nothing in hand
  std::uint32_t pending_slot_ = no_slot, pending_done_ = 0, pending_failed_ = 0;
};

}  // namespace grosr::run
