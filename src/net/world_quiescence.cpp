// When all that a world was given is done, and what was refused.
#include <fmt/format.h>

#include <algorithm>

#include "net/world_parts.hpp"

namespace grosr::net {

static const char* name_of(std::uint32_t operation) {
  static constexpr const char* names[] = {"an operation", "put",     "add",    "min",
                                          "max",          "bit_and", "bit_or", "get"};
  if (operation >= operation::task) return "send or call";
  return names[operation / 4 % 8];
}

void world_core::ring_all() {
  const std::uint32_t rung = 1;
  for (std::uint32_t i = 0; i < parts_->here(); ++i)
    simt::copy_bytes(parts_->ranks[i].where, &parts_->memory[i].state.data()->doorbell, &rung,
                     sizeof rung);
}

rank_stats world_core::parts::stats_of(std::uint32_t i) const {
  const rank_memory& m = memory[i];
  const std::uint64_t chunks = options.link_bytes / sizeof(simt::bus_word) / chunk_words;
  rank_stats s;
  // What was given back first: no more than was sent by then.
  const std::vector<std::uint64_t> freed = copy_of(m.freed);
  for (std::size_t k = 0; k < freed.size(); ++k)
    s.words_received += chunks_freed(freed[k], k % chunks, chunks) * chunk_words;
  if (away) s.words_received += away->words_back(first() + i);
  for (const link_sender& o : copy_of(m.out)) s.words_sent += o.tail;
  s.deferred = copy_of(m.state).front().deferred;
  s.memory = m.bytes() + (away ? away->bytes() / here() : 0);
  return s;
}

std::vector<rank_stats> world_core::stats() const {
  std::vector<rank_stats> all;
  for (std::uint32_t i = 0; i < parts_->here(); ++i) all.push_back(parts_->stats_of(i));
  return all;
}

std::string world_core::under_way() const {
  std::uint64_t sent = 0, received = 0;
  try {
    for (const rank_stats& s : stats()) {
      received += s.words_received;
      sent += s.words_sent;
    }
  } catch (const error&) {  // the device is lost
    return "messages not received";
  }
  return fmt::format("about {} of {} words of messages not received",
                     sent - std::min(sent, received), sent);
}

/// What a rank has told last.
rank_report world_core::parts::report_of(std::uint32_t i) const {
  const auto load = [](std::uint64_t& word) {
    return simt::atomic_ref<std::uint64_t, simt::scope::system>(word).load(simt::relaxed);
  };
  rank_report& r = reports[i];
  return {load(r.words_sent), load(r.words_received) + (away ? away->words_back(first() + i) : 0),
          load(r.refused)};
}

/// Threads that wait for the world at the same time do so one after the other. False: the deadline
/// passed; else the thread calls end_wait().
bool world_core::parts::wait_alone(run::deadline until) const {
  std::unique_lock hold(wait_lock);
  const auto is_free = [&] { return !waits; };
  if (!until)
    wait_ended.wait(hold, is_free);
  else if (!wait_ended.wait_until(hold, *until, is_free))
    return false;
  waits = true;
  return true;
}
void world_core::parts::end_wait() const {
  {
    const std::lock_guard hold(wait_lock);
    waits = false;
  }
  wait_ended.notify_one();
}

/// Has the ranks of this process write reports, and waits for them; and looks at the other
/// processes now and then: what is waited for may be theirs.
bool world_core::parts::rest_all(const waiting& how, run::deadline until) const {
  constexpr std::chrono::milliseconds look_every{200};
  for (std::uint32_t i = 0; i < here(); ++i)
    if (!how.ask(first() + i, reports.data() + i, until)) return false;
  for (std::uint32_t i = 0; i < here(); ++i)
    for (;;) {
      run::deadline next = until;
      if (others) {
        others->check();
        next = std::chrono::steady_clock::now() + look_every;
        if (until && *until < *next) next = until;
      }
      if (how.rests(first() + i, next)) break;
      if (until && std::chrono::steady_clock::now() >= *until) return false;
    }
  return true;
}

bool world_core::wait_all(const waiting& how, run::deadline until, bool last) const {
  // Sums over all ranks, counted twice: F. Mattern, "Algorithms for distributed termination
  // detection", Distributed Computing 2, 1987 (the four-counter method). Between two rounds all
  // processes wait for each other. Ranks count at some time in a round. What was received by
  // its end may have started tasks that the rank rests from in the next round only, and what these
  // have sent is counted in the one after that.
  struct round {
    std::uint64_t sent = 0, received = 0;
    bool rested = true, late = false;
    int failed = 0;
  };
  parts& p = *parts_;
  if (!p.wait_alone(until)) return false;
  struct waiter {
    const parts& p;
    ~waiter() { p.end_wait(); }
  } const alone{p};
  const auto hold = p.one_at_a_time();
  run::deadline gather_by;
  if (until) gather_by = *until + (last ? std::chrono::seconds(10) : p.options.collective_within);
  constexpr std::uint64_t unknown = ~std::uint64_t{0};
  std::uint64_t received_before = unknown, received_long_before = unknown;
  for (;;) {
    round mine{};
    std::string why;
    std::exception_ptr failed;
    try {
      mine.rested = p.rest_all(how, until);
      mine.late = until && std::chrono::steady_clock::now() >= *until;
      for (std::uint32_t i = 0; i < p.here(); ++i) {
        const rank_report r = p.report_of(i);
        mine.sent += r.words_sent;
        mine.received += r.words_received;
      }
    } catch (const std::exception& e) {
      if (!p.others) throw;
      p.others->check();
      const failure f = failure::of(e);
      // Who waits for this process would wait for ever: these failures are for good.
      if (f.code != static_cast<int>(errc::out_of_memory)) {
        p.away->tell(f.text);
        throw;
      }
      failed = std::current_exception();
      mine.failed = f.code;
      why = f.text;
    }
    std::vector<said> found;
    if (p.others) {
      found = p.with.gather(last ? collective::end : collective::wait, said().add(mine).add(why),
                            gather_by);
      if (failed) std::rethrow_exception(failed);
    } else {
      found.push_back(said().add(mine));
    }
    round sum{};
    for (std::uint32_t q = 0; q < found.size(); ++q) {
      const auto r = found[q].take<round>();
      if (r.failed != 0) throw_failure(q, r.failed, found[q].rest());
      sum.sent += r.sent;
      sum.received += r.received;
      sum.rested = sum.rested && r.rested;
      sum.late = sum.late || r.late;
    }
    if (!sum.rested) return false;
    if (sum.sent == received_long_before) return true;
    if (sum.late) return false;
    received_long_before = std::exchange(received_before, sum.received);
  }
}

/// What a map's part begins with, on a rank of this process; zero if there is none.
map_header world_core::parts::map_of(std::uint32_t number, std::uint32_t rank) const {
  map_header h{};
  if (number < arrays.size() && all.is_here(rank)) {
    const array_memory& a = arrays[number];
    if (a.element_bytes * a.shape.size_of(rank) >= sizeof h)
      simt::copy_bytes(ranks[rank - first()].where, &h, a.parts[rank - first()].data(), sizeof h);
  }
  return h;
}

void world_core::throw_if_refused() {
  struct found {
    refusals first;
    std::uint32_t rank;
    std::uint64_t count;
    std::uint64_t entries, room;  // of a map that was full
  };
  parts& p = *parts_;
  if (!p.others) {
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < p.here(); ++i) count += p.report_of(i).refused;
    const std::lock_guard hold(p.told_lock);
    if (count == p.refused_told) return;
  }
  found mine{};
  for (std::uint32_t i = 0; i < p.here(); ++i) {
    const refusals r = copy_of(p.memory[i].state).front().refused;
    if (mine.count == 0 && r.count != 0) {
      mine.first = r;
      mine.rank = p.first() + i;
      if (r.operation == refused_full) {
        const map_header h = p.map_of(r.array, static_cast<std::uint32_t>(r.index));
        mine.entries = h.entries;
        mine.room = h.room;
      }
    }
    mine.count += r.count;
  }
  found all{};
  {
    const auto hold = p.one_at_a_time();
    for (said& s : p.with.gather(collective::refusals, said().add(mine), p.soon())) {
      const auto theirs = s.take<found>();
      if (all.count == 0 && theirs.count != 0) {
        all = theirs;
        all.count = 0;
      }
      all.count += theirs.count;
    }
  }
  std::uint64_t count = all.count;
  const refusals first = all.first;
  {
    const std::lock_guard hold(p.told_lock);
    if (count <= p.refused_told) return;
    count -= std::exchange(p.refused_told, count);
  }
  if (first.operation == refused_full)
    throw error(errc::out_of_memory,
                fmt::format("world: {} operations were refused; map {} has {} entries on rank {} "
                            "and room for {}; make it larger",
                            count, first.array, all.entries, first.index, all.room));
  if (first.operation == refused_no_map)
    throw error(errc::misuse,
                fmt::format("world: {} operations were refused; rank {} was to change an entry of "
                            "map {}, which there is not, or is gone",
                            count, all.rank, first.array));
  const char* what = name_of(first.operation & 0xff);
  if (first.operation >= refused_rank)
    throw error(errc::misuse,
                fmt::format("world: {} operations were refused; rank {} asked for a {} to rank {}, "
                            "and there are {} ranks",
                            count, all.rank, what, first.index, size()));
  throw error(errc::misuse,
              fmt::format("world: {} operations were refused; rank {} asked for a {} of element {} "
                          "of array {}, which has no such element, or is gone",
                          count, all.rank, what, first.index, first.array));
}

}  // namespace grosr::net
