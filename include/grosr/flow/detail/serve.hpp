// How the scheduler serves channels: the tasks that run a graph's functions, what producers do when
// they made a batch full, and what workers do with batches that are not.
#pragma once

#include "grosr/flow/batch.hpp"
#include "grosr/flow/channel.hpp"
#include "grosr/run/context.hpp"

namespace grosr::flow {

/// A function of a graph, and what it serves. Device memory.
template <class Node>
struct node_state {
  Node function;
  queue::batch_buffer_ref<typename Node::element> input;
};

/// `in`: an element, or a batch of them.
template <class Node, class Input, class Context>
GROSR_DEVICE int call_node(const Node& f, const Input& in, Context& c) {
  if constexpr (!requires { f(in, c); }) {
    static_assert(batch_of<Node>() != 0 || run::always_false<Node>,
                  "grosr: a function of a graph needs GROSR_DEVICE void (or int) "
                  "operator()(const element&, auto& context) const");
    static_assert(batch_of<Node>() == 0 || run::always_false<Node>,
                  "grosr: a function that takes batches needs GROSR_DEVICE void (or int) "
                  "operator()(const grosr::batch<element>&, auto& context) const");
    return 0;
  } else if constexpr (std::is_void_v<decltype(f(in, c))>) {
    simt::call(f, in, c);
    return 0;
  } else {
    static_assert(std::is_same_v<decltype(f(in, c)), int>,
                  "grosr: a function of a graph returns void, or int: 0 or a negative errno");
    return simt::call(f, in, c);
  }
}

/// Scratch of the warps that run a task together.
GROSR_DEVICE inline scratch scratch_of(auto& context) {
  auto& warps = context.spawner().memory().warps;
  constexpr auto apart = static_cast<std::uint32_t>(sizeof(warps[0]));
  if (context.size() == simt::warp_size) return {warps[simt::warp_id()].stage, apart, 1};
  return {warps[0].stage, apart, run::warps_per_block};
}

/// The task that serves one element: of the host, or one that found no room.
template <class Node>
struct serve_one {
  using node = Node;
  using shown_as = Node;
  static constexpr grosr::width width = run::width_of<Node>();
  static constexpr bool uses_stage = batch_of<Node>() != 0;
  const node_state<Node>* self;
  typename Node::element value;

  GROSR_DEVICE int operator()(auto& context) const {
    const Node f = self->function;
    if constexpr (batch_of<Node>() == 0)
      return call_node(f, value, context);
    else
      return call_node(f, batch<typename Node::element>(&value, scratch_of(context)), context);
  }
};

/// The task that serves a batch of a channel: whichever is next. Elements are copied, and their
/// places are free, before the function runs; of one that takes batches, when it has returned.
template <class Node>
struct serve {
  using node = Node;
  using shown_as = Node;
  using element = typename Node::element;
  static constexpr grosr::width width =
      run::width_of<Node>() == grosr::width::block ? grosr::width::block : grosr::width::warp;
  static constexpr bool uses_stage = run::width_of<Node>() != grosr::width::lane;
  /// What this function's workers ask before they rest.
  template <class Spawner>
  using collector = channel_service<Spawner>;
  const node_state<Node>* self;

  GROSR_DEVICE void operator()(auto& context) const {
    if constexpr (run::width_of<Node>() == grosr::width::lane)
      by_lanes(context);
    else if constexpr (batch_of<Node>() != 0)
      as_batch(context);
    else
      one_by_one(context);
  }

 private:
  GROSR_DEVICE void by_lanes(auto& context) const {
    using context_type = std::remove_cvref_t<decltype(context)>;
    const auto channel = self->input;
    const Node f = self->function;
    const unsigned lane = simt::lane_id();
    std::uint64_t first = lane == 0 ? channel.deq() : 0;
    first = simt::shuffle(simt::full_mask, first, 0);
    const std::uint32_t place =
        lane < channel.state().batch ? channel.take(first + lane) : queue::padding;
    const std::uint32_t some = simt::ballot(simt::full_mask, place != queue::padding);
    if (place == queue::padding) return;
    context_type c(context.spawner(), grosr::width::lane,
                   static_cast<std::uint32_t>(context.level()), 0);
    const element e = channel.load(place);
    channel.tfree(some, place);
    const int status = call_node(f, e, c);
    if (status != 0) context.spawner().note_failure(serve_one<Node>{self, e}, status);
  }

