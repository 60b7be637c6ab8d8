// Service threads: taking records, replying, resting, draining.
#include <algorithm>
#include <bit>

#include "grosr/simt/launch.hpp"
#include "grosr/simt/relax.hpp"
#include "sys/deferred.hpp"
#include "sys/service.hpp"

namespace grosr::sys {
namespace {

// Unless the program has chosen: so many calls at once that take no time.
constexpr unsigned usual_batch = 32;

/// Whether a call takes no time.
bool is_light(const request& q) {
  if (q.call.number >= handler_base) return !is_handler(q.call.number);
  return q.linux == nullptr || q.linux->waits == waiting::never;
}

/// How much of usual_batch a call is. Threads take several short ones at once; what moves much,
/// runs the program's code or waits for who knows what is left to other threads.
unsigned weight_of(const request& q) {
  if (is_light(q)) return 1;
  if (q.linux == nullptr || q.linux->waits == waiting::other) return usual_batch;
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < q.linux->count; ++i) {
    const argument& a = q.linux->arguments[i];
    if (a.kind == argument_kind::input_bytes || a.kind == argument_kind::output_bytes)
      bytes = q.call.argument[a.from];
  }
  return static_cast<unsigned>(std::min<std::uint64_t>(4 + bytes / 4096, usual_batch));
}

// One in so many of them is timed, and stands for the others: reading the clock costs as much.
constexpr unsigned timed_light = 8;

// Threads that rest look again after so long: the one that is awake may be held up by a disk.
constexpr std::chrono::milliseconds longest_rest{20};

}  // namespace

void service::run(service_thread& t) {
  std::uint64_t idle_since = 0;
  const std::uint64_t spin =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.spin).count());
  for (unsigned turn = 0; !ending_.load(std::memory_order_relaxed); ++turn) {
    if (serve(t) != 0) {
      idle_since = 0;
      continue;
    }
    simt::relax();
    if (turn % 64 != 0) continue;
    const std::uint64_t now = now_ns();
    if (idle_since == 0) idle_since = now;
    if (now - idle_since > spin) {
      rest(t);
      idle_since = 0;
    }
  }
  // No kernel runs any more; what the last ones wrote and did not wait for is taken.
  while (serve(t) != 0 || something_waits()) simt::relax();
}

/// Looks once at the thread's own shards (every `threads`-th) and those whose thread rests; now and
/// then at all. How many calls it made.
unsigned service::serve(service_thread& t) {
  const auto count = static_cast<std::uint32_t>(shards_.size());
  const auto threads = static_cast<std::uint32_t>(threads_.size());
  const bool owns = t.number < threads;
  unsigned made = 0;
  for (std::uint32_t i = t.number; owns && i < count; i += threads)
    if (shards_[i]->ring.ready()) made += take_batch(t, *shards_[i], i);
  const bool all = ++t.looks % 64 == 0 || !owns;
  if (all || resting_.load(std::memory_order_relaxed) != 0) made += help(t, all);
  return made;
}

/// Looks at the shards of threads that rest, and if `all` at those of others: they are helped when
/// nothing was taken since the last such look. Else locks and lines would wander between
/// processors.
unsigned service::help(service_thread& t, bool all) {
  const auto threads = static_cast<std::uint32_t>(threads_.size());
  unsigned made = 0;
  for (std::uint32_t i = 0; i < shards_.size(); ++i) {
    const std::uint32_t owner = i % threads;
    if (owner == t.number) continue;
    if (!rests_[owner].load(std::memory_order_relaxed)) {
      if (!all) continue;
      const std::uint64_t consumed = shards_[i]->ring.consumed();
      const bool stands = t.seen[i] == consumed;
      t.seen[i] = consumed;
      if (!stands) continue;
    }
    if (shards_[i]->ring.ready()) made += take_batch(t, *shards_[i], i);
  }
  return made;
}

