// The tasks of a rank that users do not name, and how a message goes out.
#pragma once

#include <cerrno>

#include "grosr/net/detail/rank_state.hpp"
#include "grosr/run/join.hpp"

namespace grosr::net {

template <class Spawner>
struct message_service;
template <class Spawner>
struct receiver;
template <class Spawner>
class aggregator;

/// A warp's messages for each rank that have not left yet. Block-shared.
struct warp_buffers {
  std::uint32_t lock;                      ///< of lanes of this warp
  std::uint32_t tight;                     ///< bit r: there was little room for rank r lately
  std::uint32_t counts[most_buffers];      ///< words for a rank
  simt::bus_word words[words_of_buffers];  ///< rank_state::buffer_words for rank 0, and so on
};
/// Tasks of a chunk, which run where they came. Block-shared.
struct warp_arrivals {
  std::uint32_t lock;       ///< of lanes of this warp; also while tasks run
  std::uint32_t expected;   ///< so many chunks are thought to have some
  std::uint32_t collected;  ///< 1: what such tasks sent may be in the warp's buffers
  std::uint32_t count;
  // Of task i: its first word among those of the chunk, and how many words it has and its type.
  std::uint8_t first[chunk_words], what[chunk_words];
  std::uint32_t content[3 * (chunk_words + most_words - 1)];
};
/// After a task came that may run where it comes.
inline constexpr std::uint32_t chunks_with_tasks = 8;
struct block_buffers {
  warp_buffers warps[run::warps_per_block];
  warp_arrivals arrivals[run::warps_per_block];
};
/// Takes in what has come, until there is nothing more. Before that it tells the host how much was
/// sent and received, if that asks.
struct receive {
  static constexpr grosr::width width = grosr::width::warp;
  static constexpr bool runs_long = true;
  using block_memory = block_buffers;
  template <class Spawner>
  using collector = message_service<Spawner>;
  rank_report* report = nullptr;
  GROSR_DEVICE void operator()(auto& context) const;
};

/// A message that found no room, and is tried again.
struct deferred {
  message<most_words> what;
  std::uint32_t to;
  link_class by;
  GROSR_DEVICE void operator()(auto& context) const;
};
static_assert(sizeof(deferred) <= run::max_task_bytes);

/// Where the result of a call goes, in the rank that calls: a frame; a byte in it (0-7), and how
/// many bytes there are (8-15).
struct waiter {
  std::uint32_t frame, place;
  GROSR_DEVICE run::destination slot() const {
    return run::destination::in_frame(frame, place & 0xff);
  }
  GROSR_DEVICE std::uint32_t bytes() const { return place >> 8; }
};

/// A reply: brings a value, or an error, to a slot of a frame, which waits for it as for a task
/// that was forked.
struct arrived {
  static constexpr bool delivers = true;
  waiter to;
  std::int32_t status;
  std::uint32_t value[11];

