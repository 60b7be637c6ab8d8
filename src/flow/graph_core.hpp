// What is behind a graph and an executor. One lock, the executor's, guards the state of all its
// graphs; functions run, and blocks are looked at, without it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "flow/duration_recorder.hpp"
#include "flow/scheduling.hpp"
#include "flow/trace.hpp"
#include "grosr/flow/graph.hpp"
#include "grosr/flow/resident.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/process.hpp"

namespace grosr::flow {

class block_heap;
class stretch;

enum class run_state : std::uint8_t {
  waiting,    ///< for inputs
  queued,     ///< has all inputs, waits for a unit
  executing,  ///< its function runs, or is being put into a stream
  completed,  ///< has outputs for which there is no room yet
};

/// An eventfd on which a thread waits for a channel to move. The thread arms it, looks at the
/// channel, and then sleeps.
class channel_watch {
 public:
  explicit channel_watch(int event) : event_(event) {}
  void arm() { armed_.store(true); }
  void tell();

 private:
  const int event_;
  std::atomic<bool> armed_{false};
};

/// Threads of the program that wait for something of a graph, with the executor's lock.
struct outside_waiters {
  std::condition_variable moved;
  unsigned count = 0;  // that sleep
  std::atomic<std::uint32_t> events{
      0};  // what they wait for may have come: to be looked at without the lock
  std::vector<channel_watch*> watches;

  void wake_one() {
    tell();
    if (count != 0) moved.notify_one();
  }
  void wake_all() {
    tell();
    if (count != 0) moved.notify_all();
  }

 private:
  void tell() {
    events.fetch_add(1, std::memory_order_relaxed);
    for (channel_watch* w : watches) w->tell();
  }
};

/// Where a block on its way comes from.
struct origin {
  static constexpr std::int64_t unknown = -1;
  std::int64_t born = unknown;  ///< when the oldest block that it was made of was pushed
  std::uint64_t made_by = 0;    ///< a run's number, or a push's; 0: it was there at first
};

struct moving_block {
  datablock block;
  origin from;

  explicit operator bool() const { return static_cast<bool>(block); }
};

struct block_channel {
  static constexpr unsigned outside = ~0u;
  block_channel(unsigned f, unsigned fp, unsigned t, unsigned tp, const block_template& s,
                const channel_options& o)
      : from(f), from_port(fp), to(t), to_port(tp), named{f, fp, t, tp}, shape(s), options(o) {}

  unsigned from = outside, from_port = 0;  // a node's, or the program
  unsigned to = outside, to_port = 0;
  std::vector<unsigned> source;  // the channels of a source, at the first of them
  unsigned first_of_source = outside;
  const struct {
    unsigned from, from_port, to, to_port;
  } named;  // as the program made it: a stretch takes ends over
  block_template shape;
  channel_options options;
  unsigned inside = outside;  // a stretch, in which it holds no blocks
  std::deque<moving_block> blocks;
  bool from_heap = false;  // blocks that come by it lie in heaps, or are copies of such
  bool goes_back = false;  // it had a first block: what comes by it is as old as the graph
  std::uint64_t came = 0, dropped = 0;
  copy_counts copies;
  outside_waiters waiters;  // who push into it, or pull from it

  bool has_room() const {
    return options.full != when_full::block || blocks.size() < options.capacity;
  }
};

struct port_core {
  explicit port_core(detail::port_description d) : is(std::move(d)) {}

