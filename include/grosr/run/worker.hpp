// A worker: one warp that runs batches of tasks, and with its block's other warps block tasks; and
// says when they are complete. Finding work is in find.hpp; taking what tasks spawn, in spawn.hpp.
#pragma once

#include "grosr/run/board.hpp"
#include "grosr/run/context.hpp"

namespace grosr::run {

template <class... Tasks>
class worker : public member<Tasks...> {
  using base = member<Tasks...>;

 protected:
  GROSR_DEVICE explicit worker(typename base::shared& b) : base(b) {}

  using base::activate, base::b_, base::flush, base::id_, base::invoke, base::is_block_type,
      base::leads, base::long_run_cycles, base::push_any, base::record_error, base::v_, base::w_;
  using typename base::context_type, typename base::types;

  static constexpr std::uint64_t news_cycles = 32 * 1024;             // about 16 us
  static constexpr std::uint64_t heartbeat_cycles = 8 * 1024 * 1024;  // about 4 ms
  static constexpr std::uint32_t no_slot = 0xffffffffu;

  // ---- running ----

  /// Whole warp: runs what `r` names (lane and warp types), after putting back what is more than
  /// one run of it.
  GROSR_DEVICE void run(ref r) {
    if (pending_slot_ != no_slot && !(r.slot() && r.where() == pending_slot_)) settle();
    ((r.type() == types::template index_of<Tasks>() ? (run_typed<Tasks>(r), 0) : 0), ...);
  }

  template <class T>
  GROSR_DEVICE void run_typed(ref r) {
    if constexpr (width_of<T>() == width::lane) run_lanes<T>(r);
    if constexpr (width_of<T>() == width::warp) run_warp<T>(r);
    // Block types are run by meetings.
  }

  GROSR_DEVICE const unsigned char* batch_at(ref r) const {
    return r.slot() ? v_.slabs + std::uint64_t{r.where()} * v_.slab_bytes : v_.batch_at(r.where());
  }

  /// Loads a task from its record.
  template <class T>
  GROSR_DEVICE static void read_record(const unsigned char* at, T& task) {
    piece p[stride_of<T> / 16];
    auto* from = reinterpret_cast<const piece*>(at);
    for (unsigned i = 0; i < stride_of<T> / 16; ++i) p[i] = from[i];
    __builtin_memcpy(&task, p, sizeof(T));
  }

  /// Whole warp: fetches records of a slot into the stage, all accesses under way together.
  GROSR_DEVICE void fetch(ref r, std::uint32_t bytes, std::uint32_t stride) {
    constexpr unsigned pieces = stage_bytes / 16 / simt::warp_size;
    unsigned lane = simt::lane_id();
    auto* from = reinterpret_cast<const simt::bus_word*>(batch_at(r) + r.first() * stride) + lane;
    auto* to = reinterpret_cast<piece*>(w_.stage) + lane;
    simt::bus_word in[pieces];
    for (unsigned i = 0; i < pieces; ++i)
      if ((i * simt::warp_size + lane) * 16 < bytes)
        in[i] = simt::bus_load(from + i * simt::warp_size);
    for (unsigned i = 0; i < pieces; ++i)
      if ((i * simt::warp_size + lane) * 16 < bytes)
        to[i * simt::warp_size] = {{in[i].w[0], in[i].w[1], in[i].w[2], in[i].w[3]}};
    simt::sync_warp();
  }

  template <class T>
  GROSR_DEVICE void run_lanes(ref r) {
    constexpr std::uint32_t type = types::template index_of<T>(), stride = stride_of<T>;
    constexpr std::uint32_t most = stage_bytes / stride / simt::warp_size * simt::warp_size;
    unsigned lane = simt::lane_id();
    ref now = r.slot() && r.count() > most ? r.take(most) : r;
    std::uint32_t total = 0;
    T task{};
    if (r.slot()) {
      total = now.count();
      fetch(now, total * stride, stride);
      if (leads()) retire(r, total);
    } else {
      // Fill up from this worker's newest refs while they are of the same kind.
      GROSR_NO_UNROLL
      for (ref part = r; part; part = total < simt::warp_size ? pop_same(r) : ref{}) {
        std::uint32_t room = simt::warp_size - total, n = part.count() < room ? part.count() : room;
        if (lane - total < n)
          read_record(batch_at(part) + (part.first() + lane - total) * stride, task);
        simt::sync_warp();  // the records are in registers: the batch may be split or freed
        if (leads()) retire(part, n);
        total += n;
      }
    }
    std::uint32_t done = 0, failures = 0;
    GROSR_NO_UNROLL
    for (;;) {
      std::uint32_t n = total - done < simt::warp_size ? total - done : simt::warp_size;
      if (r.slot() && lane < n) read_record(w_.stage + (done + lane) * stride, task);
      begin_run(type, r.slot());
      simt::sync_warp();  // this worker's batches are whole again: lanes may spawn
      int status = 0;
      if (lane < n) {
        context_type c(*this, width::lane, r.level(), 0);
        status = invoke(task, c);
        if (status != 0) record_error(v_, type, status, &task, sizeof(T));
      }
      simt::sync_warp();
      std::uint32_t failed = simt::popcount(simt::ballot(simt::full_mask, status != 0));
      end_run(type, n, failed);
      done += n;
      failures += failed;
      if (done == total) break;
      if (run_cycles_ > long_run_cycles) {  // others may want the rest, or something more urgent
        if (leads()) push_any(now.rest(done), false);
        break;
      }
    }
    if (r.slot())
      complete(now.whole() && done != total ? now.split() : now, done, failures, r.count() > done);
  }

