// What tasks ask for while they run: to spawn (open batches, the worker's own refs, what to do when
// memory is full), and whether to make way.
// Everything here lives in block-shared memory, so that any lane can call it from inside a task.
#pragma once

#include <cerrno>

#include "grosr/run/local.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr {
template <class Spawner>
class context;
}

namespace grosr::run {

/// One 16-byte piece of a record.
struct alignas(16) piece {
  std::uint32_t w[4];
};

template <class T>
inline constexpr bool always_false = false;

/// A few pointers into block-shared memory: cheap to make and to copy.
template <class... Tasks>
class spawner {
 public:
  using types = type_list<Tasks...>;
  using local = warp_local<types::size>;
  using shared = block_local<types::size>;
  using context_type = context<spawner>;

  GROSR_DEVICE explicit spawner(shared& b)
      : b_(b),
        v_(b.get_view()),
        w_(b.warps[simt::warp_id()]),
        id_(simt::block_id() * warps_per_block + simt::warp_id()) {}

  // ---- called by tasks, through their context ----

  template <class T>
  GROSR_DEVICE void spawn(const T& task, std::uint32_t level, bool uniform, std::uint32_t depth) {
    uniform = uniform && depth == 0;
    if (place(task, level, uniform, false)) return;
    if constexpr (width_of<T>() == width::lane) {
      if (depth < v_.inline_depth) {
        simt::opaque (&run_inline<T>)(&b_, task, level, depth + 1);
        return;
      }
    }
    // Wider than a lane, or too deep: the overflow in host memory; then wait for room a while; then
    // say that it was not run.
    std::uint64_t deadline = simt::clock_ns() + room_wait_ns;
    bool placed = false;
    simt::wait_until([&] { return (placed = place(task, level, false, true)); }, deadline, nullptr,
                     "room in task memory");
    if (!placed) reject(&b_, task);
  }

  template <class T>
  GROSR_DEVICE bool try_spawn(const T& task, std::uint32_t level, bool uniform) {
    return place(task, level, uniform, false);
  }

  GROSR_DEVICE bool aborted() const { return v_.aborted(); }

  GROSR_DEVICE const heap_ref& get_heap() const { return v_.heap; }
  /// Whether it is worth to ask for memory again; may wait 20 us.
  GROSR_DEVICE bool wait_for_memory() const {
    std::uint64_t limit_ns = std::uint64_t{v_.memory_wait_us} * 1000;
    return v_.heap.wait_for_free(limit_ns) || v_.checked_heap.wait_for_free(limit_ns);
  }
  /// Owners of the task types follow each other.
  template <class T>
  GROSR_DEVICE checked_heap_ref get_checked_heap() const {
    alloc::heap_view v = v_.checked_heap.view();
    v.owner += types::template index_of<T>();
    return checked_heap_ref(v);
  }

  /// Any lane: whether this worker should make way for work above `level`. May take a line in from
  /// a port that nobody polled for a while.
  GROSR_DEVICE bool higher_waits(std::uint32_t level) {
    std::uint32_t above = ~((2u << level) - 1u) & ((1u << priority_levels) - 1u);
    above |= above << 8;
    if (simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.makes_way).load(simt::relaxed) != 0)
      return true;
    std::uint64_t both = v_.hints_and_leave();
    auto leave = static_cast<std::uint32_t>(both >> 32);
    if (leave == v_.epoch || leave == leave_abort) return true;
    std::uint32_t hints = static_cast<std::uint32_t>(both) & above;
    if (hints != 0) return takes_turn(hints);
    return poll_above(level) && takes_turn(above);
  }

 protected:
  static constexpr std::uint64_t turn_ns = 8192;
  static constexpr std::uint64_t room_wait_ns = 200'000'000;
  static constexpr std::uint32_t poll_stale_ns = 4096;
  static constexpr std::uint64_t long_run_cycles = 20'000;  // about 10 us

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

  // ---- making way ----

  /// Any lane: takes in a line of a level above from a port that nobody polled for a while.
  GROSR_DEVICE GROSR_NOINLINE bool poll_above(std::uint32_t level) {
    // Another one each time, for all that ask may be few.
    std::uint32_t one =
        (id_ + static_cast<std::uint32_t>(simt::cycle_count() >> 13)) % v_.ports_per_level;
    for (std::uint32_t l = level + 1; l < priority_levels; ++l) {
      const queue::ingress_ref& port = v_.ports[l * v_.ports_per_level + one];
      queue::poll_role role{};
      if (!port.take_role(poll_stale_ns, role) || !port.accept_one(role)) continue;
      // H1, as in poller::accept().
      simt::atomic_ref<std::uint32_t>(*v_.hints).fetch_or(hint_bit(l, false), simt::acq_rel);
      return true;
    }
    return false;
  }

  /// Lanes that are together, while more urgent work waits: whether this worker makes way for it.
  /// One at a time, until that one has found something or 8 us have passed: who waits is mostly
  /// one task, and those who ask are all workers. Warps that a block task waits for all do.
  GROSR_DEVICE GROSR_NOINLINE bool takes_turn(std::uint32_t hints) {
    std::uint32_t mask = simt::active_mask();
    unsigned leader = simt::lowest_bit(mask);
    std::uint32_t mine = 0;
    if (simt::lane_id() == leader) {
      using word = simt::atomic_ref<std::uint32_t, simt::scope::block>;
      if (hints >> 8 != 0 && word(b_.meeting).load(simt::relaxed) != 0) mine = 1;
      simt::atomic_ref<std::uint64_t> way_made(*v_.way_made);
      std::uint64_t last = way_made.load(simt::relaxed), now = simt::clock_ns();
      if (mine == 0 && now - last > turn_ns && way_made.compare_exchange(last, now, simt::relaxed))
        mine = 1;
      if (mine != 0) word(w_.makes_way).store(1, simt::relaxed);
    }
    return simt::shuffle(mask, mine, leader) != 0;
  }

