// Flow graphs: functions that run on the device, or on the host, connected by channels.
//
//   struct halve {                          // a function, and its constants
//     using element = std::uint64_t;        // what it serves
//     grosr::channel<std::uint64_t> odd, even;
//     GROSR_DEVICE void operator()(const std::uint64_t& n, auto& context) const {
//       (n / 2 % 2 != 0 ? odd : even).push(context, n / 2);
//     }
//   };
//   grosr::element_graph<halve, triple> graph;
//   auto even = graph.channel<std::uint64_t>({.name = "even"});
//   auto odd = graph.channel<std::uint64_t>({.name = "odd"});
//   graph.connect(even, halve{odd, even});
//   graph.connect(odd, triple{odd, even});
//   graph.push(even, 1u << 20);
//   graph.wait();
//
// docs/internals/channels.md has the protocol.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grosr/flow/detail/graph_plan.hpp"
#include "grosr/flow/detail/host_side.hpp"
#include "grosr/flow/router.hpp"
#include "grosr/queue/call_ring.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr {

/// A function on the host that serves a channel: name it among a graph's functions, and connect the
/// channel to a std::function or a lambda. Elements of at most 48 bytes.
template <class T>
struct on_host {
  using element = T;
  static_assert(sizeof(T) <= sizeof(queue::record::word),
                "grosr: elements for the host have at most 48 bytes");
  queue::call_ring_ref out;
  std::uint32_t number;

  GROSR_DEVICE void operator()(const T& e, auto& context) const {
    queue::record r{};
    __builtin_memcpy(r.word, &e, sizeof(T));
    r.part[0] = number;
    const std::uint32_t mask = simt::active_mask();
    const unsigned leader = simt::lowest_bit(mask);
    std::uint64_t first = simt::lane_id() == leader ? out.take(simt::popcount(mask)) : 0;
    first = simt::shuffle(mask, first, leader);
    const std::uint64_t last = first + simt::popcount(mask) - 1;
    simt::wait_until([&] { return out.has_room(last) || context.aborted(); }, simt::forever,
                     nullptr, "the host, which takes elements of a channel");
    simt::sync_warp(mask);
    if (out.has_room(last)) out.write_all(mask, first, r);
  }
};

namespace flow {
template <class T>
inline constexpr bool is_on_host = false;
template <class T>
inline constexpr bool is_on_host<on_host<T>> = true;
}  // namespace flow

/// A graph of the functions named, on one device. It is built first: channel(), router() and
/// connect(); then it runs, from the first push() or execute() on, resident, until it is destroyed.
/// push(), wait() and what reports may be called from any number of host threads; the rest by one.
template <class... Nodes>
class element_graph {
 public:
  using runtime_type = runtime<flow::serve<Nodes>..., flow::serve_one<Nodes>...>;

  /// Throws error(out_of_memory, device_lost).
  explicit element_graph(device d = device::best(), const element_graph_options& options = {})
      : options_(options), plan_(d) {
    static_assert((check<Nodes>() && ...));
  }
  element_graph(const element_graph&) = delete;

  /// Finishes what was accepted, as wait(), but does not throw: what throws, or takes longer than
  /// element_graph_options::limit, ends it, and what is left is not served.
  ~element_graph() {
    try {
      wait();
      stop(std::chrono::seconds(1));
    } catch (...) {
      try {
        if (plan_.started()) runtime_->stop(std::chrono::milliseconds(1));
      } catch (...) {
      }
    }
    // The kernel is gone: what it shares with the host's half may go, too.
  }

  /// A new channel. Throws error(invalid_option) for options that it cannot have, for more than 64
  /// channels; error(misuse) when the graph runs already; error(out_of_memory).
  template <class T>
  grosr::channel<T> channel(const channel_options& o = {}) {
    return grosr::channel<T>(plan_.add_channel(o, queue::element_bytes<T>));
  }

  /// Has `function` serve a channel. A channel has one function; a function may serve several, with
  /// constants of its own for each. Throws error(invalid_option) for a second function and for
  /// batches larger than it takes; error(misuse) as channel() and for a channel of another graph.
  template <class Node>
  requires requires { typename Node::element; }
  void connect(grosr::channel<typename Node::element> input, const Node& function) {
    static_assert((std::is_same_v<Node, Nodes> || ...),
                  "grosr: this function is not among the graph's: add it to element_graph<...>");
    flow::node_state<Node> state{function, input.ref()};
    plan_.connect(input.state(),
                  {&state, sizeof state, sizeof function, kind_of<Node>(), flow::max_batch<Node>(),
                   flow::default_batch<Node>(), run::task_name<Node>::text()});
  }

