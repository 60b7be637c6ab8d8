// What a task does with other ranks.
//
//   auto world = grosr::net::world_of(context);
//   world.add(counts, vertex, 1u);                // an element of an array, wherever it is
//   world.send(rank, visit{vertex});              // a task on another rank
//   world.call(rank, lookup{key}, &next.value);   // the same, for a result: in a task that joins
#pragma once

#include "grosr/net/array.hpp"
#include "grosr/net/detail/aggregation.hpp"

namespace grosr::net {

/// The ranks of a world as a task sees them. Any lane may call any member, also after lanes
/// diverged; those that call together share the cost. Nothing waits for a message to arrive: the
/// host's world.wait_all() does, and a join. Messages are in no order, and order nothing: a task
/// sees what came with it, not what its sender wrote before. While there is no room for a message,
/// its lanes receive others; for a while, then it becomes a task and takes task memory as
/// context.spawn() does.
template <class Context>
class endpoint {
 public:
  using spawner_type = typename Context::spawner_type;

  GROSR_DEVICE explicit endpoint(Context& c)
      : c_(c),
        s_(state_of(spawner().get_view())),
        arrays_(simt::in_global_memory(s_.arrays)),
        rank_(s_.rank),
        ranks_(s_.ranks),
        reaches_(s_.reaches),
        out_{s_.buffer_words != 0, runs_where_it_came(), false} {}
  /// What it throws is what lanes of the host backend are ended with.
  GROSR_DEVICE ~endpoint() noexcept(false) {
    if (!runs_where_it_came()) {
      if (out_.some) flush();
    } else if (out_.collected) {  // who runs the task sees to it
      simt::shared_store(arrivals_of(c_.spawner()).collected, 1);
      c_.spawner().note_pushed();
    }
  }

  /// This rank, and how many there are.
  GROSR_DEVICE std::uint32_t rank() const { return rank_; }
  GROSR_DEVICE std::uint32_t size() const { return ranks_; }

  /// Starts a task of any of the world's types on a rank, at priority normal. It has at most 48
  /// bytes.
  template <class Task>
  GROSR_DEVICE void send(std::uint32_t to, const Task& task) const {
    using record = run::record_of<Task>;
    static_assert(sizeof(Task) <= most_content,
                  "grosr: a task that is sent has at most 48 bytes: put more into an array, and "
                  "send where it lies");
    constexpr std::uint32_t type = spawner_type::types::template index_of<record>();
    const bool here = to == rank_;
    simt::stay_together([&] {
      if (here) c_.spawn(task);
    });
    const bool away = !here && is_rank(operation::task, to);
    post(away, to, carry<words_for(sizeof(Task))>(task, sizeof(Task), type));
  }

  /// In a task that joins: starts a task of the world's types, named there as callable<Task>, on a
  /// rank; its result goes to `slot`, a member of what join() returned, and an error of it
  /// (-EINVAL if there is no such rank) to the continuation's status.
  template <class Task, class Slot>
  GROSR_DEVICE void call(std::uint32_t to, const Task& task, Slot* slot) const {
    static_assert(std::is_same_v<typename Task::result, Slot>,
                  "grosr: the slot of a call has the type of the task's result");
    static_assert(sizeof(Slot) <= most_result, "grosr: a call brings a result of at most 44 bytes");
    if (to == rank_) return c_.fork(task, slot);
    send_call(to, task, c_.expect(slot), sizeof(Slot));
  }
  /// The same for a task that brings nothing but that it has ended.
  template <class Task>
  GROSR_DEVICE void call(std::uint32_t to, const Task& task) const {
    static_assert(std::is_void_v<typename Task::result>,
                  "grosr: a call of a task that brings a result has a slot for it");
    if (to == rank_) return c_.fork(task);
    send_call(to, task, c_.expect(), 0);
  }