  // ---- spawning ----

  /// Lanes that are together put their tasks into the open batch of the type and level. False for
  /// the lanes for which there was no pool batch. `uniform`: all lanes have the same level.
  template <class T>
  GROSR_DEVICE bool place(const T& task, std::uint32_t level, bool uniform, bool last_resort) {
    constexpr std::uint32_t type = types::template index_of<T>();
    constexpr std::uint32_t limit = batch_limit(width_of<T>());
    unsigned lane = simt::lane_id();
    std::uint32_t pending = simt::active_mask_by(level << 8 | type, uniform);
    open_batch& open = w_.open[type * priority_levels + level];
    GROSR_NO_UNROLL
    for (;;) {
      unsigned leader = simt::lowest_bit(pending);
      std::uint64_t grant = 0;  // batch << 32 | first << 16 | count
      if (lane == leader) {
        lock(w_.deques.lock);
        if (open.batch == no_batch) {
          open.batch = take_batch(v_, w_, id_);
          if (open.batch == no_batch && last_resort) open.batch = take_overflow(v_);
          open.count = 0;
        }
        if (open.batch != no_batch) {
          std::uint32_t n = simt::popcount(pending), room = limit - open.count;
          n = n < room ? n : room;
          grant = std::uint64_t{open.batch} << 32 | open.count << 16 | n;
          open.count += n;
          w_.open_mask |= std::uint64_t{1} << (type * priority_levels + level);
          w_.spawned += n;
        }
      }
      grant = simt::shuffle(pending, grant, leader);
      std::uint32_t n = grant & 0xffff, rank = simt::rank_in(pending, lane);
      if (rank < n) {
        std::uint32_t batch = static_cast<std::uint32_t>(grant >> 32);
        std::uint32_t index = (static_cast<std::uint32_t>(grant) >> 16) + rank;
        write_record(v_.batch_at(batch) + index * stride_of<T>, task);
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
      if (pending == simt::full_mask) simt::sync_warp();
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
    // A loop of the whole warp, for only one lane's would break it up.
    std::uint64_t rest = leads() ? w_.open_mask : 0;
    rest = simt::shuffle(simt::full_mask, rest, 0);
    GROSR_NO_UNROLL
    for (; rest != 0; rest &= rest - 1) {
      std::uint32_t i = simt::lowest_bit64(rest), type = i / priority_levels;
      open_batch& open = w_.open[i];
      if (leads() && open.batch != no_batch) {
        push_any(ref::make(open.batch, false, 0, open.count, type, i % priority_levels, false),
                 false);
        open.batch = no_batch;
      }
    }
    if (leads()) w_.open_mask = 0;
    if (leads() && publish_blocks && nonempty(b_.deques) != 0) {
      lock(b_.deques.lock);
      w_.spilled += publish_all(v_, b_.deques, v_.workers + simt::block_id(), 0);
      unlock(b_.deques.lock);
    }
    simt::sync_warp();
  }

  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static void run_inline(shared* block, T task, std::uint32_t level,
                                                     std::uint32_t depth) {
    using count = simt::atomic_ref<std::uint32_t, simt::scope::block>;
    spawner self(*block);
    count(self.w_.inlined).fetch_add(1, simt::relaxed);
    context_type c(self, width::lane, level, depth);
    int status = invoke(task, c);
    if (status == 0) return;
    count(self.w_.failed).fetch_add(1, simt::relaxed);
    record_error(self.v_, types::template index_of<T>(), status, &task, sizeof(T));
  }

  template <class T>
  GROSR_DEVICE GROSR_NOINLINE static void reject(shared* block, T task) {
    spawner self(*block);
    simt::atomic_ref<std::uint32_t, simt::scope::block>(self.w_.rejected)
        .fetch_add(1, simt::relaxed);
    record_error(self.v_, types::template index_of<T>(), -ENOSPC, &task, sizeof(T));
  }

  template <class T>
  GROSR_DEVICE static int invoke(const T& task, context_type& c) {
    if constexpr (!requires { task(c); }) {
      static_assert(
          always_false<T>,
          "grosr: a task needs GROSR_DEVICE void (or int) operator()(auto& context) const");
      return 0;
    } else if constexpr (std::is_void_v<decltype(task(c))>) {
      simt::call(task, c);
      return 0;
    } else {
      static_assert(std::is_same_v<decltype(task(c)), int>,
                    "grosr: a task returns void, or int: 0 or a negative errno");
      return simt::call(task, c);
    }
  }

  GROSR_DEVICE GROSR_NOINLINE static void record_error(const view& v, std::uint32_t type, int code,
                                                       const void* task, std::uint32_t bytes) {
    std::uint32_t i = simt::atomic_ref<std::uint32_t>(*v.error_count).fetch_add(1, simt::relaxed);
    if (i >= errors_kept) return;
    error_record& e = v.errors[i];
    e.type = type;
    e.code = code;
    auto* from = static_cast<const unsigned char*>(task);
    for (std::uint32_t k = 0; k < bytes; ++k) e.task[k] = from[k];
    simt::atomic_ref<std::uint32_t, simt::scope::system>(e.serial).store(i + 1, simt::release);
  }

  shared& b_;
  const view& v_;
  local& w_;
  std::uint32_t id_;
};

}  // namespace grosr::run
