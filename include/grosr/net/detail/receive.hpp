// Receiving: chunks of links become tasks, which are started or run here, and changes of elements.
#pragma once

#include "grosr/net/detail/rank_state.hpp"
#include "grosr/net/detail/tasks.hpp"
#include "grosr/run/context.hpp"

namespace grosr::net {

/// Takes chunks in. Spawner: of the runtime of the rank. What take() does for each word must not
/// lead back to it: compilers inline nothing in a circle of calls, and each word is a call then.
template <class Spawner>
struct receiver {
  using shared = typename Spawner::shared;
  using types = typename Spawner::types;

  /// Lanes of `mask` together, within a task: takes in chunks that have come, most_chunks at most,
  /// of this class of links or a later one. Replies alone start no requests and no replies: so that
  /// takes no room. False: there were none, or others took them. May wait for room for tasks.
  template <link_class First, class Mask>
  GROSR_DEVICE GROSR_NOINLINE static bool take(shared* block, Mask mask, coming_tasks tasks) {
    Spawner self(simt::in_block_shared(block));
    rank_state& s = state_of(self.get_view());
    const std::uint32_t lanes = simt::popcount(mask), rank = simt::rank_in(mask, simt::lane_id());
    const unsigned leader = simt::lowest_bit(mask);
    claimed_chunks mine;
    std::uint32_t by = 0;
    if (rank == 0) mine = claim<First>(self, s, lanes, by);
    const std::uint32_t count = simt::shuffle(mask, mine.count, leader);
    if (count == 0) return false;
    const std::uint64_t first = simt::shuffle(mask, mine.first, leader);
    const std::uint32_t which = simt::shuffle(mask, by << 1 | (mine.far ? 1u : 0u), leader);
    // One lane knows one chunk.
    arrival chunk{};
    if (rank < count)
      chunk = arrivals_ref(s.arrived[which >> 1]).take(first + rank, (which & 1) != 0);
    meet(mask);
    link_receiver* const in = simt::in_global_memory(s.in) + (which >> 1) * s.ranks;
    if constexpr (First == link_class::request)
      if (which >> 1 == static_cast<std::uint32_t>(link_class::request) &&
          tasks != coming_tasks::start && count == 1 && may_run(self, mask, rank)) {
        take_and_run(block, &in[simt::shuffle(mask, chunk.from, leader)],
                     simt::shuffle(mask, chunk.chunk, leader), mask);
        return true;
      }
    known_array known;
    std::uint32_t left = mask;
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < count; ++i, left &= left - 1) {
      const unsigned who = simt::lowest_bit(left);
      link_receiver* const link = &in[simt::shuffle(mask, chunk.from, who)];
      const std::uint64_t begin = simt::shuffle(mask, chunk.chunk, who) * chunk_words;
      if (First == link_class::reply || which >> 1 == static_cast<std::uint32_t>(link_class::reply))
        take_replies(block, link, begin, mask);
      else
        take_requests(block, s, link, begin, mask, known);
    }
    meet(mask);  // what all of them read, and did
    if (rank < count) link_in(in[chunk.from]).give_back(chunk.chunk);
    meet(mask);
    return true;
  }

 private:
  /// The part of an array that was changed last.
  struct known_array {
    std::uint32_t number = most_arrays;
    array_part part{};
    simt::evict_first policy;
  };