  /// The elements stay in their places until the function returns.
  GROSR_DEVICE void as_batch(auto& context) const {
    const auto channel = self->input;
    const Node f = self->function;
    const std::uint32_t most = channel.state().batch;
    const scratch s = scratch_of(context);
    const std::uint64_t first = to_all(context, [&] { return channel.deq(); });
    std::uint32_t mine = 0;
    GROSR_NO_UNROLL
    for (std::uint32_t i = context.rank(); i < most; i += context.size()) {
      const std::uint32_t place = channel.take(first + i);
      s.place(i) = place;
      if (place != queue::padding) ++mine;  // there is none after padding
    }
    const std::uint32_t size = sum(context, mine);
    const batch<element> elements(channel, s, size);
    const int status = call_node(f, elements, context);
    note_failure(context, status, [&] { return elements[0]; });
    context.sync();
    GROSR_NO_UNROLL
    for (std::uint32_t base = 0; base < size; base += context.size()) {
      const std::uint32_t i = base + context.rank();
      const std::uint32_t some = simt::ballot(simt::full_mask, i < size);
      if (i < size) channel.tfree(some, s.place(i));
    }
    context.sync();
  }

  GROSR_DEVICE void one_by_one(auto& context) const {
    const auto channel = self->input;
    const Node f = self->function;
    const std::uint32_t batch = channel.state().batch;
    const scratch s = scratch_of(context);
    const std::uint64_t first = to_all(context, [&] { return channel.deq(); });
    // All of them before the function runs: it may push here, and others wait for these cells.
    if (context.rank() < batch) s.place(context.rank()) = channel.take(first + context.rank());
    context.sync();
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < batch; ++i) {
      const std::uint32_t place = s.place(i);
      if (place == queue::padding) break;  // and so are the rest
      const element e = channel.load(place);
      context.sync();
      if (context.rank() == 0) channel.tfree(1u << simt::lane_id(), place);
      const int status = call_node(f, e, context);
      note_failure(context, status, [&] { return e; });
      context.sync();
    }
  }

  /// All that run this together: what any of them returned is a failure, once.
  template <class Element>
  GROSR_DEVICE void note_failure(auto& context, int status, Element&& element) const {
    const std::uint32_t bad = simt::ballot(simt::full_mask, status != 0);
    bool mine = bad != 0 && simt::lane_id() == simt::lowest_bit(bad);
    if constexpr (width == grosr::width::block) {
      auto& word = context.spawner().memory().served;
      context.sync();
      if (context.rank() == 0) word = 0;
      context.sync();
      using first = simt::atomic_ref<std::uint64_t, simt::scope::block>;
      mine = mine && first(word).exchange(1, simt::relaxed) == 0;
    }
    if (mine) context.spawner().note_failure(serve_one<Node>{self, element()}, status);
  }

  /// What all that run this together have, added up.
  GROSR_DEVICE static std::uint32_t sum(auto& context, std::uint32_t mine) {
    for (unsigned step = simt::warp_size / 2; step != 0; step /= 2)
      mine += simt::shuffle(simt::full_mask, mine, simt::lane_id() ^ step);
    if constexpr (width == grosr::width::block) {
      auto& word = context.spawner().memory().served;
      context.sync();
      if (context.rank() == 0) word = 0;
      context.sync();
      if (simt::lane_id() == 0)
        simt::atomic_ref<std::uint64_t, simt::scope::block>(word).fetch_add(mine, simt::relaxed);
      context.sync();
      mine = static_cast<std::uint32_t>(word);
    }
    context.sync();
    return mine;
  }

  /// What rank 0 finds, for all that run this together.
  template <class Find>
  GROSR_DEVICE static std::uint64_t to_all(auto& context, Find&& find) {
    if constexpr (width == grosr::width::warp) {
      std::uint64_t v = 0;
      if (simt::lane_id() == 0) v = find();
      simt::sync_warp();  // and what it acquired
      return simt::shuffle(simt::full_mask, v, 0);
    } else {
      std::uint64_t& word = context.spawner().memory().served;
      if (context.rank() == 0) word = find();
      context.sync();
      const std::uint64_t v = word;
      context.sync();
      return v;
    }
  }
};