unsigned service::take_batch(service_thread& t, shard& s, std::uint32_t number) {
  std::unique_lock lock(s.lock, std::try_to_lock);
  if (!lock) return 0;
  const unsigned chosen = batch_.load(std::memory_order_relaxed);
  const unsigned most = chosen ? chosen : usual_batch;
  const std::int64_t window = window_ns_.load(std::memory_order_relaxed);
  const std::uint32_t epoch = epoch_.load(std::memory_order_acquire);
  // Before anything is taken, so that drain() cannot miss it.
  t.under_way[epoch].fetch_add(1, std::memory_order_acq_rel);
  t.batch.clear();
  std::uint64_t until = 0, light = 0;
  unsigned weight = 0, popped = 0;
  bool left = false, takes_time = false;
  const std::uint32_t shift = static_cast<std::uint32_t>(std::countr_zero(shards_.size()));
  const bool refuses = stopping_.load(std::memory_order_relaxed);
  for (;;) {
    popped += s.ring.pop_while([&](const queue::record& r, std::uint64_t ticket) {
      const call_number kind = call_record::number_of(r);
      if (!refuses && !lets_in(kind)) {
        left = true;
        return queue::pop_result::left;
      }
      const std::uint64_t serial = serial_of(ticket, number, shift);
      if (kind == call_nothing && (call_record::flags_of(r) & flag_awaited) == 0) {
        const std::uint32_t slot = call_record::slot_of(r);
        if (slot >= options_.calls_in_flight)
          return queue::pop_result::more;  // its caller found no slot
        reply(slot, serial, refuses ? -ESHUTDOWN : 0);
        return ++light % 256 != 0 ? queue::pop_result::more : queue::pop_result::last;
      }
      request& q = t.batch.emplace_back();
      q.call = call_record::unpack(r);
      q.linux = kind < handler_base ? find_linux_call(kind) : nullptr;
      q.serial = serial;
      q.thread = t.number;
      q.epoch = epoch;
      if (kind == call_print) q.printed = print(q.call);  // in the order of records
      const unsigned weighs = weight_of(q);
      takes_time = takes_time || weighs > 1;
      weight += chosen ? 1 : weighs;
      return weight < most ? queue::pop_result::more : queue::pop_result::last;
    });
    if (window == 0 || weight >= most || t.batch.empty() || left) break;
    const std::uint64_t now = now_ns();
    if (until == 0) until = now + static_cast<std::uint64_t>(window);
    if (now >= until || stopping_.load(std::memory_order_relaxed) ||
        window_ns_.load(std::memory_order_relaxed) != window)
      break;
    simt::relax();
  }
  if (popped != 0) s.ring.give_credit();
  const bool more = !left && s.ring.ready();
  t.left = t.left || left;
  lock.unlock();
  expect_awaited(t);
  // A record may wait in any shard, and this thread has calls to make first.
  if (!left && resting_.load(std::memory_order_relaxed) != 0 &&
      (more || (takes_time && something_waits())))
    wake_one();
  if (light != 0) t.counts.add(call_nothing, light, refuses ? light : 0, 0, 0);
  if (popped != 0) count(t.counts.batches);
  if (!t.batch.empty()) make_all(t);
  t.under_way[epoch].fetch_sub(1, std::memory_order_acq_rel);
  return popped;
}

/// Whether the server takes a record now. If not, it stays in its shard, and those behind it too:
/// what is full in the end are the shards, and then callers wait for room.
bool service::lets_in(call_number number) {
  if (number == call_print && !printed_.has_room()) return false;
  if (options_.audit_to >= 0 && !audit_.has_room()) return false;
  return rate_.take();
}

/// Tells the ports of the runtimes that await calls of the thread's batch.
void service::expect_awaited(const service_thread& t) {
  const auto awaited = [](const request& q) { return (q.call.flags & flag_awaited) != 0; };
  for (auto q = t.batch.begin(), end = q; q != t.batch.end(); q = end) {
    if (!awaited(*q)) {
      ++end;
      continue;
    }
    end = std::find_if_not(q, t.batch.end(), [&](const request& other) {
      return awaited(other) && other.call.target.port() == q->call.target.port();
    });
    queue::expect(q->call.target, static_cast<std::uint32_t>(end - q));
  }
}

void service::make_all(service_thread& t) {
  queue::completion_batch together;
  std::uint64_t before = now_ticks();
  const auto ns_since = [&] {
    const std::uint64_t now = now_ticks();
    const double ns = static_cast<double>(now - before) * ns_per_tick_;
    before = now;
    return ns;
  };
  unsigned untimed = 0;
  for (request& q : t.batch) {
    const bool light = is_light(q);
    if (!light && untimed != 0) ns_since();
    // This one may take its time. One that waits for a peer is left to the reactor.
    if (!light && (q.linux == nullptr || q.linux->waits != waiting::peer)) together.flush();
    q.taken = before;
    bool later = false;
    const long result = make(t, q, later);
    double ns = t.light_ns;
    if (!light) {
      ns = ns_since();
      untimed = 0;
    } else if (++untimed == timed_light || t.light_ns == 0) {
      ns = t.light_ns = ns_since() / untimed;
      untimed = 0;
    }
    if (!later) finish(t, q, result, static_cast<std::uint64_t>(ns));
  }
}

void service::finish(service_thread& t, const request& q, long result, std::uint64_t ns) {
  const call_record& c = q.call;
  if (options_.audit_to >= 0) note(&t, c, result);
  reply(q, result);
  t.counts.add(c.number, 1, result < 0 ? 1 : 0, bytes_moved(q.linux, result), ns);
}

void service::reply(const request& q, long result) {
  const call_record& c = q.call;
  if ((c.flags & flag_awaited) == 0) return reply(c.slot, q.serial, result);
  if (c.slot < options_.calls_in_flight || c.slot >= slots_)
    return;  // a record that no caller wrote
  // A runtime that has ended waits for nothing: what the call holds stays taken.
  queue::complete(c.target, {0, result, view_.data(), c.slot, 0});
}