  /// One lane: claims chunks. `by`: their class.
  template <link_class First>
  GROSR_DEVICE static claimed_chunks claim(Spawner& self, rank_state& s, std::uint32_t lanes,
                                           std::uint32_t& by) {
    constexpr auto replies = static_cast<std::uint32_t>(link_class::reply),
                   requests = static_cast<std::uint32_t>(link_class::request);
    // Tasks that run here may wait for room: no chunk waits for them meanwhile.
    const std::uint32_t most = simt::shared_load(arrivals_of(self).expected) != 0 ? 1
                               : lanes < most_chunks                              ? lanes
                                                                                  : most_chunks;
    const arrivals_ref from_replies(s.arrived[replies]), from_requests(s.arrived[requests]);
    const std::uint32_t some_replies = from_replies.near_count(),
                        some_requests =
                            First == link_class::request ? from_requests.near_count() : 0;
    by = replies;  // replies first: they end what others wait for
    const claimed_chunks c = from_replies.claim(some_replies, most);
    if (First == link_class::reply || c.count != 0) return c;
    by = requests;
    return from_requests.claim(some_requests, most);
  }

  /// Lanes of `mask` together: a chunk that begins with a ticket.
  template <class Mask>
  GROSR_DEVICE static void take_requests(shared* block, rank_state& s, link_receiver* link,
                                         std::uint64_t begin, Mask mask, known_array& known) {
    each_word(
        link, begin, mask,
        [&](std::uint32_t, const simt::bus_word& w) {
          return (w.w[3] & first_bit) == 0 || change_element(s, w, known);
        },
        [&](std::uint32_t at) { take_other(block, link, begin + at); });
  }
  GROSR_DEVICE GROSR_NOINLINE static void take_replies(shared* block, link_receiver* link,
                                                       std::uint64_t begin, std::uint32_t mask) {
    Spawner self(simt::in_block_shared(block));
    each_word(
        link, begin, mask,
        [&](std::uint32_t at, const simt::bus_word& w) {
          if ((w.w[3] & first_bit) != 0) take_reply(self, link_in(*link), begin + at, w);
          return true;
        },
        [](std::uint32_t) {});
  }
  /// Lanes of `mask` together: takes each word of a chunk, and where it lies there. Words for which
  /// take() is false come after the lane's others, by other(): a loop that calls functions keeps
  /// little in registers, and saves many.
  template <class Mask, class Take, class Other>
  GROSR_DEVICE static void each_word(link_receiver* link, std::uint64_t begin, Mask mask,
                                     const Take& take, const Other& other) {
    constexpr unsigned ahead = 4;  // words that a lane has under way
    const link_in from(*link);
    const std::uint32_t lanes = simt::popcount(mask);
    GROSR_NO_UNROLL
    for (std::uint32_t base = simt::rank_in(mask, simt::lane_id()); base < chunk_words;
         base += ahead * lanes) {
      simt::bus_word w[ahead];  // in registers: which one is a constant everywhere
      for (unsigned k = 0; k < ahead; ++k)
        w[k] = from.peek(begin + base + k * lanes);  // past the end: looked at, and not used
      std::uint32_t others = 0, at = base;
      GROSR_NO_UNROLL
      for (unsigned k = 0; k < ahead && at < chunk_words; ++k, at += lanes) {
        if (!take(at, from.settled(begin + at, w[0]))) others |= 1u << k;
        for (unsigned i = 0; i + 1 < ahead; ++i) w[i] = w[i + 1];
      }
      GROSR_NO_UNROLL
      for (; others != 0; others &= others - 1) other(base + simt::lowest_bit(others) * lanes);
    }
  }

  /// Lanes of `mask` together: whether tasks are expected, and these lanes have the lock to run
  /// them.
  template <class Mask>
  GROSR_DEVICE static bool may_run(Spawner& self, Mask mask, std::uint32_t rank) {
    warp_arrivals& here = arrivals_of(self);
    bool took = false;
    if (rank == 0) took = simt::shared_load(here.expected) != 0 && simt::shared_try_lock(here.lock);
    return simt::any(mask, took);
  }