template <class T>
inline constexpr bool is_serve = false;
template <class N>
inline constexpr bool is_serve<serve<N>> = true;
template <class T>
inline constexpr bool serves_singles = false;
template <class N>
inline constexpr bool serves_singles<serve<N>> = batch_of<N>() == 0;

/// What producers and workers do.
template <class Spawner>
struct channel_service {
  using shared = typename Spawner::shared;
  using types = typename Spawner::types;

  /// Whether the spawner is a graph's.
  static constexpr bool serves = [] {
    return []<class... Records>(run::type_list<Records...>) {
      return (is_serve<Records> || ...);
    }(types{});
  }();

  /// Bit k: the task type of kind k serves single elements.
  static constexpr std::uint32_t singles = [] {
    return []<class... Records>(run::type_list<Records...>) {
      std::uint32_t bits = 0, i = 0;
      ((bits |= (serves_singles<Records> ? 1u : 0u) << i++), ...);
      return bits;
    }(types{});
  }();

  /// Any lane: what it pushed into a channel made so many batches full.
  template <class Context>
  GROSR_DEVICE static void ready(Context& c, queue::batch_buffer_state* s, std::uint32_t batches) {
    c.spawner().note_pushed();
    if (batches != 0)
      send(&c.spawner().memory(), s, batches, static_cast<std::uint32_t>(c.level()));
  }

  /// Whether a channel is one of this graph's. If not, wait() says how many elements were for
  /// others.
  template <class Context>
  GROSR_DEVICE static bool owns(Context& c, const queue::batch_buffer_state* s, std::uint32_t n) {
    const auto& v = c.spawner().get_view();
    if (s >= states(v) && s < states(v) + v.collected_count) return true;
    count_foreign(c, n);
    return false;
  }
  template <class Context>
  GROSR_DEVICE static void count_foreign(Context& c, std::uint32_t n) {
    const auto& v = c.spawner().get_view();
    simt::atomic_ref<std::uint64_t>(states(v)->foreign).fetch_add(n, simt::relaxed);
  }

  /// Lanes of `mask`, together: whether the element that one pushes goes past this channel
  /// (channel::push).
  template <class Context>
  GROSR_DEVICE static bool goes_alone(Context& c, const queue::batch_buffer_state& s,
                                      std::uint32_t mask) {
    return (mask & (mask - 1)) == 0 && c.spawner().may_go_alone() && (singles >> s.kind & 1) != 0 &&
           c.spawner().take_alone();
  }

  /// One element that is alone: goes past its channel, as a task. False: the pool has no room for
  /// that, and the channel may.
  template <class Context, class T>
  GROSR_DEVICE static bool push_alone(Context& c, queue::batch_buffer_ref<T> channel,
                                      const T& value) {
    const auto level = static_cast<std::uint32_t>(c.level());
    const bool went = as_task(channel, value, types{},
                              [&](const auto& task) { return c.spawner().try_spawn(task, level); });
    if (went) simt::atomic_ref<std::uint64_t>(channel.state().alone).fetch_add(1, simt::relaxed);
    return went;
  }

  /// One element, for which there was no room in its channel.
  template <class Context, class T>
  GROSR_DEVICE static void push_refused(Context& c, queue::batch_buffer_ref<T> channel,
                                        const T& value) {
    simt::atomic_ref<std::uint64_t>(channel.state().refused).fetch_add(1, simt::relaxed);
    const bool went = as_task(channel, value, types{}, [&](const auto& task) {
      return c.spawner().spawn(task, static_cast<std::uint32_t>(c.level()), c.depth());
    });
    if (!went) simt::atomic_ref<std::uint64_t>(channel.state().lost).fetch_add(1, simt::relaxed);
  }

  /// Lanes that are together: a task for each of so many batches of a channel. There is no room:
  /// they are owed.
  GROSR_DEVICE GROSR_NOINLINE static void send(shared* block, queue::batch_buffer_state* s,
                                               std::uint32_t batches, std::uint32_t level) {
    send_typed(block, s, batches, level, types{});
  }