void service::reply(std::uint32_t slot, std::uint64_t serial, long result) {
  if (slot >= options_.calls_in_flight) return;  // a record that no caller wrote
  const auto bits = static_cast<std::uint64_t>(result);
  // R2: pairs with A2 in has_reply().
  simt::bus_store_from_host(
      &replies_[slot],
      {{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
        static_cast<std::uint32_t>(serial >> 32), static_cast<std::uint32_t>(serial)}});
}

bool service::something_waits() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const auto& s) { return s->ring.ready(); });
}

/// A device has rung, and the thread that sleeps takes a while to wake: the first calls are made
/// here. Once only, since that thread is woken afterwards.
void service::serve_on_doorbell() {
  const no_write_signals here;  // the thread is not the server's own
  serve(*doorbell_worker_);
}

/// All but one sleep until somebody has too much to do; the last one until the device rings.
void service::rest(service_thread& t) {
  if (t.left) {  // somebody reads too slowly, or there are too many calls: nothing will ring
    t.left = false;
    if (!printed_.has_room())
      printed_.await_room();
    else if (!audit_.has_room())
      audit_.await_room();
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  unsigned awake = awake_.load();
  while (awake > 1)
    if (awake_.compare_exchange_weak(awake, awake - 1)) {
      rests_[t.number] = true;
      resting_.fetch_add(1);
      {
        std::unique_lock lock(rest_lock_);
        count(t.counts.sleeps);
        while (!ending_ && !something_waits()) rest_.wait_for(lock, longest_rest);
      }
      resting_.fetch_sub(1);
      rests_[t.number] = false;
      awake_.fetch_add(1);
      return;
    }
  const auto busy = [this] { return ending_.load() || something_waits(); };
  count(t.counts.sleeps);
  rests_[t.number] = true;
  resting_.fetch_add(1);  // serve_on_doorbell() and who wakes before it look at its shards
  // A call that was missed, as a ring came just when this fell asleep, is found at the next look.
  while (doorbell_.arm(busy) && !busy() && !doorbell_.sleep()) {
  }
  resting_.fetch_sub(1);
  rests_[t.number] = false;
}

void service::wake_one() {
  std::lock_guard lock(rest_lock_);
  rest_.notify_one();
}

void service::coalesce(unsigned batch, std::chrono::nanoseconds window) {
  batch_.store(std::min(batch, 256u));
  window_ns_.store(std::max<std::int64_t>(window.count(), 0));
}

bool service::drain(std::chrono::nanoseconds limit) {
  const std::uint64_t began = now_ns();
  const auto until = [&](auto&& done) {
    for (unsigned turn = 0; !done(); ++turn) {
      if (static_cast<std::int64_t>(now_ns() - began) > limit.count()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(turn < 10 ? 20 : 200));
    }
    return true;
  };
  const auto ended = [&](std::uint32_t epoch) {
    const auto none = [&](const auto& t) {
      return t->under_way[epoch].load(std::memory_order_acquire) == 0;
    };
    return std::all_of(threads_.begin(), threads_.end(), none) && none(doorbell_worker_);
  };
  std::unique_lock one_at_a_time(drain_lock_, std::defer_lock);
  if (!until([&] { return one_at_a_time.try_lock(); })) return false;
  for (const auto& s : shards_) {
    const std::uint64_t taken = s->ring.taken();
    if (!until([&] { return s->ring.consumed() >= taken; })) return false;
  }
  // Records taken from now on count with the other epoch, where nothing may be left: neither of
  // a drain that ran out of time, nor of a thread that had read the epoch long before it took
  // records.
  const std::uint32_t old = epoch_.load();
  if (!until([&] { return ended(1 - old); })) return false;
  epoch_.store(1 - old);
  if (!until([&] { return ended(old); })) return false;
  const std::uint64_t printed = printed_.given(), noted = audit_.given();
  return until([&] { return printed_.written() >= printed && audit_.written() >= noted; });
}

void service::stop() {
  stopping_ = true;
  reactor_.stop();
  workers_.stop();
  handler_workers_.stop();
  deferred_->end_all(-ESHUTDOWN);
  ring_.stop();
}

void service::leave() {
  const auto patience =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.exit_patience).count());
  printed_.give_up_after(now_ns() + patience);
  audit_.give_up_after(now_ns() + patience);
  try {
    drain(options_.exit_patience);
  } catch (...) {  // the device is lost: nobody waits for these calls
  }
  stop();
}

service::~service() {
  at_exit_.reset();
  leave();
  // Kernels that still run get refusals, and can end.
  simt::wait_for_kernels(device_);
  end_threads();
}

void service::end_threads() {
  ending_ = true;
  doorbell_.wake();
  {
    std::lock_guard lock(rest_lock_);
    rest_.notify_all();
  }
  for (auto& t : threads_)
    if (t->thread.joinable()) t->thread.join();
}

}  // namespace grosr::sys