  /// The frame whose continuation is to run now, or none.
  GROSR_DEVICE std::uint32_t deliver(auto& spawner) const {
    if (status == 0) __builtin_memcpy(spawner.value_of(to.slot()), value, to.bytes());
    const std::uint32_t frame = spawner.deliver(to.slot(), status);
    spawner.end_of_completion();
    return frame;
  }
  GROSR_DEVICE void operator()(auto& context) const {
    context.set_end({deliver(context.spawner())});
  }
  /// One lane or many, in any task: has it delivered, by a task if there is room for one.
  template <class Spawner>
  GROSR_DEVICE void start(Spawner& spawner, std::uint32_t level) const {
    if (spawner.try_spawn(*this, level)) return;
    const std::uint32_t frame = deliver(spawner);
    if (frame != Spawner::no_frame) spawner.defer_ready(frame);
  }
};
static_assert(sizeof(arrived) <= run::max_task_bytes);

template <class R>
inline constexpr std::uint32_t result_bytes = sizeof(R);
template <>
inline constexpr std::uint32_t result_bytes<void> = 0;
/// Bytes of a result that a reply brings.
inline constexpr std::uint32_t most_result = most_content - 4;

/// A call that has come: forks the task, whose result answer sends back.
template <class Task>
struct called {
  static_assert(alignof(Task) <= 8, "grosr: a task that is called is aligned to at most 8 bytes");
  using result = void;
  using shown_as = Task;
  waiter to;
  Task task;
  std::uint32_t origin;  ///< the rank that called; the receiver fills it in
  GROSR_DEVICE void operator()(auto& context) const;
};
template <class T>
inline constexpr bool is_called = false;
template <class T>
inline constexpr bool is_called<called<T>> = true;

/// Sends a result back.
template <class Task>
struct answer {
  using result = void;
  using shown_as = Task;
  waiter to;
  std::uint32_t origin;
  std::conditional_t<std::is_void_v<typename Task::result>, std::uint32_t, typename Task::result>
      value;
  GROSR_DEVICE void operator()(auto& context) const;
};
template <class T>
inline constexpr bool is_answer = false;
template <class T>
inline constexpr bool is_answer<answer<T>> = true;

namespace detail {
template <class Record>
struct task_of {
  using type = Record;
};
template <class T>
struct task_of<run::forked<T>> {
  using type = T;
};
}  // namespace detail
/// The task of a record.
template <class Record>
using task_of = typename detail::task_of<Record>::type;

/// Bytes of a task that travel: of a call not who made it, which the receiver knows.
template <class Task>
inline constexpr std::size_t bytes_that_travel = sizeof(Task);
template <class T>
inline constexpr std::size_t bytes_that_travel<called<T>> = sizeof(waiter) + sizeof(T);

/// Whether a task may be a message.
template <class Record>
inline constexpr bool travels =
    !std::is_same_v<Record, receive> && !std::is_same_v<Record, deferred> &&
    !std::is_same_v<Record, arrived> && !is_answer<task_of<Record>> && !run::completes<Record> &&
    bytes_that_travel<task_of<Record>> <= most_content;

/// The level at which tasks that came as messages run, and that at which messages wait for room.
inline constexpr auto level_of_messages = static_cast<std::uint32_t>(priority::normal);
inline constexpr auto level_of_deferred = static_cast<std::uint32_t>(priority::low);

/// This warp's.
GROSR_DEVICE warp_arrivals& arrivals_of(auto& spawner) {
  return spawner.memory().of_tasks.arrivals[simt::warp_id()];
}

/// Whether a receiver runs a task itself, where it may, and does not start it.
template <class Record>
inline constexpr bool runs_where_it_comes = travels<Record>&& run::width_of<Record>() == width::lane
                                            && !run::is_forked<Record> && !run::delivers<Record> &&
                                            !is_called<Record> && !run::runs_long<Record>;
/// What lanes that receive may do with tasks that come.
enum class coming_tasks : std::uint8_t {
  start,  ///< start them
  run,    ///< run those of a lane: the lanes have no tickets for which there is no room. What these
          ///< send may stay in the warp's buffers
};

/// Sends messages. Spawner: of the runtime of the rank.
template <class Spawner>
struct outbox {
  using shared = typename Spawner::shared;

  enum class sent : std::uint8_t { no, yes, filled_chunk };

  /// Lanes of `mask` together, those with `wants`: hand a message of Words words over, where there
  /// is room for those to the same rank.
  template <link_class By, unsigned Words>
  GROSR_DEVICE static sent try_send(Spawner& self, std::uint32_t mask, bool wants, std::uint32_t to,
                                    const message<Words>& m) {
    rank_state& s = state_of(self.get_view());
    // All lanes make each step together: a collective of a group alone would split the warp.
    const std::uint32_t group = simt::match_any(mask, wants ? to : ~0u);
    const unsigned leader = simt::lowest_bit(group), lane = simt::lane_id();
    const std::uint32_t n = simt::popcount(group) * Words;
    const link_out link = s.to(By, wants ? to : s.rank);
    std::uint64_t first = no_ticket;
    bool fits = true;
    bool tight = true;
    if (wants && lane == leader) first = link.claim(n, fits, tight);
    first = simt::shuffle(mask, first, leader);
    const bool went = wants && first != no_ticket;
    const bool now = simt::shuffle(mask, fits ? 1u : 0u, leader) != 0 && went;
    bool filled = store(link, mask, group, now, first, m);
    if (simt::any(mask, went != now)) [[unlikely]]
      filled = store_when_there_is_room<By, Words>(&self.memory(), mask, group, went && !now, fits,
                                                   wants ? to : s.rank, first, m) ||
               filled;
    meet(mask);
    return filled ? sent::filled_chunk : went ? sent::yes : sent::no;
  }