  /// Whole warp, active: sees to it that what lies in batches that are not full is served; with
  /// `all`, at once, else if it waits for too long.
  GROSR_DEVICE GROSR_NOINLINE static run::collected collect(shared* block, bool all) {
    Spawner self(simt::in_block_shared(block));
    const auto& v = self.get_view();
    constexpr auto level = static_cast<std::uint32_t>(priority::normal);
    bool found = false, left = false;
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < v.collected_count; i += simt::warp_size) {
      const std::uint32_t k = i + simt::lane_id();
      bool wants = false;
      if (k < v.collected_count) {
        const queue::batch_buffer_base channel(states(v) + k);
        const std::uint32_t deferred = channel.take_deferred();
        if (deferred != 0) send(block, &channel.state(), deferred, level);
        wants = deferred != 0 || (channel.collected() != 0 && (all || channel.overdue()));
      }
      std::uint32_t some = simt::ballot(simt::full_mask, wants);
      found = found || some != 0;
      GROSR_NO_UNROLL
      for (; some != 0; some &= some - 1) {
        const queue::batch_buffer_base channel(states(v) + i + simt::lowest_bit(some));
        const bool padded = channel.pad(simt::full_mask);
        if (simt::lane_id() == 0) {
          if (padded) send(block, &channel.state(), 1, level);
          left = left || channel.has_deferred() || (!padded && channel.collected() != 0);
        }
        simt::sync_warp();
      }
    }
    if (simt::any(simt::full_mask, left)) return run::collected::left;
    return found ? run::collected::taken : run::collected::nothing;
  }

  /// One lane: whether collect(false) would have some taken.
  GROSR_DEVICE GROSR_NOINLINE static bool overdue(shared* block) {
    const auto& v = simt::in_block_shared(block).get_view();
    bool some = false;
    GROSR_NO_UNROLL
    for (std::uint32_t k = 0; k < v.collected_count && !some; ++k) {
      const queue::batch_buffer_base channel(states(v) + k);
      some = channel.collected() != 0 && channel.overdue() && channel.may_pad();
    }
    return some;
  }

 private:
  /// The channels that a kernel's view leads to.
  GROSR_DEVICE static queue::batch_buffer_state* states(const auto& view) {
    return static_cast<queue::batch_buffer_state*>(view.collected);
  }

  /// What `spawn` says of the task that serves an element of a channel by itself.
  template <class T, class Spawn, class... Records>
  GROSR_DEVICE static bool as_task(queue::batch_buffer_ref<T> channel, const T& value,
                                   run::type_list<Records...>, const Spawn& spawn) {
    return (as_task_of<Records>(channel, value, spawn) || ...);
  }
  template <class Record, class T, class Spawn>
  GROSR_DEVICE static bool as_task_of(queue::batch_buffer_ref<T> channel, const T& value,
                                      const Spawn& spawn) {
    if constexpr (is_serve<Record>)
      if constexpr (std::is_same_v<typename Record::node::element, T>)
        if (channel.state().kind == types::template index_of<Record>())
          return spawn(serve_one<typename Record::node>{
              static_cast<const node_state<typename Record::node>*>(channel.state().server),
              value});
    return false;
  }

  template <class... Records>
  GROSR_DEVICE static void send_typed(shared* block, queue::batch_buffer_state* s,
                                      std::uint32_t batches, std::uint32_t level,
                                      run::type_list<Records...>) {
    (send_to<Records>(block, s, batches, level), ...);
  }
  template <class Record>
  GROSR_DEVICE static void send_to(shared* block, queue::batch_buffer_state* s,
                                   std::uint32_t batches, std::uint32_t level) {
    if constexpr (is_serve<Record>)
      if (s->kind == types::template index_of<Record>()) {
        const Record task{static_cast<const node_state<typename Record::node>*>(s->server)};
        for (; batches != 0; --batches)
          if (!Spawner::spawn_if_room(block, task, level)) break;
        // The worker that made them full, or fills one up, looks again before it rests.
        if (batches != 0) queue::batch_buffer_base(s).defer(batches);
      }
  }
};

}  // namespace grosr::flow