  detail::port_description is;
  moving_block held;                 // at an input
  std::optional<unsigned> count_at;  // the port that says how many elements it has
  bool counts = false;               // others
  unsigned in = block_channel::outside;
  std::vector<unsigned> out;  // channels
  unsigned to_host =
      block_channel::outside;  // a channel by which the host gets it as soon as it is made
  moving_block made;           // at an output of a node that is completed
  std::vector<bool> given;     // of `out`: has got it
  bool late = false;           // its being absent was reported
};

struct node_core {
  std::string name;
  detail::function on_host, on_device;  // at least one, or
  detail::resident_function resident;   // instead of these, until a stretch has it
  std::vector<port_core> ports;
  run_state state = run_state::waiting;
  bool counts_late = false;  // an output's elements are known when a run is over
  unsigned heap_outs = 0;    // outputs whose memory the function allocates
  bool same_always = false;  // its function for devices puts the same into a stream each time
  std::shared_ptr<stretch> runs_all_of;       // of a node that is a stretch
  unsigned part_of = block_channel::outside;  // a stretch, which runs it
  std::vector<std::uint64_t> runs_on;         // each unit
  std::uint64_t first_home = 0;               // of a stretch: of memory at its ports
  unsigned stream = 0;                        // of each device, that it is put into
  std::int64_t queued_at = 0;
  std::int64_t partly_since = -1;  // when it came to have some inputs and not all; -1: it has not
  double mean_wait = 0, mean_run = 0;
  double mean_function =
      0;  // of a run on the host, without what is around the function; 0: not known
  node_stats stats;
  duration_recorder latency;
  unsigned track = 0;  // of the trace

  unsigned lacking = 0;  // inputs without a block
  unsigned waiting = 0;  // blocks that wait for others, which sticky ones do not

  /// Before anything comes.
  void count_inputs() {
    for (const port_core& p : ports) lacking += p.is.way != direction::out;
  }
  void hold(port_core& p, moving_block b) {
    if (!p.held) {
      --lacking;
      waiting += !p.is.sticky;
    }
    p.held = std::move(b);
  }
  datablock use(port_core& p) {
    if (p.is.sticky) return p.held.block;
    ++lacking;
    --waiting;
    return std::move(p.held.block);
  }
};

/// A node's function being run. Used again and again, so that vectors keep what they have.
struct invocation_core {
  void reset(std::size_t ports) {
    blocks.clear();
    descriptors = {};
    originals.assign(ports, {});
    original_data.assign(ports, nullptr);
    copies.assign(ports, {});
    fetched.assign(ports, {});
    function_ns = 0;
    waits = {};
    call.ports.assign(ports, {});
    call.stream = nullptr;
    end = {};
    thrown = nullptr;
    failed = counts_late = false;
    made = {};
    traced = {};
  }

  graph_core* of = nullptr;
  unsigned node = 0;
  std::size_t unit = 0;              // 0: the host
  std::vector<datablock> blocks;     // a port each
  datablock descriptors;             // of its heap outputs, in order; none: it has none
  std::vector<datablock> originals;  // of in-and-out ports whose block others have, too: copied
  std::vector<const void*> original_data;  // on the host
  std::vector<copy_counts> copies;         // a port each: to bring it where it is used
  std::vector<copy_counts> fetched;        // and where it is used next
  stream_waits waits;                      // before the host may look
  detail::invocation call;
  simt::stream_point end;  // on a device: when it is over
  std::int64_t began = 0, function_ns = 0;
  std::uint64_t run = 0, run_there = 0;  // of its node, and of that on its unit
  bool failed = false, counts_late = false;
  origin made;  // where its outputs come from
  trace_recorder::run traced;
  std::exception_ptr thrown;
};

class executor_core;

/// All but make_channel() and what compile() does: with the executor's lock.
class graph_core {
 public:
  graph_core(std::shared_ptr<executor_core> e, graph_options o)
      : where(std::move(e)), options(std::move(o)) {}

  const std::shared_ptr<executor_core> where;
  const graph_options options;
  std::vector<node_core> nodes;
  std::deque<block_channel> channels;
  std::unique_ptr<plan> compiled;
  std::vector<std::shared_ptr<block_heap>> heaps;  // of each device, or none
  bool ended = false;
  std::exception_ptr failure;
  unsigned active = 0;      // nodes queued or executing, and invocations under way on devices
  outside_waiters waiters;  // for that to be 0
  std::vector<std::string> events;