  /// A router to these channels, in this order, 64 at most. An indirect one has a channel of its
  /// own, one of the graph's 64, which route<T> serves: name that among the graph's functions.
  /// Throws as channel(), and error(invalid_option) for an indirect one without route<T>, and for
  /// no channels.
  template <class T>
  grosr::router<T> router(const std::vector<grosr::channel<T>>& targets,
                          const router_options& o = {}) {
    constexpr bool can = (std::is_same_v<route<T>, Nodes> || ...);
    if (o.aggregation == aggregation::indirect && !can)
      throw error(errc::invalid_option,
                  "graph: an indirect router was asked for: add route<T>, which serves it, to "
                  "element_graph<...>");
    std::vector<const queue::batch_buffer_state*> states;
    for (const grosr::channel<T>& t : targets) states.push_back(t.state());
    plan_.check_router(states);  // before it has a channel
    const auto count = static_cast<std::uint32_t>(states.size());
    grosr::channel<flow::routed<T>> via;
    if constexpr (can) {
      if (o.aggregation == aggregation::indirect ||
          (o.aggregation == aggregation::by_count && count > direct_targets))
        via = channel<flow::routed<T>>({.capacity = o.capacity, .name = o.name});
    }
    const auto* list = static_cast<const grosr::channel<T>*>(plan_.add_router(states, via.state()));
    if constexpr (can)
      if (via.state() != nullptr) connect(via, route<T>{list, count});
    return {list, count, via};
  }

  /// Has a function on the host serve a channel: it is called with elements that came, one or many,
  /// by the graph's one thread for all of them. It may push into the graph, and must not wait for
  /// it. Every wait() throws from then on what it throws; later elements for the host are dropped.
  /// Held up for longer than the runtime's watchdog, the device takes it for a standstill.
  template <class T>
  void connect(grosr::channel<T> input,
               std::type_identity_t<std::function<void(std::span<const T>)>> function) {
    static_assert(
        (std::is_same_v<on_host<T>, Nodes> || ...),
        "grosr: a function on the host serves this channel: add on_host<T> to element_graph<...>");
    if (!function)
      throw error(errc::misuse, "graph: an empty function was connected; give it one to call");
    if (!host_) host_.reset(new flow::host_side(plan_.where(), options_.host_records));
    const std::uint32_t number = host_->add([f = std::move(function)](const flow::host_batch& b) {
      std::vector<T> values(b.size());
      for (std::size_t i = 0; i < b.size(); ++i)
        __builtin_memcpy(static_cast<void*>(&values[i]), b[i].word, sizeof(T));
      f(std::span<const T>(values));
    });
    flow::node_state<on_host<T>> state{{host_->records(), number}, input.ref()};
    plan_.connect(input.state(),
                  {&state, sizeof state, 0, kind_of<on_host<T>>(), simt::warp_size, simt::warp_size,
                   "host function " + std::to_string(number + 1), true});
  }

  /// Hands elements to a channel's function. Waits for room, as runtime::submit(). Throws
  /// error(invalid_option) when a channel has no function; error(stopped, device_lost, watchdog).
  template <class T>
  void push(grosr::channel<T> to, std::type_identity_t<std::span<const T>> values) {
    if (values.empty()) return;
    if (ending().load(simt::relaxed) != 0 && !(host_ && host_->inside()))
      throw error(errc::stopped, "graph: elements were pushed after stop(); make a new graph");
    execute();
    const std::uint32_t kind = plan_.count_from_host(to.state(), values.size());
    bool sent = false;
    ((sent = sent || push_to<Nodes>(kind, to, values)), ...);
  }
  template <class T>
  void push(grosr::channel<T> to, const std::type_identity_t<T>& value) {
    push(to, std::span<const T>(&value, 1));
  }

  /// Starts it, unless it runs. Throws error(invalid_option), which names it, when a channel has no
  /// function; error(out_of_memory, device_lost).
  void execute() {
    plan_.start([](void* self) { static_cast<element_graph*>(self)->begin(); }, this);
  }

  /// Waits until nothing that was pushed, or came of it, is left, on the device and on the host.
  /// Throws error(watchdog) past element_graph_options::limit, which names the channel that most
  /// went into; error(out_of_memory) when elements found no room anywhere; error(misuse) when some
  /// were pushed into channels of another graph, or for targets that a router does not have, and in
  /// a function of the host; what such a function threw; and as runtime::wait_all().
  void wait() {
    if (options_.limit.count() == 0) {
      wait_until(std::nullopt);
      return;
    }
    const auto before = plan_.stats();
    if (!wait_until(run::in(options_.limit))) throw plan_.still_runs(before, options_.limit);
  }
  /// The same with a time limit: false when it passed first.
  bool wait_for(std::chrono::nanoseconds limit) { return wait_until(run::in(limit)); }

  /// From now on pushes throw error(stopped), but for those of its functions of the host. Waits,
  /// then ends. Past the limit it throws error(timed_out), and what is left is not served. Throws
  /// what a function of the host threw: then it still runs, and pushes are taken again. Before it
  /// runs there is nothing to end.
  void stop(std::chrono::nanoseconds limit) {
    if (!plan_.started()) return;
    const run::deadline until = run::in(limit);
    bool done = false;
    ending().store(1, simt::relaxed);
    try {
      done = wait_until(until);
    } catch (...) {
      ending().store(0, simt::relaxed);
      throw;
    }
    runtime_->stop(until ? run::left_until(*until, std::chrono::milliseconds(1)) : limit);
    if (!done)
      throw error(errc::timed_out,
                  "graph: its functions of the host had elements left when the time was over, and "
                  "may not serve them; give stop() more of it");
  }