  /// Lanes of `mask` together, which have the lock, and no other chunk: takes a chunk in. The tasks
  /// in it run here after it is given back, since they may wait for room.
  template <class Mask>
  GROSR_DEVICE GROSR_NOINLINE static void take_and_run(shared* block, link_receiver* link,
                                                       std::uint64_t chunk, Mask mask) {
    Spawner self(simt::in_block_shared(block));
    rank_state& s = state_of(self.get_view());
    const link_in from(*link);
    warp_arrivals& here = arrivals_of(self);
    const std::uint32_t rank = simt::rank_in(mask, simt::lane_id());
    const std::uint64_t begin = chunk * chunk_words;
    known_array known;
    each_word(
        link, begin, mask,
        [&](std::uint32_t at, const simt::bus_word& w) {
          keep(here, at, w);
          if ((w.w[3] & first_bit) == 0) return true;
          const std::uint32_t what = header_word::operation_of(w.w[3]),
                              words = header_word::words_of(w.w[3]);
          if (what < operation::task) return change_element(s, w, known);
          const std::uint32_t i = simt::shared_add(here.count, 1);
          here.first[i] = static_cast<std::uint8_t>(at);
          here.what[i] = static_cast<std::uint8_t>((words - 1) << 4 | (what - operation::task));
          GROSR_NO_UNROLL
          for (std::uint32_t k = chunk_words; k < at + words; ++k)
            keep(here, k, from.load(begin + k));
          return true;
        },
        [&](std::uint32_t at) { take_other(block, link, begin + at); });
    meet(mask);
    const std::uint32_t n = simt::shared_load(here.count);
    meet(mask);
    if (rank == 0) {
      from.give_back(chunk);
      simt::shared_store(here.count, 0);
      const std::uint32_t expected = simt::shared_load(here.expected);
      // Other lanes of the warp may have had it at 0 meanwhile.
      const std::uint32_t fewer = expected != 0 ? expected - 1 : 0;
      simt::shared_store(here.expected, n != 0 ? chunks_with_tasks : fewer);
    }
    if (n != 0) run_tasks(self, here, link->from, n, mask);
    meet(mask);
    if (rank == 0) simt::shared_store(here.lock, 0);
  }
  GROSR_DEVICE static void keep(warp_arrivals& here, std::uint32_t at, const simt::bus_word& w) {
    for (unsigned k = 0; k < 3; ++k) here.content[3 * at + k] = w.w[k];
  }

  /// Lanes of `mask` together, which have the lock: runs the n tasks that lie there, or starts
  /// them.
  template <class Mask>
  GROSR_DEVICE static void run_tasks(Spawner& self, warp_arrivals& here, std::uint32_t from,
                                     std::uint32_t n, Mask mask) {
    const std::uint32_t lanes = simt::popcount(mask), rank = simt::rank_in(mask, simt::lane_id());
    bool runs = true;
    std::uint32_t ran = 0;
    GROSR_NO_UNROLL
    for (std::uint32_t i = rank; i - rank < n; i += lanes) {
      if (simt::any(mask, self.aborted())) break;
      const std::uint64_t began = simt::cycle_count();
      if (i < n) {
        const std::uint32_t first = 3u * here.first[i], what = here.what[i], type = what & 15,
                            words = (what >> 4) + 1;
        message<most_words> m{};
        for (unsigned k = 0; k < most_words; ++k)
          if (k < words)
            for (unsigned j = 0; j < 3; ++j) m.content[3 * k + j] = here.content[first + 3 * k + j];
        if (runs && run_one(self, m, type, types{}))
          ++ran;
        else
          start(self, from, m, type, types{});
      }
      meet(mask);
      // Others may want the rest.
      runs = !simt::any(mask, !runs || simt::cycle_count() - began > Spawner::long_cycles);
    }
    if (ran != 0) self.count_inlined(ran);
  }
  /// One lane: runs the task that a message is. False: it is not to run here.
  template <class... Records>
  GROSR_DEVICE static bool run_one(Spawner& self, const message<most_words>& m, std::uint32_t type,
                                   run::type_list<Records...>) {
    bool done = false;
    ((type == types::template index_of<Records>() ? (done = run_as<Records>(self, m), void())
                                                  : void()),
     ...);
    return done;
  }
  template <class Record>
  GROSR_DEVICE static bool run_as(Spawner& self, const message<most_words>& m) {
    if constexpr (runs_where_it_comes<Record>) {
      run::loaded<Record> l;
      __builtin_memcpy(static_cast<void*>(&l.task), m.content, sizeof(Record));
      self.run_in_place(l.task, level_of_messages);
      return true;
    }
    return false;
  }