  std::string port_name(unsigned node, unsigned port) const {
    const std::string& name = nodes[node].ports[port].is.name;
    return nodes[node].runs_all_of ? name : nodes[node].name + "." + name;
  }
  std::string from_name(const block_channel& c) const {
    return c.from == block_channel::outside ? "source" : port_name(c.named.from, c.named.from_port);
  }
  std::string to_name(const block_channel& c) const {
    return c.to == block_channel::outside ? "sink" : port_name(c.named.to, c.named.to_port);
  }
  /// Buffers that a port of a stretch has, one after the other.
  unsigned homes() const {
    const unsigned k = options.runs_in_flight;
    return k * ((3 + k - 1) / k);
  }
  port_core& at(const port_ref& p, const char* asked) const;
  void check_building(const std::string& asked) const;

  // ---- plan.cpp ----
  /// Throws what is wrong.
  void check_whole() const;
  /// Nodes, each behind those that feed it; without those on cycles, and behind these.
  std::vector<unsigned> in_order() const;
  std::unique_ptr<plan> make_plan() const;
  /// Which outputs are brought to the host as soon as they are made. With the executor's lock.
  void find_prefetches();
  /// A stream of each device for each node: chains stay in one.
  void choose_streams();
  /// What the plan has reserved is not needed any more.
  void give_back_memory() noexcept;

  /// Those of nodes that run over points; what functions of streams launch is not known.
  void load_kernels() const;

  // ---- stretches.cpp ----
  /// Nodes that can run as one become one: a node that is a stretch, which their ports outside
  /// belong to from then on.
  void find_stretches();
  /// Of a graph that was not compiled after all.
  void undo_stretches();
  /// Throws where resident nodes have no room on the device at once.
  void check_residency() const;

  // ---- heap_outputs.cpp ----
  void find_heap_channels();
  bool has_heap_outputs() const;
  void make_heaps();
  void free_spare_buffers() noexcept;

  // ---- moves.cpp ----
  /// A block comes to a channel that has room.
  void deliver(unsigned channel, moving_block b);
  /// Moves what can move, beginning at a node, until nothing can.
  void settle(unsigned node);
  /// The same, when a block has come to a channel from the program.
  void settle_pushed(unsigned channel);
  /// Takes the oldest block out of a channel without a consumer.
  moving_block take(unsigned channel);
  void note(const std::string& event);
  bool has_deadlines() const;
  /// Notes each input that has been without a block for longer than its deadline, once.
  void look_at_deadlines();
  /// One node less is active.
  void leave() {
    if (--active == 0) waiters.wake_all();
  }
  /// Nothing runs any more.
  void end() {
    ended = true;
    waiters.wake_all();
    for (block_channel& c : channels) c.waiters.wake_all();
  }
  /// Throws what ended the graph, if it has ended.
  void check_running() const;

 private:
  std::vector<unsigned> to_settle_;
  bool hand_out(unsigned node, std::vector<unsigned>& next);
  void fill(node_core& n, port_core& p, std::vector<unsigned>& next);
  void queue_if_ready(unsigned node);
};

class executor_core : public std::enable_shared_from_this<executor_core> {
 public:
  explicit executor_core(const executor_options& o);
  const long made_in = simt::this_process();
  ~executor_core();

  void start();
  void end();
  /// When all has ended.
  void write_trace() noexcept;

  /// Does one thing there is to do; false: there was none.
  bool step();

  // With the lock.
  void enqueue(graph_core* g, unsigned node);
  /// After the program has moved blocks: what it has queued is begun. Where no thread of the
  /// executor looks for work, and none is to run functions of the host, this one puts the first run
  /// on a device while one of them wakes, if it `helps`; the lock is free meanwhile.
  void begin_queued(std::unique_lock<std::mutex>& lock, bool helps) noexcept;
  std::vector<graph_core*> watched;  // graphs with inputs that have deadlines
  unsigned next_stream = 0;          // that a chain of nodes gets
  std::uint64_t next_home = 1;       // that a stretch's ports get
  bool has_ended() const { return ends_; }
  /// Takes the graph's nodes out of the queue.
  void forget(graph_core* g);
  /// Throws error(misuse) on a thread that runs functions of nodes.
  void check_outside(const char* asked) const;
  bool is_served_here() const;
  std::int64_t now() const;     // by the clock of the options
  static std::int64_t ticks();  // by the steady clock, whatever that is

