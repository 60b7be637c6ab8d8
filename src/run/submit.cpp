// Submission and waiting: the host's half of docs/internals/scheduler.md, "Submit" and
// "Completion".
#include <algorithm>
#include <cstring>

#include "grosr/simt/asymmetric_fence.hpp"
#include "grosr/simt/relax.hpp"
#include "run/deadline.hpp"
#include "run/engine.hpp"

namespace grosr::run {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint32_t near_tries = 16, slots_ahead = 24;

/// How many threads submitted before the caller's did first.
unsigned thread_number() {
  static std::atomic<unsigned> threads{0};
  static thread_local const unsigned mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

/// A wait_all() that other submitters keep from ending looks after 16 ms, then 32, up to 2048;
/// after each look it holds them back for a quarter of that.
constexpr auto least_wait = std::chrono::milliseconds(16), most_wait = least_wait * 128;

}  // namespace

// All of them in few packets when there are many, spread over more warps when there are few.
std::uint32_t tasks_a_packet(width w, std::size_t n, std::size_t staging) {
  if (w == width::lane) {
    std::size_t even = (n / 40 + simt::warp_size - 1) / simt::warp_size * simt::warp_size;
    std::size_t most = n < 262'144 ? 256 : staging_records;
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(even, 128, most));
  }
  // Wide ones: all of them in flight while there are no more than half the staging buffers can
  // hold.
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(2 * n / staging, 1, staging_records / 2));
}

// Polls: 2 ms of spinning, then sleeps of a sixteenth of the time waited, up to 1 ms: Linux lets a
// sleep last 50 us longer than asked for.
template <class Ready>
bool engine::wait_for(Ready&& condition, deadline until) {
  // A condition that comes true while the kernel is being aborted does not count: the wait ends in
  // an error.
  auto ready = [&] { return condition() && !aborting_; };
  if (ready()) return true;
  auto began = clock::now();
  for (unsigned turn = 1;; ++turn) {
    if (ready()) return true;
    if (turn % 64 != 0) {
      simt::relax();
      continue;
    }
    throw_if_ended();
    ensure_resident();
    // Packets of a submitter that began before stop() did. A thread that has a deadline leaves it
    // to others.
    if (!until && life_ == life::stopped && goes_on_after_stop()) stop({});
    if (expired(until)) return ready();
    if (clock::now() - began > std::chrono::milliseconds(2) || !device_.is_cuda()) {
      // A sleep adds at most a sixteenth to the wait.
      auto waited = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - began);
      std::this_thread::sleep_for(
          std::clamp(waited / 16, std::chrono::microseconds(20), std::chrono::microseconds(1000)));
    }
  }
}

bool engine::take_slot_if_free(std::uint32_t s, std::uint32_t& generation) {
  // A1: pairs with R2 in worker_complete.inl, before finish(): the records were read, the results are
  // there.
  std::uint32_t word = host_word(slot_words_[s]).load(simt::acquire);
  std::uint32_t mine = generations_[s].load(std::memory_order_relaxed);
  if (mine != slot_word::generation(word)) return false;
  // It may have been released with tasks in it (release_streams()).
  if (aborting_) return false;
  std::uint32_t taken = (mine + 1) & slot_word::generation_mask;
  if (!generations_[s].compare_exchange_strong(mine, taken, std::memory_order_acq_rel))
    return false;
  if (slot_word::failed(word)) {
    // Its ticket may still ask: failures outlive their slot.
    std::lock_guard lock(failed_lock_);
    failed_.insert({s, mine});
    failed_order_.push_back({s, mine});
    if (failed_order_.size() > 65536) {
      failed_.erase(failed_order_.front());
      failed_order_.pop_front();
    }
  }
  generation = taken;
  return true;
}