  /// Lanes of `mask` together, in a task: those with `wants` send a request of Words words to a
  /// rank. Those who fill a chunk take one in, if one has come, so that ranks which send to each
  /// other receive as much. While there is no room they receive; where there is nothing to receive
  /// either, the message becomes a task.
  template <unsigned Words>
  GROSR_DEVICE GROSR_NOINLINE static void send(shared* block, std::uint32_t mask, bool wants,
                                               std::uint32_t to, message<Words> m) {
    Spawner self(simt::in_block_shared(block));
    self.note_pushed();
    const sent went = try_send<link_class::request>(self, mask, wants, to, m);
    if (simt::any(mask, wants ? went != sent::yes : false)) [[unlikely]]
      finish_send<Words>(&self.memory(), mask, !wants || went != sent::no, to, m);
  }

  /// Lanes of `mask` together, in a task: the same, if there is room now. Whether it went.
  template <unsigned Words>
  GROSR_DEVICE GROSR_NOINLINE static bool send_if_room(shared* block, std::uint32_t mask,
                                                       bool wants, std::uint32_t to,
                                                       message<Words> m) {
    Spawner self(simt::in_block_shared(block));
    self.note_pushed();
    const sent went = try_send<link_class::request>(self, mask, wants, to, m);
    if (simt::any(mask, went == sent::filled_chunk)) [[unlikely]]
      receiver<Spawner>::template take<link_class::request>(&self.memory(), mask,
                                                            coming_tasks::run);
    return went != sent::no;
  }

  /// Any lanes, also while they receive: a reply of Words words goes to a rank, at once or as a
  /// task.
  template <unsigned Words>
  GROSR_DEVICE static void reply(Spawner& self, std::uint32_t to, const message<Words>& m) {
    self.note_pushed();
    const std::uint32_t mask = simt::own_or_active_mask_by(Words, true);
    if (try_send<link_class::reply>(self, mask, true, to, m) == sent::no)
      defer<link_class::reply>(&self.memory(), to, m);
  }

  /// Lanes of `mask` together, those with `wants` with a message that was put off: whether it went
  /// now.
  template <link_class By>
  GROSR_DEVICE static bool try_again(Spawner& self, std::uint32_t mask, bool wants,
                                     const deferred& d) {
    const unsigned words = header_word::words_of(d.what.header);
    bool went = false;
    const auto attempt = [&]<unsigned Words>() {
      message<Words> m;
      for (unsigned i = 0; i < Words * 3; ++i) m.content[i] = d.what.content[i];
      m.header = d.what.header;
      const sent how = try_send<By>(self, mask, wants && words == Words, d.to, m);
      went = went || how != sent::no;
    };
    attempt.template operator()<1>();
    attempt.template operator()<2>();
    attempt.template operator()<3>();
    attempt.template operator()<4>();
    return went;
  }

 private:
  friend class aggregator<Spawner>;
  friend struct deferred;
  /// Lanes of `mask` together: groups all of whose lanes have `now` store their messages at their
  /// tickets. Whether that filled a chunk.
  template <unsigned Words>
  GROSR_DEVICE static bool store(const link_out& link, std::uint32_t mask, std::uint32_t group,
                                 bool now, std::uint64_t first, const message<Words>& m) {
    if (now) {
      const std::uint64_t mine = first + simt::rank_in(group, simt::lane_id()) * Words;
      for (unsigned i = 0; i < Words; ++i)
        link.store(mine + i, m.content + 3 * i, i == 0 ? m.header | first_bit : 0u);
    }
    simt::sync_warp(mask);  // a group's words before it counts them
    bool filled = false;
    if (now && simt::lane_id() == simt::lowest_bit(group))
      filled = link.count_stored(first, simt::popcount(group) * Words);
    return filled;
  }