  /// A message that begins with a word.
  GROSR_DEVICE static message<most_words> message_at(const link_in& from, std::uint64_t ticket,
                                                     const simt::bus_word& w) {
    message<most_words> m{};
    for (unsigned k = 0; k < 3; ++k) m.content[k] = w.w[k];
    m.header = w.w[3];
    const unsigned words = header_word::words_of(w.w[3]);
    for (unsigned i = 1; i < most_words; ++i) {
      if (i >= words) break;
      const simt::bus_word next = from.load(ticket + i);
      for (unsigned k = 0; k < 3; ++k) m.content[3 * i + k] = next.w[k];
    }
    return m;
  }

  /// One lane: a call of this rank has ended.
  GROSR_DEVICE static void take_reply(Spawner& self, const link_in& from, std::uint64_t ticket,
                                      const simt::bus_word& w) {
    const message<most_words> m = message_at(from, ticket, w);
    arrived a;
    a.to = {m.content[2], header_word::extra_of(m.header)};
    a.status = header_word::operation_of(m.header) == operation::status
                   ? static_cast<std::int32_t>(m.content[0])
                   : 0;
    a.value[0] = m.content[0];
    a.value[1] = m.content[1];
    for (unsigned i = 3; i < most_words * 3; ++i) a.value[i - 1] = m.content[i];
    a.start(self, level_of_messages);
  }

  /// One lane: a request which is not to change an element that there is: a task, which is started,
  /// a get, which is answered, or one that is refused.
  GROSR_DEVICE GROSR_NOINLINE static void take_other(shared* block, link_receiver* link,
                                                     std::uint64_t ticket) {
    Spawner self(simt::in_block_shared(block));
    const link_in from(*link);
    const simt::bus_word w = from.load(ticket);
    const std::uint32_t what = header_word::operation_of(w.w[3]);
    if (what >= operation::task)
      start(self, from.from(), message_at(from, ticket, w), what - operation::task, types{});
    else if (static_cast<element_operation>(what / 4) == element_operation::get)
      answer_get(self, from.from(), w);
    else
      state_of(self.get_view()).refuse(what, array_of(w), index_of(w));
  }

  /// The element of a put, an add and so on, or a get.
  GROSR_DEVICE static std::uint32_t array_of(const simt::bus_word& w) {
    return header_word::extra_of(w.w[3]) >> 8;
  }
  GROSR_DEVICE static std::uint64_t index_of(const simt::bus_word& w) {
    return std::uint64_t{header_word::extra_of(w.w[3]) & 0xff} << 32 | w.w[2];
  }