  /// Changes element `index` of an array: stores a value, or combines it with what is there,
  /// atomically; min, max, bit_and and bit_or for unsigned numbers.
  template <class T>
  GROSR_DEVICE void put(array_ref<T> a, std::uint64_t index, std::type_identity_t<T> v) const {
    change(element_operation::put, a, index, v);
  }
  template <class T>
  GROSR_DEVICE void add(array_ref<T> a, std::uint64_t index, std::type_identity_t<T> v) const {
    change(element_operation::add, a, index, v);
  }
  template <class T>
  GROSR_DEVICE void min(array_ref<T> a, std::uint64_t index, std::type_identity_t<T> v) const {
    change_unsigned(element_operation::min, a, index, v);
  }
  template <class T>
  GROSR_DEVICE void max(array_ref<T> a, std::uint64_t index, std::type_identity_t<T> v) const {
    change_unsigned(element_operation::max, a, index, v);
  }
  template <class T>
  GROSR_DEVICE void bit_and(array_ref<T> a, std::uint64_t index, std::type_identity_t<T> v) const {
    change_unsigned(element_operation::bit_and, a, index, v);
  }
  template <class T>
  GROSR_DEVICE void bit_or(array_ref<T> a, std::uint64_t index, std::type_identity_t<T> v) const {
    change_unsigned(element_operation::bit_or, a, index, v);
  }

  /// In a task that joins: the value of an element goes to `slot`, a member of what join()
  /// returned.
  template <class T>
  GROSR_DEVICE void get(array_ref<T> a, std::uint64_t index, T* slot) const {
    constexpr std::uint32_t what = operation::of(element_operation::get, kind_of_element<T>());
    const place p = a.find(index);
    const bool there = is_element(what, a, index);
    if (there)
      if (const array_part* part = reach(p.rank, a.number())) {
        if (T* element = element_of<T>(*part, p, what, a, index)) {
          *slot = simt::global_ref<T, simt::scope::system>(*element).load(simt::relaxed);
          return;
        }
        return fail(c_.expect(slot));
      }
    const run::destination to = c_.expect(slot);
    if (!to) return;
    if (!there) return fail(to);
    const message<1> m{
        {to.where(), place_word(to, sizeof(T)), static_cast<std::uint32_t>(p.offset)},
        header_word::of(1, what, extra(a.number(), p.offset))};
    post(true, p.rank, m);
  }

  /// This rank's part of an array: its first element, of a.size_of(rank()).
  template <class T>
  GROSR_DEVICE T* local(array_ref<T> a) const {
    return a.number() < most_arrays ? reinterpret_cast<T*>(arrays_[a.number()].elements) : nullptr;
  }

  /// What this lane has sent so far is on its way. The endpoint's end does that, too: a task that
  /// goes on for long after it sent something, or waits for what comes of it, asks for it.
  GROSR_DEVICE void flush() const {
    std::uint32_t& by_others = arrivals_of(c_.spawner()).collected;
    if (!out_.collected && simt::shared_load(by_others) == 0) return;
    out_.collected = false;
    simt::shared_store(by_others, 0);
    aggregator<spawner_type>::flush(&c_.spawner().memory(), simt::active_mask());
  }

  /// For tasks that go on for long, now and then: what idle workers do. Some of what has come to
  /// this rank is received, and what has been sent leaves. Whether there was something to do.
  GROSR_DEVICE bool progress() const {
    flush();
    return message_service<spawner_type>::progress(&c_.spawner().memory(), simt::active_mask());
  }

  /// For libraries: a rank's part of an array if this rank reaches its memory itself. Both exist.
  GROSR_DEVICE const array_part* reach(std::uint32_t rank, std::uint32_t array) const {
    if (rank == rank_) return arrays_ + array;
    if (reaches_ == 0) return nullptr;
    const rank_state* other = s_.request_to(rank).direct;
    return other != nullptr ? &other->arrays[array] : nullptr;
  }
  /// For libraries: wait_all() is to say that something was refused.
  GROSR_DEVICE void refuse(std::uint32_t operation, std::uint32_t array,
                           std::uint64_t index) const {
    s_.refuse(operation, array, index);
  }

 private:
  template <class T>
  GROSR_DEVICE void change_unsigned(element_operation o, array_ref<T> a, std::uint64_t index,
                                    T v) const {
    static_assert(std::is_unsigned_v<T>,
                  "grosr: min, max, bit_and and bit_or are for arrays of unsigned numbers");
    change(o, a, index, v);
  }