std::optional<std::uint32_t> engine::take_slot(slot_kind k, std::uint32_t& generation) {
  // Most submissions find a slot among the first few of their kind: what lies there is still in
  // the cache.
  const slot_range r = slot_ranges_[static_cast<int>(k)];
  if (r.count == 0) return std::nullopt;
  auto& next = next_slot_[static_cast<int>(k)];
  for (std::uint32_t tries = 0; tries < near_tries + r.count; ++tries) {
    std::uint32_t at = next.fetch_add(1, std::memory_order_relaxed);
    std::uint32_t s = r.first + at % (tries < near_tries ? r.near : r.count);
    __builtin_prefetch(&slot_words_[r.first + (at + 1) % r.near]);
    if (take_slot_if_free(s, generation)) return s;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> engine::claim_slot(slot_kind k, std::uint32_t& generation,
                                                deadline until, bool attempt) {
  std::optional<std::uint32_t> slot = take_slot(k, generation);
  if (!slot && !attempt) wait_for([&] { return slot || (slot = take_slot(k, generation)); }, until);
  return slot;
}

// A thread's single packets go through one ring while it has room: the worker that polls it is
// warm. `spread`: one of many packets, which many workers should find.
bool engine::write_packet(unsigned level, const queue::packet& content, bool spread, deadline until,
                          bool attempt) {
  unsigned n = options_.rings_per_level;
  unsigned first = spread ? next_ring_.fetch_add(1, std::memory_order_relaxed) : thread_number();
  auto write = [&] {
    for (unsigned tries = 0; tries < n; ++tries) {
      unsigned at = level * n + (first + tries) % n;
      host_ring& ring = *rings_[at];
      std::lock_guard lock(ring.packets.lock());
      if (!ring.packets.has_room()) continue;
      ring.packets.write(content);
      ring.written.fetch_add(1, std::memory_order_release);
      return true;
    }
    return false;
  };
  bool written = write();
  auto try_again = [&] { return written || (written = write()); };
  if (!written && !attempt) wait_for(try_again, until);
  return written;
}

void engine::give_slot_back(std::uint32_t slot, std::uint32_t generation) {
  host_word(slot_words_[slot]).store(slot_word::of(generation, false), simt::release);
}

// A packet with its tasks, in itself or in the staging buffer of its slot.
queue::packet engine::make_packet(const packet_header& h, const void* tasks) {
  const task_type& t = program_.types[h.type()];
  auto* from = static_cast<const unsigned char*>(tasks);
  queue::packet content{};
  std::memcpy(content.word, &h, sizeof h);
  if (h.carries_task()) {
    std::memcpy(content.word + packet_payload_word, from, t.bytes);
    return content;
  }
  unsigned char* to = staging_.data() + std::size_t{h.slot} * view_.sizes.staging_bytes;
  if (t.stride == t.bytes)
    std::memcpy(to, from, std::size_t{h.count} * t.bytes);
  else
    for (std::uint32_t k = 0; k < h.count; ++k)
      std::memcpy(to + k * t.stride, from + std::size_t{k} * t.bytes, t.bytes);
  return content;
}

// A packet of tasks that were swapped out, or of completions, if there is room for it now. The
// runtime was not parked to go on by itself.
std::optional<ticket_id> engine::bring_back(unsigned type, unsigned level, const void* tasks,
                                            std::uint32_t count, bool may_launch) {
  if (parked_by_user_ || (life_ != life::running && life_ != life::stopping)) return std::nullopt;
  const std::uint64_t began = trace_time();
  std::uint32_t generation = 0;
  // One completion travels in its packet, as a single task does. Lane tasks that do are taken
  // together with others of their kind, whose holders nobody would take over.
  auto slot = count == 1 && program_.types[type].completes
                  ? take_slot(slot_kind::packet, generation)
                  : std::nullopt;
  const bool in_packet = slot.has_value();
  if (!slot) slot = take_slot(slot_kind::returned, generation);
  if (!slot) slot = take_slot(slot_kind::staged, generation);
  if (!slot) return std::nullopt;
  slot_types_[*slot].store(static_cast<std::uint8_t>(type), std::memory_order_relaxed);
  const packet_header h{.kind = packet_header::kind_of(type, level, in_packet, true),
                        .count = count,
                        .slot = *slot,
                        .ticket = *slot,
                        .ticket_packets = 0,
                        .generation = generation,
                        .ticket_generation = generation,
                        .reserved = 0};
  const std::uint64_t sent = trace_time();
  // One alone goes where the warp that took the last one polls.
  if (!write_packet(level, make_packet(h, tasks), count > 1, {}, true)) {
    give_slot_back(*slot, generation);
    return std::nullopt;
  }
  trace_submit(h, began, sent);
  simt::fence<simt::scope::system>(simt::seq_cst);  // P2; pairs with P1 as well
  if (may_launch) ensure_resident();                // else the monitor does, if the kernel has left
  return ticket_id{*slot, generation};
}

// The short way of a task that travels in its packet: its thread's ring has room, and a slot of
// that ring is free. It writes nothing that submitters to other rings write. Nothing otherwise.
std::optional<ticket_id> engine::submit_single(unsigned type, const void* data, unsigned level) {
  const unsigned n = options_.rings_per_level;
  host_ring& ring = *rings_[level * n + thread_number() % n];
  const std::lock_guard lock(ring.packets.lock());
  if (!ring.packets.has_room()) return std::nullopt;
  const slot_range& slots = ring.slots;
  for (unsigned tries = 0; tries < near_tries && tries < slots.count; ++tries) {
    const std::uint32_t slot = slots.first + ring.next_slot;
    if (++ring.next_slot == slots.count) ring.next_slot = 0;
    const std::uint32_t later = ring.next_slot + slots_ahead;
    if (later < slots.count) __builtin_prefetch(&slot_words_[slots.first + later]);
    ticket_id ticket{slot, 0};
    if (!take_slot_if_free(slot, ticket.generation)) continue;
    slot_types_[slot].store(static_cast<std::uint8_t>(type), std::memory_order_relaxed);
    const packet_header h{.kind = packet_header::kind_of(type, level, true, false),
                          .count = 1,
                          .slot = slot,
                          .ticket = slot,
                          .ticket_packets = 0,
                          .generation = ticket.generation,
                          .ticket_generation = ticket.generation,
                          .reserved = 0};
    ring.packets.write(make_packet(h, data));
    const std::uint32_t written = ring.written.load(std::memory_order_relaxed);
    ring.written.store(written + 1, std::memory_order_release);
    const std::uint64_t submitted = ring.submitted.load(std::memory_order_relaxed);
    ring.submitted.store(submitted + 1, std::memory_order_relaxed);
    return ticket;
  }
  return std::nullopt;
}

// One packet of a submission, whose ticket that is (null: its own), if it finds a slot and room in
// a ring. Its own ticket.
std::optional<ticket_id> engine::send_packet(unsigned type, unsigned level, const void* tasks,
                                             std::uint32_t count, const ticket_id* ticket,
                                             std::uint32_t packets, deadline until, bool attempt) {
  const bool in_packet = count == 1 && program_.types[type].how_wide != width::block;
  const std::uint64_t began = trace_time();
  std::uint32_t generation = 0;
  const auto slot =
      claim_slot(in_packet ? slot_kind::packet : slot_kind::staged, generation, until, attempt);
  if (!slot) return std::nullopt;
  slot_types_[*slot].store(static_cast<std::uint8_t>(type), std::memory_order_relaxed);
  const packet_header h{.kind = packet_header::kind_of(type, level, in_packet, false),
                        .count = count,
                        .slot = *slot,
                        .ticket = ticket ? ticket->slot : *slot,
                        .ticket_packets = ticket ? packets : 0,
                        .generation = generation,
                        .ticket_generation = ticket ? ticket->generation : generation,
                        .reserved = 0};
  const queue::packet content = make_packet(h, tasks);
  const std::uint64_t sent = trace_time();
  if (!write_packet(level, content, packets > 1, until, attempt)) {
    give_slot_back(*slot, generation);
    return std::nullopt;
  }
  trace_submit(h, began, sent);
  return ticket_id{*slot, generation};
}

// Throws unless the runtime takes tasks, and there is such a level.
void engine::throw_unless_accepts(const char* what, unsigned type, std::size_t n,
                                  unsigned level) const {
  if (level >= priority_levels)
    throw error(errc::invalid_option, std::string(what) + ": priority " + std::to_string(level) +
                                          " was asked for; there are 0 to " +
                                          std::to_string(priority_levels - 1));
  throw_if_ended();
  if (life_ != life::running)
    throw error(errc::stopped, std::string(what) + ": " + std::to_string(n) + " " +
                                   program_.types[type].name + " after stop(); make a new runtime");
}

std::optional<ticket_id> engine::submit(unsigned type, const void* data, std::size_t n,
                                        unsigned level, deadline until, bool attempt) {
  const auto check = [&] { throw_unless_accepts("submit", type, n, level); };
  check();  // also while a wait_all() holds back, which may have failed
  if (held_back(level)) {
    if (attempt || !wait_for([&] { return !held_back(level); }, until)) return std::nullopt;
    check();
  }
  const task_type& t = program_.types[type];
  if (n == 1 && t.how_wide != width::block && submits_ == nullptr)
    if (const auto single = submit_single(type, data, level)) {
      after_submit();
      return single;
    }
  std::uint32_t a_packet = tasks_a_packet(t.how_wide, n, options_.staging_buffers);
  auto packets = static_cast<std::uint32_t>((n + a_packet - 1) / a_packet);
  ticket_id ticket;
  if (packets > 1) {
    auto taken = claim_slot(slot_kind::ticket, ticket.generation, until, attempt);
    if (!taken) return std::nullopt;
    ticket.slot = *taken;
    slot_types_[ticket.slot].store(static_cast<std::uint8_t>(type), std::memory_order_relaxed);
  }
  auto* from = static_cast<const unsigned char*>(data);
  for (std::uint32_t i = 0; i < packets; ++i) {
    auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(a_packet, n - i * std::size_t{a_packet}));
    // The first packet may be refused; then the rest follows, however long it takes.
    const auto sent = send_packet(type, level, from, count, packets > 1 ? &ticket : nullptr,
                                  packets, i == 0 ? until : deadline{}, attempt && i == 0);
    if (!sent) {
      if (packets > 1) give_slot_back(ticket.slot, ticket.generation);
      return std::nullopt;
    }
    if (packets == 1) ticket = *sent;
    from += std::size_t{count} * t.bytes;
    submitted_.fetch_add(count, std::memory_order_relaxed);
    if (i % 64 == 0) ensure_resident();
  }
  after_submit();
  return ticket;
}

// Sees to it that what was written is run.
void engine::after_submit() {
  // P2: the packets before the looks at `state` and `life_`, next; pairs with P3. For P1 in
  // worker::say_leaving() it may be too little: then whoever waits, or the monitor, finds them.
  simt::light_fence();
  ensure_resident();
  if (life_ == life::stopped && goes_on_after_stop()) stop({});
}

bool engine::done(ticket_id t) const {
  if (!slot_word::reached(host_word(slot_words_[t.slot]).load(simt::acquire), t.generation))
    return false;
  if (!some_released_) [[likely]]
    return true;
  std::lock_guard lock(failed_lock_);
  return released_.count({t.slot, t.generation}) == 0;
}

bool engine::failed(ticket_id t) const {
  std::uint32_t word = host_word(slot_words_[t.slot]).load(simt::acquire);
  if (word == slot_word::of(t.generation, true)) return true;
  std::lock_guard lock(failed_lock_);
  return failed_.count({t.slot, t.generation}) != 0;
}

bool engine::wait(ticket_id t, deadline until) {
  return wait_for([&] { return done(t); }, until);
}

std::uint32_t engine::take_promise() {
  std::uint32_t taken = 0;
  wait_for(
      [&] {
        if (life_ == life::stopped)  // nobody runs what would give one back
          throw error(errc::stopped,
                      "fork: every future was in use until stop(), after which "
                      "nothing is forked; make a new runtime");
        std::lock_guard lock(roots_lock_);
        std::erase_if(dropped_roots_, [&](std::uint32_t r) {
          if (!promise_ready(r)) return false;
          free_roots_.push_back(r);
          return true;
        });
        if (free_roots_.empty()) return false;
        taken = free_roots_.back();
        free_roots_.pop_back();
        return true;
      },
      {});
  host_word(promises_[taken].done).store(0, simt::relaxed);
  return taken;
}

void engine::give_promise_back(std::uint32_t promise) {
  std::lock_guard lock(roots_lock_);
  free_roots_.push_back(promise);
}

void engine::drop_promise(std::uint32_t promise) {
  std::lock_guard lock(roots_lock_);
  (promise_ready(promise) ? free_roots_ : dropped_roots_).push_back(promise);
}

bool engine::promise_ready(std::uint32_t promise) const {
  return host_word(promises_[promise].done).load(simt::acquire) != 0;
}

bool engine::wait_for_promise(std::uint32_t promise, deadline until) {
  return wait_for([&] { return promise_ready(promise); }, until);
}

deadline in(std::chrono::nanoseconds limit) {
  const auto now = clock::now();
  if (limit > clock::time_point::max() - now) return {};
  return now + limit;
}

std::chrono::nanoseconds left_until(clock::time_point until, std::chrono::nanoseconds least) {
  return std::max<std::chrono::nanoseconds>(until - clock::now(), least);
}

void throw_empty_future() {
  throw error(errc::misuse,
              "get: this future is empty: nothing was forked for it, or it was moved "
              "from; keep the future that fork() returned");
}

void throw_task_failed(int status) {
  throw error(errc::task_failed,
              "get: a task that the result comes from ended with " + std::to_string(status) + " (" +
                  std::generic_category().message(-status) + "); runtime::errors() tells which");
}

bool engine::wait_all(deadline until) {
  if (!wait_for_rest(until)) return false;
  throw_if_rejected();
  return true;
}

// Says once that tasks were lost.
void engine::throw_if_rejected() {
  if (host_word(state_[state_word::rejected]).load(simt::relaxed) == 0 ||
      host_word(state_[state_word::rejected]).exchange(0, simt::relaxed) == 0)
    return;
  throw error(
      errc::out_of_memory,
      "wait_all: " + std::to_string(stats().rejected) +
          " tasks so far found no place and were not run: the runtime's memory was full of "
          "tasks, and every worker that ran something waited for room; errors() names them. "
          "Start fewer tasks at a time, or raise swap_limit, overflow_limit or "
          "memory_limit");
}

bool engine::wait_for_rest(deadline until) {
  throw_if_ended();
  const std::uint64_t deferred = interop_->last_serial();
  if (deferred != 0 && !wait_for([&] { return interop_->sent_until(deferred); }, until))
    return false;
  unsigned rings = priority_levels * options_.rings_per_level;
  std::vector<std::uint32_t> target(rings);
  for (unsigned p = 0; p < rings; ++p)
    target[p] = rings_[p]->written.load(std::memory_order_acquire);
  auto all_done = [&] {
    for (unsigned p = 0; p < rings; ++p)
      if (static_cast<std::int32_t>(host_word(quiescent_[p]).load(simt::acquire) - target[p]) < 0)
        return false;
    return true;
  };
  std::int64_t mine = 0;
  for (auto step = least_wait;; step = std::min(2 * step, most_wait)) {
    auto end = clock::now() + step;
    if (wait_for(all_done, until && *until < end ? until : end)) break;
    if (expired(until)) return false;
    mine = (clock::now() + step / 4).time_since_epoch().count();
    held_until_ = mine;
  }
  held_until_.compare_exchange_strong(mine, 0);  // unless another one holds them
  return true;
}

// Whether a wait_all() asks submitters to let the device come to rest. Urgent ones go on.
bool engine::held_back(unsigned level) const {
  if (level == priority_levels - 1) return false;
  auto until = held_until_.load(std::memory_order_relaxed);
  return until != 0 && clock::now().time_since_epoch().count() < until;
}

bool engine::outstanding() const {
  unsigned rings = priority_levels * options_.rings_per_level;
  for (unsigned p = 0; p < rings; ++p)
    if (host_word(quiescent_[p]).load(simt::acquire) !=
        rings_[p]->written.load(std::memory_order_acquire))
      return true;
  return false;
}

}  // namespace grosr::run
