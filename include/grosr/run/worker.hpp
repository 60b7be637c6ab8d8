// A worker: one warp that runs batches of tasks, and with its block's other warps block tasks.
// Finding work is in find.hpp; this file runs it, and takes what it spawns.
#pragma once

#include "grosr/run/context.hpp"
#include "grosr/run/local.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::run {

/// One 16-byte piece of a record.
struct alignas(16) piece {
  std::uint32_t w[4];
};

template <class... Tasks>
class worker {
 public:
  using types = type_list<Tasks...>;
  using local = warp_local<types::size>;
  using shared = block_local<types::size>;
  using context_type = context<worker>;

  GROSR_DEVICE worker(const view& v, shared& b)
      : v_(v), b_(b), w_(b.warps[simt::warp_id()]),
        id_(simt::block_id() * warps_per_block + simt::warp_id()) {}

  // ---- called by tasks, through their context ----

  template <class T>
  GROSR_DEVICE void spawn(const T& task, std::uint32_t level, bool uniform, std::uint32_t depth) {
    if (place(task, level, uniform)) return;
    if constexpr (width_of<T>() == width::lane) {
      if (depth < v_.inline_depth) {
        simt::opaque (&run_inline<T>)(*this, &task, level, depth + 1);
        return;
      }
    }
    // Wider than a lane, or too deep: wait for room a while; then say that it was not run.
    std::uint64_t deadline = simt::clock_ns() + room_wait_ns;
    bool placed = false;
    simt::wait_until([&] { return (placed = place(task, level, false)); }, deadline, nullptr,
                     "room in task memory");
    if (!placed) reject(task);
  }

  template <class T>
  GROSR_DEVICE bool try_spawn(const T& task, std::uint32_t level, bool uniform) {
    return place(task, level, uniform);
  }

  GROSR_DEVICE bool aborted() const { return v_.aborted(); }

  /// Any lane: whether work above `level` waits. Polls the bus when nobody did for a while.
  GROSR_DEVICE bool higher_waits(std::uint32_t level) {
    std::uint32_t above = ~((2u << level) - 1u) & ((1u << priority_levels) - 1u);
    above |= above << 8;
    simt::atomic_ref<std::uint32_t> hints(*v_.hints);
    if (hints.load(simt::relaxed) & above) return true;
    if (v_.leave() != 0) return true;
    for (std::uint32_t l = level + 1; l < priority_levels; ++l) {
      const queue::ingress_ref& port = v_.ports[l * v_.ports_per_level + id_ % v_.ports_per_level];
      std::uint32_t seen;
      if (!port.hold_cursor(poll_stale_ns, seen)) continue;
      bool there = port.unseen();
      // Left for a worker that runs converged: it polls at once when the last poll looks old.
      port.free_cursor(seen, there);
      if (there) return true;
    }
    return false;
  }

 protected:
  static constexpr std::uint64_t room_wait_ns = 200'000'000;
  static constexpr std::uint32_t poll_stale_ns = 4096;
  static constexpr std::uint64_t long_run_cycles = 20'000;   // about 10 us
  static constexpr std::uint64_t tell_host_cycles = 32'768;  // about 16 us
  static constexpr std::uint32_t no_slot = 0xffffffffu;

  GROSR_DEVICE static constexpr bool is_block_type(std::uint32_t type) {
    std::uint32_t blocks = 0, i = 0;
    ((blocks |= (width_of<Tasks>() == width::block ? 1u : 0u) << i++), ...);
    return blocks >> type & 1;
  }

  GROSR_DEVICE static constexpr width width_at(std::uint32_t type) {
    std::uint32_t code = 0;  // 2 bits a type
    std::uint32_t i = 0;
    ((code |= static_cast<std::uint32_t>(width_of<Tasks>()) << (2 * i++)), ...);
    return static_cast<width>(code >> (2 * type) & 3);
  }

  /// Records of a type that one pool batch takes before it is published: wide tasks are handed out
  /// in smaller lots, because a lot is run by one worker.
  GROSR_DEVICE static constexpr std::uint32_t batch_limit(width w) {
    return w == width::lane ? batch_records : w == width::warp ? 8 : 4;
  }

  GROSR_DEVICE bool leads() const { return simt::lane_id() == 0; }