  std::uint64_t next_number() { return ++numbers_; }  // of a push or run

  std::mutex mutex;
  std::condition_variable work;  // there may be something to do
  block_memory memory;
  const executor_options options;
  static constexpr std::size_t zero_bytes = 32;
  const simt::buffer<std::uint32_t> zero;  // in pinned memory
  std::shared_ptr<trace_recorder> trace;   // none: nothing is traced; blocks keep it

 private:
  /// Threads of the host, or a device. Units have the numbers of their memories.
  struct unit {
    unsigned running = 0, depth = 1;
    std::mutex mutex;  // of its streams, one thread at a time
    std::deque<simt::timeline> streams;
  };
  struct queued {
    graph_core* of;
    unsigned node;
    std::int64_t since;  // by ticks()
  };
  /// Of a thread: whether it looks for work, or is back soon, and since when it runs a function.
  struct presence {
    bool is_quick = false;
    std::int64_t gone_since = 0;
  };
  using running = std::unique_ptr<invocation_core>;

  void serve(presence& self);
  void come_back(presence& p);
  void go_away(presence& p);
  void discount_overdue();
  using lock_type = std::unique_lock<std::mutex>;
  bool is_worth_a_thread(std::int64_t now) const;
  void execute(running r, bool is_new, presence& self, lock_type& lock);
  void rest(presence& self, lock_type& lock, bool soon);
  void wake_for_the_rest(std::int64_t now);
  void take_out(std::size_t i);
  running next();
  void begin(queued q, const choice& c, running& r);
  void run(running r);
  bool start_on_host(invocation_core& r);
  void run_on_host(running r);
  void end_on_host(invocation_core& r, std::size_t ports, bool failed);
  std::exception_ptr set_counts(invocation_core& r);
  void put_on_device(running r);
  void finish(running r, std::exception_ptr thrown);
  void hand_over(invocation_core& r, std::exception_ptr thrown);
  std::exception_ptr take_counts(invocation_core& r);
  void begin_descriptors(invocation_core& r, simt::timeline& t, space_number s,
                         std::vector<device_access>& in_use);
  bool bring_descriptors(invocation_core& r, simt::timeline& t);
  std::exception_ptr take_descriptors(invocation_core& r);
  void fail(invocation_core& r, std::exception_ptr thrown);
  running look_after();
  void look_at_deadlines();
  void took(node_core& n, const invocation_core& r, bool failed);
  std::uint64_t home_of(const invocation_core& r, std::size_t port) const;
  std::unique_ptr<looks_for> for_trace(const invocation_core& r, std::size_t port,
                                       const char* reason) const;
  void trace_end(invocation_core& r);
  void trace_run(invocation_core& r, const queued& q, const char* reason);

  std::deque<unit> units_;
  std::unique_ptr<scheduling_policy> policy_;
  std::vector<queued> queue_;       // in the order in which they came
  std::vector<queued_node> facts_;  // of each, for the policy
  std::vector<std::size_t> bytes_;  // of the inputs of a node that the policy asks for
  std::vector<unit_load> loads_;
  std::vector<running> spare_;
  std::deque<running> coming_;     // on the host, whose inputs are on their way
  std::deque<running> under_way_;  // on devices
  std::vector<std::thread> threads_;
  unsigned sleeping_ = 0, sleeping_with_limit_ = 0;
  std::deque<presence> presences_;
  unsigned quick_ = 0;           // of these
  bool helped_ = false;          // a thread of the program puts something on a device
  std::uint64_t launching_ = 0;  // a bit for each unit into whose streams a thread puts something
  std::int64_t looked_ = 0, ran_at_ = 0;
  bool looking_ = false;  // somebody looks after what is on its way
  std::int64_t looked_at_deadlines_ = 0;
  std::uint64_t numbers_ = 0;
  bool ends_ = false;
};

/// Streams of each device that nodes are put into.
inline constexpr unsigned streams_each = 8;
static_assert(streams_each >= most_runs_in_flight);

}  // namespace grosr::flow