  /// One lane: a request that is a put, an add and so on. False: it is something else, or there is
  /// no such element.
  GROSR_DEVICE static bool change_element(rank_state& s, const simt::bus_word& w,
                                          known_array& known) {
    const std::uint32_t what = header_word::operation_of(w.w[3]), array = array_of(w);
    const auto o = static_cast<element_operation>(what / 4);
    if (what >= operation::value || o == element_operation::get) return false;
    if (known.number != array) {
      known.number = array;
      known.part = simt::in_global_memory(s.arrays)[array];
    }
    const array_part& part = known.part;
    const std::uint64_t index = index_of(w);
    if (index >= part.count) return false;
    unsigned char* const at = part.elements + index * part.element_bytes;
    // What fits into the cache is used as by everybody.
    if (part.exceeds_cache != 0)
      change(o, static_cast<element_kind>(what % 4), at, w, known.policy);
    else
      change(o, static_cast<element_kind>(what % 4), at, w, simt::relaxed);
    return true;
  }
  template <class How>
  GROSR_DEVICE static void change(element_operation o, element_kind kind, unsigned char* at,
                                  const simt::bus_word& w, How how) {
    constexpr auto device = simt::scope::device;
    const std::uint64_t value = std::uint64_t{w.w[1]} << 32 | w.w[0];
    switch (kind) {
      case element_kind::word32:
        return apply<device>(o, *reinterpret_cast<std::uint32_t*>(at), w.w[0], how);
      case element_kind::word64:
        return apply<device>(o, *reinterpret_cast<std::uint64_t*>(at), value, how);
      case element_kind::float32:
        return apply<device>(o, *reinterpret_cast<float*>(at), as<float>(w.w[0]), how);
      case element_kind::float64:
        return apply<device>(o, *reinterpret_cast<double*>(at), as<double>(value), how);
    }
  }

  /// One lane. A get: w0 and w1 say who waits, the index is where a change has it.
  GROSR_DEVICE static void answer_get(Spawner& self, std::uint32_t to, const simt::bus_word& w) {
    rank_state& s = state_of(self.get_view());
    const std::uint32_t array = array_of(w);
    const std::uint64_t index = index_of(w);
    const array_part part = s.arrays[array];
    const waiter who{w.w[0], w.w[1]};
    message<1> m = status_reply(who, -EINVAL);
    if (index >= part.count) {
      s.refuse(header_word::operation_of(w.w[3]), array, index);
    } else {
      unsigned char* const at = part.elements + index * part.element_bytes;
      const std::uint64_t found =
          part.element_bytes == 4
              ? simt::global_ref(*reinterpret_cast<std::uint32_t*>(at)).load(simt::relaxed)
              : simt::global_ref(*reinterpret_cast<std::uint64_t*>(at)).load(simt::relaxed);
      m.content[0] = static_cast<std::uint32_t>(found);
      m.content[1] = static_cast<std::uint32_t>(found >> 32);
      m.header = header_word::of(1, operation::value, who.place);
    }
    outbox<Spawner>::template reply<1>(self, to, m);
  }

  template <class To, class From>
  GROSR_DEVICE static To as(From v) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &v, sizeof to);
    return to;
  }

  /// One lane: the task that a message is.
  template <class... Records>
  GROSR_DEVICE static void start(Spawner& self, std::uint32_t from, const message<most_words>& m,
                                 std::uint32_t type, run::type_list<Records...>) {
    ((type == types::template index_of<Records>() ? start_one<Records>(self, from, m) : void()),
     ...);
  }
  template <class Record>
  GROSR_DEVICE static void start_one(Spawner& self, std::uint32_t from,
                                     const message<most_words>& m) {
    if constexpr (travels<Record>) {
      if constexpr (runs_where_it_comes<Record>)
        simt::shared_store(arrivals_of(self).expected, chunks_with_tasks);
      using task_type = task_of<Record>;
      run::loaded<task_type> l;
      __builtin_memcpy(static_cast<void*>(&l.task), m.content, bytes_that_travel<task_type>);
      if constexpr (is_called<task_type>) l.task.origin = from;
      const bool started = self.spawn(run::as_record(l.task), level_of_messages, run::never_inline);
      if constexpr (is_called<task_type>)
        if (!started)
          outbox<Spawner>::template reply<1>(self, from, status_reply(l.task.to, -ENOSPC));
    }
  }
};

/// A chunk that was begun so lately is not filled up yet by workers that have nothing else to do.
inline constexpr std::uint64_t settle_ns = 1000;

/// What workers ask before they rest, and while they wait (run/task.hpp, collector_of).
template <class Spawner>
struct message_service {
  using shared = typename Spawner::shared;