  /// Lanes of `mask` together; those with `waits` have tickets for which there was no room yet:
  /// they receive, and each group stores as soon as there is, for others may wait for its words.
  /// What has tickets before it has room before it, and receivers wait for nothing: so there will
  /// be room. Where the rank is aborted the messages are dropped: their places are not theirs yet.
  template <link_class By, unsigned Words>
  GROSR_DEVICE GROSR_NOINLINE static bool store_when_there_is_room(
      shared* block, std::uint32_t mask, std::uint32_t group, bool waits, bool fits,
      std::uint32_t to, std::uint64_t first, message<Words> m) {
    Spawner self(simt::in_block_shared(block));
    const link_out link = state_of(self.get_view()).to(By, to);
    const unsigned leader = simt::lowest_bit(group);
    const std::uint64_t end = first + simt::popcount(group) * Words;
    bool filled = false;
    unsigned idle = 0;
    GROSR_NO_UNROLL
    for (;;) {
      if (simt::any(mask, self.aborted())) return filled;
      if (waits && simt::lane_id() == leader) fits = link.has_room(end);
      const bool now = simt::shuffle(mask, fits ? 1u : 0u, leader) != 0 && waits;
      filled = store(link, mask, group, now, first, m) || filled;
      waits = waits && !now;
      if (!simt::any(mask, waits)) return filled;
      // Where something came, too: others of the warp may be who makes room.
      if (receiver<Spawner>::template take<By>(block, mask, coming_tasks::start)) idle = 0;
      simt::pause(idle < 3 ? idle++ : idle, "room for a message that is under way");
    }
  }

  template <unsigned Words>
  GROSR_DEVICE GROSR_NOINLINE static void finish_send(shared* block, std::uint32_t mask, bool went,
                                                      std::uint32_t to, message<Words> m) {
    Spawner self(simt::in_block_shared(block));
    constexpr unsigned attempts = 256;
    unsigned idle = 0;
    GROSR_NO_UNROLL
    for (;;) {
      const bool took =
          receiver<Spawner>::template take<link_class::request>(block, mask, coming_tasks::run);
      if (simt::all(mask, went)) return meet(mask);
      idle = took ? 0 : idle + 1;
      const bool aborted = simt::any(mask, self.aborted());
      if (idle == attempts || aborted) break;
      simt::pause(idle, "room for a message");
      went = try_send<link_class::request>(self, mask, !went, to, m) != sent::no || went;
    }
    if (!went) defer<link_class::request>(block, to, m);
  }

  /// A message becomes a task. One for which there is no place anywhere fails the call that it was
  /// of; if it is of none, wait_all() says so; a reply waits.
  template <link_class By, unsigned Words>
  GROSR_DEVICE GROSR_NOINLINE static void defer(shared* block, std::uint32_t to, message<Words> m) {
    Spawner self(simt::in_block_shared(block));
    rank_state& s = state_of(self.get_view());
    simt::global_ref<std::uint64_t>(s.deferred).store_add(1, simt::relaxed);
    deferred task{{}, to, By};
    for (unsigned i = 0; i < Words * 3; ++i) task.what.content[i] = m.content[i];
    task.what.header = m.header;
    put_off<By>(block, task);
  }

  /// One lane: a message for which there is no room waits as a task. If there is no place for that
  /// either, a reply waits here, and is not lost.
  template <link_class By>
  GROSR_DEVICE GROSR_NOINLINE static void put_off(shared* block, deferred d) {
    Spawner self(simt::in_block_shared(block));
    if constexpr (By == link_class::request) {
      if (!self.spawn(d, level_of_deferred, run::never_inline))
        fail_call(self, d.what.header, d.what.content[0], d.what.content[1]);
    } else {
      if (Spawner::spawn_if_room(block, d, level_of_deferred)) return;
      const std::uint32_t mine = 1u << simt::lane_id();
      GROSR_NO_UNROLL
      while (!try_again<By>(self, mine, true, d) && !self.aborted())
        // Only replies: they need no room themselves.
        if (!receiver<Spawner>::template take<link_class::reply>(block, mine, coming_tasks::start))
          simt::pause(2, "room for a reply");
    }
  }