  /// Gives the device back until the next push or wait, as runtime::park(): before cudaFree.
  void park() {
    if (plan_.started()) runtime_->park();
  }

  /// What went through each channel so far, in the order in which they were made.
  std::vector<channel_stats> stats() const { return plan_.stats(); }
  /// Counters of the scheduler below. Nothing before it runs.
  runtime_stats scheduler_stats() const {
    return plan_.started() ? runtime_->stats() : runtime_stats{};
  }
  /// Functions that returned errors: type, code, and the element after 8 bytes. As
  /// runtime::errors().
  std::vector<task_error> errors() const {
    return plan_.started() ? runtime_->errors() : std::vector<task_error>{};
  }

  /// The graph for Graphviz: functions are boxes, channels are ellipses with what went through.
  std::string to_dot() const { return plan_.to_dot(); }

  const device& where() const { return plan_.where(); }

 private:
  static_assert(sizeof...(Nodes) >= 1, "grosr: a graph needs at least one function");
  static_assert(sizeof...(Nodes) <= run::max_task_types / 2,
                "grosr: a graph has at most 8 functions");

  template <class Node>
  static constexpr bool check() {
    static_assert(
        requires { typename Node::element; },
        "grosr: a function of a graph says what it serves: using element = T;");
    static_assert(std::is_trivially_copyable_v<Node>,
                  "grosr: a function of a graph must be trivially copyable");
    static_assert(sizeof(flow::serve_one<Node>) <= run::max_task_bytes,
                  "grosr: an element of a graph has at most 56 bytes, 48 if it is aligned to 16: "
                  "put larger data behind a pointer");
    constexpr std::uint32_t batch = flow::batch_of<Node>(),
                            threads = run::width_of<Node>() == width::block ? run::block_threads
                                                                            : simt::warp_size;
    static_assert(batch == 0 || run::width_of<Node>() != width::lane,
                  "grosr: a function that takes batches is of a warp or a block: a width says so");
    static_assert(
        (batch & (batch - 1)) == 0 && batch <= threads * flow::scratch::places,
        "grosr: a function takes batches of a power of two, up to 256 elements for a warp "
        "and 1024 for a block");
    return true;
  }

  template <class Node>
  static constexpr std::uint32_t kind_of() {
    return runtime_type::types::template index_of<flow::serve<Node>>();
  }

  template <class Node, class T>
  bool push_to(std::uint32_t kind, grosr::channel<T> to, std::span<const T> values) {
    if constexpr (std::is_same_v<typename Node::element, T>) {
      if (kind != kind_of<Node>()) return false;
      const auto* self = static_cast<const flow::node_state<Node>*>(plan_.server(to.state()));
      std::vector<flow::serve_one<Node>> tasks;
      tasks.reserve(values.size());
      for (const T& v : values) tasks.push_back({self, v});
      if (host_ && host_->inside())
        submit_from_inside(std::span<const flow::serve_one<Node>>(tasks));
      else
        runtime_->submit(tasks);
      return true;
    }
    return false;
  }

  /// A function of the host must not wait for the device, which may wait for it.
  template <class Task>
  void submit_from_inside(std::span<const Task> tasks) {
    // So many travel together, or none.
    constexpr std::size_t a_packet = run::width_of<Task>() == width::lane ? 128 : 1;
    while (!tasks.empty()) {
      const auto some = tasks.first(tasks.size() < a_packet ? tasks.size() : a_packet);
      while (!runtime_->try_submit(some))
        if (host_->drain() == 0) host_->nap();
      tasks = tasks.subspan(some.size());
    }
  }

  void begin() {
    if (host_) host_->start();
    runtime_.emplace(plan_.where(), options_.runtime,
                     run::collection{plan_.states(), plan_.channels()});
  }

  bool wait_until(run::deadline until) {
    if (!plan_.started()) return true;
    if (host_ && host_->inside())
      throw error(errc::misuse,
                  "graph: a function of the host waits for its own graph, which waits for it");
    for (std::uint64_t served = 0, now = 1; served != now;) {
      served = host_ ? host_->served() : 0;
      if (until) {
        if (!runtime_->wait_all_for(run::left_until(*until))) return false;
      } else {
        runtime_->wait_all();
      }
      // All that the device sent has arrived. Functions of the host may push more: once more then.
      now = served;
      if (host_ && !host_->settle(until, now)) return false;
    }
    plan_.throw_if_lost();
    return true;
  }

  // Not std::atomic, whose header brings in unistd.h.
  simt::atomic_ref<std::uint32_t, simt::scope::system> ending() {
    return simt::atomic_ref<std::uint32_t, simt::scope::system>(ending_);
  }

  element_graph_options options_;
  flow::graph_plan plan_;
  simt::owner<flow::host_side, simt::not_in_a_fork> host_;
  std::optional<runtime_type> runtime_;  // goes before what its kernel uses
  std::uint32_t ending_ = 0;             // 1: stop() was called
};

}  // namespace grosr