  template <class T>
  GROSR_DEVICE void change(element_operation o, array_ref<T> a, std::uint64_t index, T v) const {
    const std::uint32_t what = operation::of(o, kind_of_element<T>());
    const bool there = is_element(what, a, index);
    const place p = a.find(index);
    bool away = false;
    if (there) {
      const array_part* part = reach(p.rank, a.number());
      away = part == nullptr;
      if (part != nullptr)
        if (T* element = element_of<T>(*part, p, what, a, index))
          apply<simt::scope::system>(o, *element, v, simt::relaxed);
    }
    message<1> m{{0, 0, static_cast<std::uint32_t>(p.offset)},
                 header_word::of(1, what, extra(a.number(), p.offset))};
    __builtin_memcpy(m.content, &v, sizeof(T));
    post(away, p.rank, m);
  }

  template <class T>
  GROSR_DEVICE T* element_of(const array_part& part, place p, std::uint32_t what, array_ref<T> a,
                             std::uint64_t index) const {
    if (p.offset < part.count) [[likely]]
      return reinterpret_cast<T*>(part.elements) + p.offset;
    s_.refuse(what, a.number(), index);
    return nullptr;
  }

  /// What was expected does not come: an error instead.
  GROSR_DEVICE void fail(run::destination slot) const {
    if (slot)
      arrived{{slot.where(), slot.offset()}, -EINVAL, {}}.start(c_.spawner(), level_of_messages);
  }

  GROSR_DEVICE static std::uint32_t extra(std::uint32_t array, std::uint64_t offset) {
    return array << 8 | static_cast<std::uint32_t>(offset >> 32);
  }
  GROSR_DEVICE static std::uint32_t place_word(run::destination to, std::size_t bytes) {
    return to.offset() | static_cast<std::uint32_t>(bytes) << 8;
  }

  /// The context's, which does not know that the block's memory is that.
  GROSR_DEVICE spawner_type spawner() const {
    return spawner_type(simt::in_block_shared(&c_.spawner().memory()));
  }
  GROSR_DEVICE bool runs_where_it_came() const { return c_.depth() == run::never_inline; }

  GROSR_DEVICE bool is_rank(std::uint32_t what, std::uint32_t to) const {
    if (to < ranks_) [[likely]]
      return true;
    s_.refuse(what | refused_rank, 0, to);
    return false;
  }
  template <class T>
  GROSR_DEVICE bool is_element(std::uint32_t what, array_ref<T> a, std::uint64_t index) const {
    if (index < a.size()) [[likely]]
      return true;
    s_.refuse(what, a.number(), index);
    return false;
  }

  /// The message that a task is.
  template <unsigned Words, class Task>
  GROSR_DEVICE static message<Words> carry(const Task& task, std::size_t bytes,
                                           std::uint32_t type) {
    message<Words> m{};
    __builtin_memcpy(m.content, &task, bytes);
    m.header = header_word::of(Words, operation::task + type, 0);
    return m;
  }

  template <class Task>
  GROSR_DEVICE void send_call(std::uint32_t to, const Task& task, run::destination slot,
                              std::size_t bytes) const {
    using record = run::record_of<called<Task>>;
    static_assert(bytes_that_travel<called<Task>> <= most_content,
                  "grosr: a task that is called has at most 40 bytes");
    if (!slot) return;
    if (!is_rank(operation::task, to)) return fail(slot);
    constexpr std::uint32_t type = spawner_type::types::template index_of<record>();
    constexpr std::size_t all = bytes_that_travel<called<Task>>;
    post(true, to,
         carry<words_for(all)>(called<Task>{{slot.where(), place_word(slot, bytes)}, task, 0}, all,
                               type));
  }

  /// Lanes that are together, those with `wants`: hand a request over.
  template <unsigned Words>
  GROSR_DEVICE void post(bool wants, std::uint32_t to, const message<Words>& m) const {
    const std::uint32_t mask = simt::own_or_active_mask_by(Words, true);
    if (!simt::any(mask, wants)) return;
    with_mask(mask, [&](auto lanes) {
      out_ = aggregator<spawner_type>::template post<Words>(spawner(), lanes, out_, wants, to, m);
    });
    meet(mask);
  }

  Context& c_;
  rank_state& s_;
  // Of it.
  const array_part* arrays_;
  std::uint32_t rank_, ranks_, reaches_;
  mutable sent_so_far out_;
};

/// The world of the task that asks: it runs on a rank of one.
template <class Context>
GROSR_DEVICE endpoint<Context> world_of(Context& context) {
  return endpoint<Context>(context);
}

}  // namespace grosr::net