  template <class T>
  GROSR_DEVICE void run_warp(ref r) {
    constexpr std::uint32_t type = types::template index_of<T>();
    T task;
    if (r.slot()) fetch(r.take(1), stride_of<T>, stride_of<T>);
    read_record(r.slot() ? w_.stage : batch_at(r) + r.first() * stride_of<T>, task);
    simt::sync_warp();
    if (leads()) {
      retire(r, 1);
      // Tasks this wide may be long: the others of a line do not wait for it.
      if (r.slot() && r.count() > 1) w_.spilled += publish_all(v_, w_.deques, id_, 0);
    }
    begin_run(type, r.slot());
    simt::sync_warp();  // this worker's batches are whole again: lanes may spawn
    context_type c(*this, width::warp, r.level(), 0);
    int status = invoke(task, c);
    simt::sync_warp();
    std::uint32_t bad = simt::ballot(simt::full_mask, status != 0);
    if (bad != 0 && simt::lane_id() == simt::lowest_bit(bad))
      record_error(v_, type, status, &task, sizeof(T));
    end_run(type, 1, bad ? 1 : 0);
    if (r.slot()) complete(r.take(1), 1, bad ? 1 : 0, r.count() > 1);
  }

  /// Whole warp, active: runs the task of a line that carries it (lane and warp types), and says
  /// that it is complete.
  GROSR_DEVICE void run_line(const line_header& h, const queue::held_line& l) {
    settle();
    std::uint32_t type = h.type();
    ((type == types::template index_of<Tasks>() ? (run_line_typed<Tasks>(h, l), 0) : 0), ...);
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
      if (width_of<T>() == width::warp || leads()) {
        context_type c(*this, width_of<T>(), h.level(), 0);
        status = invoke(task, c);
      }
      simt::sync_warp();
      std::uint32_t bad = simt::ballot(simt::full_mask, status != 0);
      if (bad != 0 && simt::lane_id() == simt::lowest_bit(bad))
        record_error(v_, type, status, &task, sizeof(T));
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
    bool some =
        leads() && (w_.open_mask != 0 || nonempty(w_.deques) != 0 || nonempty(b_.deques) != 0);
    return simt::shuffle(simt::full_mask, some ? 1u : 0u, 0) == 0;
  }

  /// Whole block: runs the block task that warp 0 laid into block-shared memory.
  GROSR_DEVICE void run_block(ref r) {
    ((r.type() == types::template index_of<Tasks>() ? (run_block_typed<Tasks>(r), 0) : 0), ...);
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
        record_error(v_, type, status, &task, sizeof(T));
      flush(false);
      // Only the warp that found the task was active for sure; what others spawned is theirs now.
      if (simt::shuffle(simt::full_mask, w_.deques.nonempty, 0) != 0) activate();
      simt::sync_block();
      if (simt::warp_id() == 0) {
        bool failed = b_.task_failed != 0;
        end_run(type, 1, failed ? 1 : 0);
        if (r.slot()) complete(r, 1, failed ? 1 : 0, false);
      }
    }
  }

  /// One lane: the first n records of `r` are loaded; puts the rest back, or frees the batch.
  GROSR_DEVICE void retire(ref r, std::uint32_t n) {
    if (n == r.count()) {
      if (!r.slot()) free_batch(v_, w_, r.where());
      return;
    }
    push_any(r.rest(n), false);
  }