  /// One lane: whether something has come. Asked at each turn of a wait.
  GROSR_DEVICE static bool rung(shared* block) {
    rank_state& s = state_of(simt::in_block_shared(block).get_view());
    simt::global_ref<std::uint32_t, simt::scope::system> doorbell(s.doorbell);
    return (doorbell.load(simt::relaxed) | near_count(s)) != 0;
  }

  /// One lane: whether something has come, or a chunk waits for too long to be full.
  GROSR_DEVICE GROSR_NOINLINE static bool overdue(shared* block) {
    rank_state& s = state_of(simt::in_block_shared(block).get_view());
    if ((near_count(s) | far_count(s)) != 0) return true;
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < s.ranks * link_classes; ++i)
      if (link_out(s.out[i]).overdue(s.flush_ns)) return true;
    return false;
  }

  /// Lanes of `mask` together, in a task that goes on for long: takes in some of what has come; if
  /// there is nothing, fills up chunks. Whether there was something to do.
  GROSR_DEVICE GROSR_NOINLINE static bool progress(shared* block, std::uint32_t mask) {
    const bool took = with_mask(mask, [&](auto lanes) {
      return receiver<Spawner>::template take<link_class::request>(block, lanes, coming_tasks::run);
    });
    if (took) aggregator<Spawner>::flush_collected(block, mask);
    // What came may be tasks, and what this one waits for may be among them.
    if (simt::lane_id() == simt::lowest_bit(mask)) Spawner::publish_held(block);
    meet(mask);
    if (took) return true;
    rank_state& s = state_of(simt::in_block_shared(block).get_view());
    const std::uint32_t links = s.ranks * link_classes, lanes = simt::popcount(mask),
                        rank = simt::rank_in(mask, simt::lane_id());
    bool some = false;
    GROSR_NO_UNROLL
    for (std::uint32_t base = 0; base < links; base += lanes) {
      const std::uint32_t i = base + rank;
      const bool out = i < links && link_out(s.out[i]).overdue(settle_ns);
      std::uint32_t fill = simt::ballot(mask, out);
      GROSR_NO_UNROLL
      for (; fill != 0; fill &= fill - 1)
        some = link_out(s.out[simt::shuffle(mask, i, simt::lowest_bit(fill))]).pad(mask) || some;
    }
    meet(mask);
    return some;
  }

  /// Whole warp: has what has come taken in, and fills up chunks: all, or those that wait for too
  /// long.
  GROSR_DEVICE GROSR_NOINLINE static run::collected collect(shared* block, bool all) {
    Spawner self(simt::in_block_shared(block));
    rank_state& s = state_of(self.get_view());
    const bool flushed = aggregator<Spawner>::flush_collected(block, simt::full_mask);
    const std::uint32_t links = s.ranks * link_classes, lane = simt::lane_id();
    std::uint32_t come = 0;
    bool left = false;
    if (lane == 0) {
      simt::global_ref<std::uint32_t, simt::scope::system>(s.doorbell).store(0, simt::relaxed);
      simt::fence<simt::scope::system>(simt::seq_cst);  // the doorbell before what it is rung for
      come = near_count(s) + far_count(s);
      constexpr std::uint32_t most_tasks = 16;
      for (std::uint32_t n = come < most_tasks ? come : most_tasks; n != 0 && !left; --n)
        left = !Spawner::spawn_if_room(block, receive{}, level_of_messages);
    }
    simt::sync_warp();
    bool some = flushed || simt::shuffle(simt::full_mask, come, 0) != 0;
    GROSR_NO_UNROLL
    for (std::uint32_t base = 0; base < links; base += simt::warp_size) {
      const std::uint32_t i = base + lane;
      const bool out = i < links && link_out(s.out[i]).overdue(all ? settle_ns : s.flush_ns);
      // Others may be about to add to it: it is looked at again.
      left = left || (all && i < links && !out && link_out(s.out[i]).collects());
      std::uint32_t fill = simt::ballot(simt::full_mask, out);
      GROSR_NO_UNROLL
      for (; fill != 0; fill &= fill - 1) {
        const link_out to(s.out[base + simt::lowest_bit(fill)]);
        const bool padded = to.pad(simt::full_mask);
        some = some || padded;
        left = left || (!padded && to.collects());
      }
    }
    if (simt::any(simt::full_mask, left)) return run::collected::left;
    return some ? run::collected::taken : run::collected::nothing;
  }

 private:
  GROSR_DEVICE static std::uint32_t near_count(rank_state& s) {
    return arrivals_ref(s.arrived[0]).near_count() | arrivals_ref(s.arrived[1]).near_count();
  }
  GROSR_DEVICE static std::uint32_t far_count(rank_state& s) {
    return arrivals_ref(s.arrived[0]).far_count() + arrivals_ref(s.arrived[1]).far_count();
  }
};