  // ---- spawning ----

  /// Lanes that are together put their tasks into the open batch of the type and level. False for
  /// the lanes for which there was no pool batch. `uniform`: all lanes have the same level.
  template <class T>
  GROSR_DEVICE bool place(const T& task, std::uint32_t level, bool uniform) {
    constexpr std::uint32_t type = types::template index_of<T>();
    constexpr std::uint32_t limit = batch_limit(width_of<T>());
    unsigned lane = simt::lane_id();
    std::uint32_t pending = simt::active_mask();
    if (!uniform) pending = simt::match_any(pending, level);
    open_batch& open = w_.open[type * priority_levels + level];
    for (;;) {
      unsigned leader = simt::lowest_bit(pending);
      std::uint64_t grant = 0;  // batch << 32 | first << 16 | count
      if (lane == leader) {
        lock(w_.deques.lock);
        if (open.batch == no_batch) {
          open.batch = take_batch(v_, w_, id_);
          open.count = 0;
        }
        if (open.batch != no_batch) {
          std::uint32_t n = simt::popcount(pending), room = limit - open.count;
          n = n < room ? n : room;
          grant = std::uint64_t{open.batch} << 32 | open.count << 16 | n;
          open.count += n;
          w_.open_mask |= 1u;
          w_.spawned += n;
        }
      }
      grant = simt::shuffle(pending, grant, leader);
      std::uint32_t n = grant & 0xffff, rank = simt::rank_in(pending, lane);
      if (rank < n) {
        std::uint32_t batch = static_cast<std::uint32_t>(grant >> 32);
        std::uint32_t index = (static_cast<std::uint32_t>(grant) >> 16) + rank;
        write_record(v_.pool + std::uint64_t{batch} * v_.batch_bytes + index * stride_of<T>, task);
      }
      simt::sync_warp(pending);
      if (lane == leader) {
        if (open.batch != no_batch && open.count == limit) {
          push_any(ref::make(open.batch, false, 0, limit, type, level, false), true);
          open.batch = no_batch;
          // A long run's children do not wait for its end.
          if (width_of<T>() != width::block && long_run())
            w_.spilled += publish_all(v_, w_.deques, id_, 0);
        }
        unlock(w_.deques.lock);
      }
      if (rank < n) return true;
      if (n == 0) return false;
      // The n lowest lanes of the mask are served.
      for (std::uint32_t i = 0; i < n; ++i) pending &= pending - 1;
    }
  }

  template <class T>
  GROSR_DEVICE static void write_record(unsigned char* to, const T& task) {
    piece p[stride_of<T> / 16] = {};
    __builtin_memcpy(p, &task, sizeof(T));
    auto* out = reinterpret_cast<piece*>(to);
    for (unsigned i = 0; i < stride_of<T> / 16; ++i) out[i] = p[i];
  }

  GROSR_DEVICE bool long_run() const {
    return simt::cycle_count() - w_.run_began > long_run_cycles;
  }

  /// One lane, the warp's lock held if `locked` or nobody spawning: adds a ref to this warp's own
  /// or, a block task, to the block's.
  GROSR_DEVICE void push_any(ref r, bool locked) {
    std::uint32_t spilled;
    if (is_block_type(r.type())) {
      lock(b_.deques.lock);
      spilled = push_ref(v_, b_.deques, v_.workers + simt::block_id(), r);
      unlock(b_.deques.lock);
    } else {
      if (!locked) lock(w_.deques.lock);
      spilled = push_ref(v_, w_.deques, id_, r);
      if (!locked) unlock(w_.deques.lock);
    }
    w_.spilled += spilled;
  }