  /// One lane: a request that cannot be sent was a call, perhaps.
  GROSR_DEVICE static void fail_call(Spawner& self, std::uint32_t header, std::uint32_t frame,
                                     std::uint32_t place) {
    const std::uint32_t what = header_word::operation_of(header);
    if (what / 4 == static_cast<std::uint32_t>(element_operation::get) ||
        (what >= operation::task && is_call(what - operation::task, typename Spawner::types{})))
      arrived{{frame, place}, -ENOSPC, {}}.start(self, level_of_messages);
  }
  template <class... Records>
  GROSR_DEVICE static bool is_call(std::uint32_t type, run::type_list<Records...>) {
    std::uint32_t i = 0;
    return ((i++ == type && is_called<task_of<Records>>) || ...);
  }
};

GROSR_DEVICE void deferred::operator()(auto& context) const {
  using spawner_type = typename std::remove_cvref_t<decltype(context)>::spawner_type;
  auto& self = context.spawner();
  const std::uint32_t mask = simt::active_mask();
  self.note_pushed();
  using out = outbox<spawner_type>;
  constexpr link_class request = link_class::request, reply = link_class::reply;
  bool went = out::template try_again<request>(self, mask, by == request, *this);
  const bool replied = out::template try_again<reply>(self, mask, by == reply, *this);
  went = went || replied;
  if (simt::all(mask, went)) return;
  if (receiver<spawner_type>::template take<request>(&self.memory(), mask, coming_tasks::run))
    aggregator<spawner_type>::flush_collected(&self.memory(), mask);
  else
    simt::pause(2, "room for a message");
  if (went) return;
  if (by == request)
    out::template put_off<request>(&self.memory(), *this);
  else
    out::template put_off<reply>(&self.memory(), *this);
}

/// A reply without a value.
GROSR_DEVICE inline message<1> status_reply(waiter to, std::int32_t status) {
  return {{static_cast<std::uint32_t>(status), 0, to.frame},
          header_word::of(1, operation::status, to.place)};
}

template <class Task>
GROSR_DEVICE void called<Task>::operator()(auto& context) const {
  using spawner_type = typename std::remove_cvref_t<decltype(context)>::spawner_type;
  auto& next = context.join(answer<Task>{to, origin, {}});
  if (!context.joined())  // no room for a continuation
    return outbox<spawner_type>::template reply<1>(context.spawner(), origin,
                                                   status_reply(to, -ENOMEM));
  if constexpr (std::is_void_v<typename Task::result>)
    context.fork(task);
  else
    context.fork(task, &next.value);
}

template <class Task>
GROSR_DEVICE void answer<Task>::operator()(auto& context) const {
  using spawner_type = typename std::remove_cvref_t<decltype(context)>::spawner_type;
  constexpr std::uint32_t bytes = result_bytes<typename Task::result>;
  constexpr unsigned words = bytes <= 8 ? 1 : words_for(bytes + 4);
  if (context.status() != 0)
    return outbox<spawner_type>::template reply<1>(context.spawner(), origin,
                                                   status_reply(to, context.status()));
  // The first 8 bytes before the slot's name, the rest behind it.
  message<words> m{};
  m.content[2] = to.frame;
  __builtin_memcpy(m.content, &value, bytes < 8 ? bytes : 8);
  if constexpr (bytes > 8)
    __builtin_memcpy(m.content + 3, reinterpret_cast<const unsigned char*>(&value) + 8, bytes - 8);
  m.header = header_word::of(words, operation::value, to.place);
  outbox<spawner_type>::template reply<words>(context.spawner(), origin, m);
}

}  // namespace grosr::net