/// Whole warp: counts what was sent through the links of a rank.
GROSR_DEVICE GROSR_NOINLINE inline void tell_host(const rank_state& s, rank_report& to) {
  const std::uint32_t links = s.ranks * link_classes, lane = simt::lane_id();
  std::uint64_t received = 0, sent = 0;
  GROSR_NO_UNROLL
  for (std::uint32_t i = 0; i < links; ++i) {
    const link_sender& link = s.out[i];
    if (link.stored == nullptr) continue;  // the host has those
    const std::uint32_t chunks = (1u << link.shift) / chunk_words;
    for (std::uint32_t k = lane; k < chunks; k += simt::warp_size)
      received += chunks_freed(
          simt::global_ref<std::uint64_t, simt::scope::system>(link.freed[k]).load(simt::relaxed),
          k, chunks);
  }
  GROSR_NO_UNROLL
  for (std::uint32_t i = lane; i < links; i += simt::warp_size)
    sent += simt::global_ref<std::uint64_t>(s.out[i].tail).load(simt::relaxed);
  for (unsigned by = simt::warp_size / 2; by != 0; by /= 2) {
    received += simt::shuffle(simt::full_mask, received, (lane + by) % simt::warp_size);
    sent += simt::shuffle(simt::full_mask, sent, (lane + by) % simt::warp_size);
  }
  if (lane != 0) return;
  const auto store = [](std::uint64_t& word, std::uint64_t value) {
    simt::global_ref<std::uint64_t, simt::scope::system>(word).store(value, simt::relaxed);
  };
  store(to.words_received, received * chunk_words);
  store(to.words_sent, sent);
  std::uint64_t& refused = const_cast<std::uint64_t&>(s.refused.count);
  store(to.refused, simt::global_ref<std::uint64_t>(refused).load(simt::relaxed));
}

GROSR_DEVICE void receive::operator()(auto& context) const {
  if (report != nullptr) {
    tell_host(state_of(context.spawner().get_view()), *report);
    simt::sync_warp();
  }
  using spawner_type = typename std::remove_cvref_t<decltype(context)>::spawner_type;
  // Others have their turn now and then.
  constexpr unsigned most = 32;
  auto& memory = context.spawner().memory();
  unsigned n = 0;
  bool more = true;
  GROSR_NO_UNROLL
  for (bool ends = false; more && n < most && !ends;) {
    const std::uint64_t began = simt::cycle_count();
    more = receiver<spawner_type>::template take<link_class::request>(&memory, simt::whole_warp{},
                                                                      coming_tasks::run);
    if (more) ++n;
    ends = simt::any(simt::full_mask,
                     context.aborted() || simt::cycle_count() - began > spawner_type::long_cycles);
  }
  if (n != 0) {
    aggregator<spawner_type>::flush_collected(&memory, simt::full_mask);
    context.spawner().note_pushed();
  }
  if (more && !context.aborted() && context.rank() == 0) context.spawn(receive{});
}

}  // namespace grosr::net