  /// Whole warp, after a run: closes every open batch. `publish_blocks`: other blocks may see this
  /// block's tasks at once.
  GROSR_DEVICE void flush(bool publish_blocks) {
    simt::sync_warp();
    if (leads() && w_.open_mask != 0) {
      w_.open_mask = 0;
      for (std::uint32_t i = 0; i < types::size * priority_levels; ++i) {
        open_batch& open = w_.open[i];
        if (open.batch == no_batch) continue;
        std::uint32_t type = i / priority_levels, level = i % priority_levels;
        push_any(ref::make(open.batch, false, 0, open.count, type, level, false), false);
        open.batch = no_batch;
      }
    }
    if (leads() && publish_blocks && nonempty(b_.deques) != 0) {
      lock(b_.deques.lock);
      w_.spilled += publish_all(v_, b_.deques, v_.workers + simt::block_id(), 0);
      unlock(b_.deques.lock);
    }
    simt::sync_warp();
  }

  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static void run_inline(worker& self, const T* spawned,
                                                     std::uint32_t level, std::uint32_t depth) {
    using count = simt::atomic_ref<std::uint32_t, simt::scope::block>;
    T task = *spawned;
    count(self.w_.inlined).fetch_add(1, simt::relaxed);
    context_type c(self, width::lane, level, depth);
    int status = invoke(task, c);
    if (status == 0) return;
    count(self.w_.failed).fetch_add(1, simt::relaxed);
    self.record_error(types::template index_of<T>(), status, &task, sizeof(T));
  }