  /// Whole warp: this worker's newest ref if it is a pool batch like `like`.
  GROSR_DEVICE ref pop_same(ref like) {
    std::uint64_t got = 0;
    if (leads()) {
      ref top = peek_ref(v_, w_.deques, id_, like.level());
      if (top && !top.slot() && top.type() == like.type()) {
        ref r = pop_ref(v_, w_.deques, id_, like.level());
        got = r.bits;
      }
    }
    return {simt::shuffle(simt::full_mask, got, 0)};
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
      std::uint64_t more = counted(pending_done_, pending_failed_);
      simt::fence<simt::scope::system>(simt::acq_rel);  // R1: what the tasks did, before the count
      std::uint64_t now = count.fetch_add(more, simt::relaxed) + more;
      if (static_cast<std::uint32_t>(now) == s.total) {
        count.fetch_sub(now, simt::relaxed);
        report(pending_slot_, s.generation, s.ticket, s.ticket_generation, s.ticket_lines,
               now >> 32 != 0);
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

  GROSR_DEVICE void begin_run(std::uint32_t type, bool from_slot) {
    if (!leads()) return;
    w_.run_began = simt::cycle_count();
    if (v_.trace != nullptr) w_.trace_began = simt::clock_ns();
    end_of_way();
    simt::atomic_ref<std::uint32_t>(v_.running[id_]).store(type + 1, simt::relaxed);
    // What lies in slots the host knows itself, but not that this worker goes on.
    bool news = !from_slot && type + 1 != w_.told_type;
    if (w_.run_began - w_.host_told > (news ? news_cycles : heartbeat_cycles)) tell_host(type + 1);
  }

  /// One lane, at the beginning of a run: a task that was told to make way has, and the next may.
  GROSR_DEVICE void end_of_way() {
    if (w_.makes_way == 0) return;
    w_.makes_way = 0;
    simt::atomic_ref<std::uint64_t>(*v_.way_made).store(0, simt::relaxed);
  }

  /// One lane: lets the host know what runs here.
  GROSR_DEVICE void tell_host(std::uint32_t type) {
    w_.told_type = type;
    w_.host_told = w_.run_began;
    simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.running_host[id_])
        .store(told_word(type, ++w_.told_serial), simt::relaxed);
  }

  GROSR_DEVICE void end_run(std::uint32_t type, std::uint32_t count, std::uint32_t failed) {
    run_cycles_ = simt::shuffle(simt::full_mask, simt::cycle_count() - w_.run_began, 0);
    if (!leads()) return;
    w_.tasks += count;
    w_.failed += failed;
    ++w_.batches;
    if (v_.trace != nullptr) {
      std::uint32_t n = v_.trace_counts[id_]++;
      std::uint32_t depth = 0;
      for (unsigned l = 0; l < priority_levels; ++l)
        depth += w_.deques.owner[l].bottom - w_.deques.owner[l].top_seen;
      v_.trace[std::uint64_t{id_} * v_.trace_capacity + n % v_.trace_capacity] = {
          w_.trace_began, simt::clock_ns(), type, count, depth, simt::sm_id()};
    }
  }

  /// One lane, before a wait: nothing runs here any more.
  GROSR_DEVICE void end_of_work() {
    simt::atomic_ref<std::uint32_t>(v_.running[id_]).store(0, simt::relaxed);
    yield_keeper(v_, id_, true);
    if (w_.told_type != 0 && w_.run_began - w_.host_told > news_cycles) tell_host(0);
    if (w_.batches != 0) flush_stats();
  }

  /// One lane: writes the counters where the host can copy them from.
  GROSR_DEVICE void flush_stats() {
    worker_stats& s = v_.stats[id_];
    auto put = [](std::uint64_t& to, std::uint64_t value) {
      simt::atomic_ref<std::uint64_t> t(to);
      t.store(t.load(simt::relaxed) + value, simt::relaxed);
    };
    put(s.tasks, w_.tasks + w_.inlined);
    put(s.spawned, w_.spawned + w_.inlined);
    put(s.batches, w_.batches);
    put(s.stolen, w_.stolen);
    put(s.inlined, w_.inlined);
    put(s.spilled, w_.spilled);
    put(s.failed, w_.failed);
    put(s.rejected, w_.rejected);
    w_.tasks = w_.batches = w_.stolen = w_.failed = 0;
    w_.spawned = w_.inlined = w_.spilled = w_.rejected = 0;
  }

  bool line_left_nothing_ = false;  // the last run was a line's task and left nothing in hand
  std::uint64_t run_cycles_ = 0;    // length of the last run
  std::uint32_t pending_slot_ = no_slot, pending_done_ = 0, pending_failed_ = 0;
};

}  // namespace grosr::run