  template <class T>
  GROSR_DEVICE GROSR_NOINLINE void reject(const T& task) {
    simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.rejected).fetch_add(1, simt::relaxed);
    record_error(types::template index_of<T>(), -28 /* ENOSPC */, &task, sizeof(T));
  }

  template <class T>
  GROSR_DEVICE static int invoke(T& task, context_type& c) {
    if constexpr (std::is_void_v<decltype(task(c))>) {
      task(c);
      return 0;
    } else {
      return task(c);
    }
  }

  GROSR_DEVICE void record_error(std::uint32_t type, int code, const void* task,
                                 std::uint32_t bytes) {
    std::uint32_t i = simt::atomic_ref<std::uint32_t>(*v_.error_count).fetch_add(1, simt::relaxed);
    if (i >= errors_kept) return;
    error_record& e = v_.errors[i];
    e.type = type;
    e.code = code;
    auto* from = static_cast<const unsigned char*>(task);
    for (std::uint32_t k = 0; k < bytes; ++k) e.task[k] = from[k];
    simt::atomic_ref<std::uint32_t, simt::scope::system>(e.serial).store(i + 1, simt::release);
  }

  // ---- running ----

  /// Whole warp: runs what `r` names (lane and warp types), after putting back what is more than
  /// one run of it.
  GROSR_DEVICE void run(ref r) {
    if (pending_slot_ != no_slot && !(r.slot() && r.where() == pending_slot_)) settle();
    ((r.type() == types::template index_of<Tasks>() ? (run_typed<Tasks>(r), 0) : 0), ...);
    inlined_ = false;
    flush(true);
  }

  template <class T>
  GROSR_DEVICE void run_typed(ref r) {
    if constexpr (width_of<T>() == width::lane) run_lanes<T>(r);
    if constexpr (width_of<T>() == width::warp) run_warp<T>(r);
    // Block types are run by meetings.
  }

  GROSR_DEVICE const unsigned char* batch_at(ref r) const {
    return r.slot() ? v_.slot_data + std::uint64_t{r.where()} * v_.slot_bytes
                    : v_.pool + std::uint64_t{r.where()} * v_.batch_bytes;
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
      if ((i * simt::warp_size + lane) * 16 < bytes) in[i] = simt::bus_load(from + i * simt::warp_size);
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
    std::uint32_t level = r.level();
    std::uint32_t limit = r.slot() ? most : simt::warp_size;
    ref now = r.count() > limit ? r.take(limit) : r;
    const unsigned char* at = w_.stage + lane * stride;
    std::uint32_t total = now.count();
    ref added[3] = {};
    unsigned adds = 0;
    if (r.slot()) {
      if (!inlined_) fetch(now, total * stride, stride);
    } else {
      at = batch_at(now) + (now.first() + lane) * stride;
      // Fill up from the newest refs of this worker's own, while they are of the same kind.
      while (total < simt::warp_size && adds < 3) {
        ref more = pop_same(now);
        if (!more) break;
        std::uint32_t room = simt::warp_size - total;
        std::uint32_t n = more.count() > room ? room : more.count();
        if (lane >= total && lane < total + n)
          at = batch_at(more) + (more.first() + lane - total) * stride;
        total += n;
        added[adds++] = more;
      }
    }
    std::uint32_t done = 0, failures = 0;
    for (;;) {
      std::uint32_t n = total - done < simt::warp_size ? total - done : simt::warp_size;
      T task;
      if (lane < n) read_record(at + done * stride, task);
      simt::sync_warp();  // every record is in registers: batches may be split or freed
      if (done == 0 && leads()) {
        retire(r, now.count());
        std::uint32_t left = simt::warp_size - now.count();
        for (unsigned i = 0; i < adds; ++i) {
          std::uint32_t part = added[i].count() > left ? left : added[i].count();
          left -= part;
          retire(added[i], part);
        }
      }
      begin_run(type, r.slot());
      int status = 0;
      if (lane < n) {
        context_type c(*this, width::lane, level, 0);
        status = invoke(task, c);
        if (status != 0) record_error(type, status, &task, sizeof(T));
      }
      simt::sync_warp();
      std::uint32_t failed = simt::popcount(simt::ballot(simt::full_mask, status != 0));
      end_run(type, n, failed);
      done += n;
      failures += failed;
      if (done == total) break;
      if (run_cycles_ > long_run_cycles) {  // others may want the rest, or something more urgent
        if (leads()) push_any(now.rest(done), false);
        simt::sync_warp();
        break;
      }
    }
    if (r.slot()) complete(now.whole() && done != total ? now.split() : now, done, failures,
                           r.count() > done);
  }

  template <class T>
  GROSR_DEVICE void run_warp(ref r) {
    constexpr std::uint32_t type = types::template index_of<T>();
    T task;
    if (r.slot() && !inlined_) fetch(r.take(1), stride_of<T>, stride_of<T>);
    read_record(r.slot() ? w_.stage : batch_at(r) + r.first() * stride_of<T>, task);
    simt::sync_warp();
    if (leads()) retire(r, 1);
    begin_run(type, r.slot());
    context_type c(*this, width::warp, r.level(), 0);
    int status = invoke(task, c);
    simt::sync_warp();
    std::uint32_t bad = simt::ballot(simt::full_mask, status != 0);
    if (bad != 0 && simt::lane_id() == simt::lowest_bit(bad))
      record_error(type, status, &task, sizeof(T));
    end_run(type, 1, bad ? 1 : 0);
    if (r.slot()) complete(r.take(1), 1, bad ? 1 : 0, r.count() > 1);
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
      if (simt::warp_id() == 0) begin_run(type, r.slot());
      context_type c(*this, width::block, r.level(), 0);
      int status = invoke(task, c);
      std::uint32_t bad = simt::ballot(simt::full_mask, status != 0);
      if (bad != 0 && simt::lane_id() == simt::lowest_bit(bad) &&
          simt::atomic_ref<std::uint32_t, simt::scope::block>(b_.task_failed)
                  .exchange(1, simt::relaxed) == 0)
        record_error(type, status, &task, sizeof(T));
      flush(false);
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
    if (inlined_) return;
    if (n < r.count())
      push_any(r.rest(n), false);
    else if (!r.slot())
      free_batch(v_, w_, r.where());
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
      simt::atomic_ref<std::uint32_t> done(s.done), bad(s.failed);
      if (pending_failed_) bad.fetch_add(pending_failed_, simt::relaxed);
      // R1, A1: the last one sees what all others did.
      if (done.fetch_add(pending_done_, simt::acq_rel) + pending_done_ == s.total) {
        bool any = bad.load(simt::relaxed) != 0;
        done.store(0, simt::relaxed);
        bad.store(0, simt::relaxed);
        report(pending_slot_, s.generation, s.ticket, s.ticket_generation, s.ticket_lines, any);
      }
    }
    pending_slot_ = no_slot;
    pending_done_ = pending_failed_ = 0;
  }

  GROSR_DEVICE void report(std::uint32_t slot, std::uint32_t generation, std::uint32_t ticket,
                           std::uint32_t ticket_generation, std::uint32_t ticket_lines,
                           bool failed) {
    using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
    if (ticket_lines > 1) {
      slot_info& t = v_.slots[ticket];
      simt::atomic_ref<std::uint32_t> done(t.done), bad(t.failed);
      if (failed) bad.fetch_add(1, simt::relaxed);
      if (done.fetch_add(1, simt::acq_rel) + 1 == ticket_lines) {
        bool any = bad.load(simt::relaxed) != 0;
        done.store(0, simt::relaxed);
        bad.store(0, simt::relaxed);
        // R2: pairs with the acquire in ticket::done().
        word(v_.slot_words[ticket]).store(slot_word(ticket_generation, any), simt::release);
      }
    }
    // R3: the slot's records were read; pairs with the acquire in slots::take().
    word(v_.slot_words[slot]).store(slot_word(generation, failed), simt::release);
  }

  // ---- accounting ----

  GROSR_DEVICE void begin_run(std::uint32_t type, bool from_slot) {
    if (!leads()) return;
    w_.run_began = simt::cycle_count();
    if (v_.trace != nullptr) trace_began_ = simt::clock_ns();
    simt::atomic_ref<std::uint64_t>(v_.running[id_])
        .store(std::uint64_t{type + 1} << 56 | ++runs_, simt::relaxed);
    // What lies in slots the host knows itself.
    if (!from_slot && type + 1 != host_type_) tell_host(type + 1);
  }

  /// One lane: lets the host know what runs here, but not too often.
  GROSR_DEVICE void tell_host(std::uint32_t type) {
    if (w_.run_began - host_told_ < tell_host_cycles) return;
    host_type_ = type;
    host_told_ = w_.run_began;
    simt::atomic_ref<std::uint32_t, simt::scope::system>(v_.running_host[id_])
        .store(type, simt::relaxed);
  }

  GROSR_DEVICE void end_run(std::uint32_t type, std::uint32_t count, std::uint32_t failed) {
    run_cycles_ = simt::shuffle(simt::full_mask, simt::cycle_count() - w_.run_began, 0);
    if (!leads()) return;
    tasks_ += count;
    failed_ += failed;
    ++batches_;
    if (v_.trace != nullptr) {
      std::uint32_t n = v_.trace_counts[id_]++;
      std::uint32_t depth = 0;
      for (unsigned l = 0; l < priority_levels; ++l)
        depth += w_.deques.owner[l].bottom - w_.deques.owner[l].top_seen;
      v_.trace[std::uint64_t{id_} * v_.trace_capacity + n % v_.trace_capacity] = {
          trace_began_, simt::clock_ns(), type, count, depth, simt::sm_id()};
    }
  }

  /// One lane, before a wait: nothing runs here any more.
  GROSR_DEVICE void end_of_work() {
    simt::atomic_ref<std::uint64_t>(v_.running[id_]).store(0, simt::relaxed);
    yield_keeper(v_, id_, true);
    if (host_type_ != 0) tell_host(0);
    if (batches_ != 0) flush_stats();
  }

  /// One lane: writes the counters where the host can copy them from.
  GROSR_DEVICE void flush_stats() {
    worker_stats& s = v_.stats[id_];
    auto put = [](std::uint64_t& to, std::uint64_t value) {
      simt::atomic_ref<std::uint64_t> t(to);
      t.store(t.load(simt::relaxed) + value, simt::relaxed);
    };
    put(s.tasks, tasks_ + w_.inlined);
    put(s.spawned, w_.spawned + w_.inlined);
    put(s.batches, batches_);
    put(s.stolen, stolen_);
    put(s.inlined, w_.inlined);
    put(s.spilled, w_.spilled);
    put(s.failed, failed_ + w_.failed);
    put(s.rejected, w_.rejected);
    tasks_ = batches_ = stolen_ = failed_ = 0;
    w_.spawned = w_.inlined = w_.spilled = w_.rejected = w_.failed = 0;
  }

  const view& v_;
  shared& b_;
  local& w_;
  std::uint32_t id_;
  bool active_ = false;   // this worker is counted in the board
  bool inlined_ = false;  // the ref being run lies in w_.record
  std::uint32_t tasks_ = 0, batches_ = 0, stolen_ = 0, failed_ = 0;  // lane 0 counts
  std::uint64_t runs_ = 0, trace_began_ = 0, host_told_ = 0;
  std::uint64_t run_cycles_ = 0;  // length of the last run
  std::uint32_t host_type_ = 0;
  std::uint32_t pending_slot_ = no_slot, pending_done_ = 0, pending_failed_ = 0;
};

}  // namespace grosr::run
