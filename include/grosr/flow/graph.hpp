// Dataflow graphs: functions, and what flows between them. Data is moved only when it must be.
//
//   flow::executor where;
//   flow::graph g(where);
//   const auto matrix = flow::block_template::of<float>(n, n);
//   flow::node product = g.kernel("product", multiply{n}, {{"a", matrix}, {"b", matrix}, {"c", matrix}});
//   flow::node sum = g.host("sum", add_up, {{"c", matrix}, {"total", one}});
//   g.connect(product["c"], sum["c"]);
//   auto a = g.source<float>(product["a"]), b = g.source<float>(product["b"]);
//   auto total = g.sink<double>(sum["total"]);
//   g.compile();
//   a.push(left);
//   b.push(right);
//   double t = total.pull_elements()[0];
//
// Outputs of which only the function knows the size are variable: out::set_count(),
// port::count_port, or heap_out.hpp, where the function allocates them on the device.
//
// docs/guide/dataflow.md teaches it; docs/internals/dataflow.md has the protocols.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "grosr/flow/executor.hpp"
#include "grosr/flow/node.hpp"
#include "grosr/flow/resident.hpp"

namespace grosr {
struct heap_report;
}

namespace grosr::flow {

class channel_end;
class graph_core;
struct block_for;

namespace detail {
struct node_description {
  std::string name;
  std::vector<port_description> ports;
  function on_host, on_device;  ///< one of them may be empty
  bool same_always = false;     ///< on_device puts the same into a stream each time
  resident_function resident;   ///< instead of these
};
}  // namespace detail

/// A port of a node of a graph. A value.
struct port_ref {
  graph_core* of = nullptr;
  unsigned node = 0, port = 0;
};

/// A node of a graph. A value.
class node {
 public:
  /// Throws error(invalid_option), naming the ports there are.
  port_ref operator[](const std::string& port) const;

 private:
  friend class graph;
  node(graph_core* g, unsigned n) : of_(g), number_(n) {}
  graph_core* of_;
  unsigned number_;
};

struct channel_options {
  unsigned capacity = 1;  ///< blocks that wait in it, at least 1
  when_full full = when_full::block;
  /// Blocks that come from a device, and go to a node of the host or to the program, are copied to
  /// host memory as soon as they are made. False: when they are looked at there.
  bool prefetch = true;
};

/// What happens when a node's function throws.
enum class on_error : std::uint8_t {
  end_graph,  ///< nothing runs any more; push, pull and wait throw
  /// What it would have written is missing, and is counted. For functions that run on the host: a
  /// kernel that faults takes the device with it. Not with first blocks. Where paths part and
  /// join again, the blocks of one path are one ahead from then on.
  go_on,
};

struct graph_options {
  std::string name = "graph";
  /// By policy "priority" graphs that always have something queued run in proportion to it: from 1
  /// to 100, a graph of priority 4 twice as often as one of 2. Priorities 0, -1, -2... to -98 count
  /// as 1/2, 1/3, 1/4... to 1/100 of priority 1.
  int priority = 0;
  on_error errors = on_error::end_graph;
  /// Nodes that run on devices alone, and do the same with every block, run as one where they feed
  /// each other by channels of capacity 1: on a GPU, as a CUDA graph. Not with on_error::go_on.
  bool stretches = true;
  /// How many runs of a node may be on a device at a time, from 1 to 8: of a pipeline, how many
  /// blocks. With more than 1 its runs overlap there, so functions for devices, other than resident
  /// ones, must keep no state in the device's memory, scratch memory included. Stretches have that
  /// many sets of the memory of what flows inside.
  unsigned runs_in_flight = 1;
  /// Of a heap that the graph has on each device, for outputs that are heap_out<T> (heap_out.hpp):
  /// room for all of their blocks that are there at a time, in the graph and in the program. A
  /// multiple of 64 KiB, rounded up. 0: none.
  std::size_t heap_bytes = 0;
};

inline constexpr unsigned most_runs_in_flight = 8;

/// What a function puts into a stream.
enum class stream_work : std::uint8_t {
  each_time,  ///< what it likes: it is called in each run
  /// The same, with other addresses: it need not be called in runs in which these are as before.
  /// What it puts there runs beside that of other nodes, though these may have got the same stream:
  /// scratch memory is a node's own.
  same_always,
};

struct block_channel_stats {
  std::string from, to;       ///< "node.port"; "source" or "sink" where the program is
  std::uint64_t blocks = 0;   ///< that came
  std::uint64_t dropped = 0;  ///< of these, because it was full
  copy_counts copies;         ///< to bring them where they were used
};

/// How long something took, many times. Quantiles are right to 1.6%, the others exact.
struct distribution {
  std::uint64_t count = 0;
  double mean_us = 0, sigma_us = 0, p50_us = 0, p99_us = 0, p999_us = 0, max_us = 0;
};

struct node_stats {
  std::string name;
  std::string stretch;  ///< that runs it, which has the times; empty: it runs by itself
  std::uint64_t runs = 0, failures = 0;
  std::int64_t waited_ns = 0;  ///< in all, between having all inputs and being started
  std::int64_t ran_ns = 0;     ///< in all, from being started to the end
  /// From when push() was called for the oldest block that a run's inputs were made of, to the end
  /// of the run: at the last node of a pipeline, its latency, whose sigma is the jitter. Sticky
  /// inputs, and channels that had a first block, do not count. Where a node runs on a device, its
  /// end is when the executor has seen it. In a graph without sources: since the first node began.
  distribution latency;
};

/// What compile() found. Immutable.
class plan {
 public:
  const std::string& text() const { return text_; }
  const std::string& dot() const { return dot_; }  ///< for Graphviz
  const std::string& json() const { return json_; }
  /// Bytes of a memory that a run needs, at most: pinned memory for host_space. Throws
  /// error(invalid_option) for a memory that the executor does not have.
  std::size_t bytes(space_number s) const;

 private:
  friend class graph;
  friend class graph_core;
  std::string text_, dot_, json_;
  std::vector<std::size_t> bytes_;
  std::vector<std::map<std::size_t, std::size_t>>
      buffers_;  // by memory: of so many bytes, how many
};

/// The end of a channel, or of several, that the program pushes into. Thread-safe. After the graph
/// it throws.
class any_source {
 public:
  /// Puts a block into the channel. With when_full::block it waits while one is full. The
  /// program may keep a handle. It may write the block again when a result that depends on the
  /// block has been pulled; earlier, a node may read the new elements or fail with error(misuse).
  /// An inout port copies a block of which the program keeps a handle. Throws
  /// error(invalid_option) for no block, for a block of another template or executor, and for one
  /// that nobody has written; error(misuse) before compile() and from a node's function;
  /// error(task_failed), which names node, run and cause, after a node has ended the graph;
  /// error(stopped) after stop().
  void push(datablock b) const;
  /// As push(), but returns false at once when the channel is full.
  bool try_push(datablock b) const;
  /// As push(), but returns false when the channel is still full after `limit`.
  bool push_for(datablock b, std::chrono::nanoseconds limit) const;
  /// Returns a block of the channel's template. It holds nothing and takes no memory yet.
  datablock make() const;

 protected:
  friend class channel_end;
  friend class graph;
  friend bool push_all_for(std::span<block_for> blocks, std::chrono::nanoseconds limit);
  any_source(std::shared_ptr<graph_core> g, unsigned channel)
      : of_(std::move(g)), channel_(channel) {}
  std::shared_ptr<graph_core> of_;  // also after the graph has ended
  unsigned channel_;
};

/// A block, and the source that it is pushed into.
struct block_for {
  const any_source& to;
  datablock block;
};

/// Pushes blocks into sources of one graph, when there is room for all of them, and leaves none in
/// `blocks`: for a node with many inputs, this takes less time than to push each. Waits and throws
/// as any_source::push(); error(invalid_option) for sources of several graphs, and for a source
/// that is named twice; and then nothing is pushed.
void push_all(std::span<block_for> blocks);
inline void push_all(std::vector<block_for>&& blocks) { push_all(std::span(blocks)); }
/// As push_all(), but returns false when there is not room for all after `limit`.
bool push_all_for(std::span<block_for> blocks, std::chrono::nanoseconds limit);

template <class T>
class source : public any_source {
 public:
  using any_source::push;
  /// Copies into a block. Throws error(invalid_option) unless it is as many elements as the
  /// template has, or fewer where that is variable.
  void push(std::span<const T> elements) const;

 private:
  friend class graph;
  using any_source::any_source;
};

/// The end of a channel that the program pulls from. Thread-safe. After the graph it throws.
class any_sink {
 public:
  /// Waits for a block and takes it. Throws error(misuse) before compile() and from a node's
  /// function, error(task_failed) after a node has ended the graph, error(stopped) after stop().
  /// Blocks that lie in the channel when the graph ends cannot be pulled any more.
  datablock pull() const;
  /// None when there is none.
  datablock try_pull() const;
  /// None when there is none after `limit`.
  datablock pull_for(std::chrono::nanoseconds limit) const;

 protected:
  friend class channel_end;
  friend class graph;
  any_sink(std::shared_ptr<graph_core> g, unsigned channel)
      : of_(std::move(g)), channel_(channel) {}
  std::shared_ptr<graph_core> of_;  // also after the graph has ended
  unsigned channel_;
};

template <class T>
class sink : public any_sink {
 public:
  /// The elements of the next block.
  std::vector<T> pull_elements() const {
    const datablock b = pull();
    const auto elements = b.template read<T>();
    return std::vector<T>(elements.begin(), elements.end());
  }

 private:
  friend class graph;
  using any_sink::any_sink;
};

/// One thread builds it (nodes, connect(), source(), sink()) and calls compile(). After that all
/// other functions are thread-safe. A node's function is never called by two threads at once, so
/// it may keep state; functions of different nodes are. Blocks keep their order.
class graph {
 public:
  explicit graph(executor& e, const graph_options& options = {});
  /// stop(). Where it has a heap, it also waits for the kernels of the devices, as ~heap() does, or
  /// the end of the last block that lies there does.
  ~graph();
  graph(const graph&) = delete;

  /// A node that runs on a thread of the host: `f` takes in<T>, out<T> and inout<T>, a port each,
  /// in order. Throws error(invalid_option) when the number of ports is not that of the parameters
  /// or is 0, when a name is used twice, when a template has another element type than the
  /// parameter, and for a sticky port that is written; error(misuse) after compile().
  template <class F>
  node host(const std::string& name, F f, const std::vector<port>& ports) {
    return add<at_ports_of<F>>(name, ports, on_host(std::move(f)), {});
  }
  /// A node that runs on a device: `f`, trivially copyable, is called with a point and the views,
  /// GROSR_DEVICE, for each point of the template of its first output (or of its first port, where
  /// it has none). Where that template is variable, it is called once for each element of the block
  /// at the first port, or, where that first output is inout, of its own block; variable outputs
  /// get as many. A heap_out<T> is no such output. Throws as
  /// host(), and error(invalid_option) for a heap_out<T> of a fixed template or with a count_port.
  template <class F>
  node kernel(const std::string& name, const F& f, const std::vector<port>& ports) {
    return add<at_ports_of<F>>(name, ports, {}, over_points(f), true);
  }
  /// A node that puts work into a stream: `f` takes a simt::stream&, then views of device memory.
  /// It is called on a thread of the host: of the executor, or of the program in compile(), push()
  /// or pull() of this graph or of another one of the executor. It must neither wait nor capture
  /// the stream. Throws as kernel().
  template <class F>
  node on_stream(const std::string& name, F f, const std::vector<port>& ports,
                 stream_work work = stream_work::each_time) {
    return add<at_ports_of<F>>(name, ports, {}, into_stream(std::move(f)),
                               work == stream_work::same_always);
  }
  /// A node whose function stays on the executor's first device, on threads of its own, and runs
  /// there as soon as its blocks have come: for blocks so small that a launch takes longer than the
  /// function. `f` is as for kernel(). Resident nodes that feed each other by channels of capacity
  /// 1 do so without the host. What they get from other nodes and from the program, and give to
  /// these, lies in host memory, which the device reads and writes over the bus; so a node that
  /// reads elements several times had better not be the first. Templates are fixed, and ports
  /// neither sticky nor with a deadline. compile() throws error(invalid_option) where the thread
  /// blocks of the graph's resident nodes have no room on the device at once, or where one changes
  /// in place what others read, too. `f` must not read by loads that take memory for constant while
  /// a kernel runs (__ldg). Otherwise throws as host(), and error(invalid_option) for 0 thread
  /// blocks.
  template <class F>
  node resident(const std::string& name, const F& f, const std::vector<port>& ports,
                const resident_options& options = {}) {
    check_ports(name, ports, at_ports_of<F>::count);
    check_over_points<F>();
    static_assert(!at_ports_of<F>::any_from_heap,
                  "grosr: ports of resident nodes have fixed templates, and a heap_out<T> has not");
    detail::node_description d{name, at_ports_of<F>::describe(ports), {}, {}, false, {}};
    d.resident = detail::resident_of<at_ports_of<F>>::make(f, options);
    return add_node(std::move(d));
  }

  /// Another implementation of a node, with the same parameters: for the host beside one for
  /// devices, or for devices beside one for the host. The executor's policy chooses, run by run.
  /// Throws error(invalid_option) where the node has an implementation of that kind, or other
  /// parameters. A node with a heap_out<T> has no implementation for the host.
  template <class F>
  void also_host(const node& n, F f) {
    add_implementation(n, at_ports_of<F>::parameters(), on_host(std::move(f)), {});
  }
  template <class F>
  void also_kernel(const node& n, const F& f) {
    add_implementation(n, at_ports_of<F>::parameters(), {}, over_points(f));
  }
  template <class F>
  void also_on_stream(const node& n, F f) {
    add_implementation(n, at_ports_of<F>::parameters(), {}, into_stream(std::move(f)));
  }

  /// Blocks that come out of one port go into another. An output may feed many channels. Throws
  /// error(invalid_option) for different templates, an input that has a channel already, a port of
  /// another graph, or capacity 0; error(misuse) after compile().
  void connect(port_ref from, port_ref to, const channel_options& options = {});
  /// The same, with a block that lies in the channel at first: what cycles begin with. Throws
  /// error(invalid_option), too, where push() would for that block.
  void connect(port_ref from, port_ref to, const datablock& first,
               const channel_options& options = {});

  /// Makes a channel from the program to an input. Throws error(invalid_option) for an output, an
  /// input that has a channel, elements of another type than the template's, a port of another
  /// graph, or capacity 0; error(misuse) after compile().
  template <class T>
  flow::source<T> source(port_ref to, const channel_options& options = {}) {
    return source<T>(std::vector{to}, options);
  }
  /// The same for several inputs of one template, each with a channel of its own: a block that is
  /// pushed goes into all of them at once, when there is room in each. Throws error(invalid_option)
  /// for channels that drop blocks, too.
  template <class T>
  flow::source<T> source(const std::vector<port_ref>& to, const channel_options& options = {}) {
    return flow::source<T>(core_, add_source(to, element_type::of<T>(), options));
  }
  /// Makes a channel from an output to the program. Throws as source(), for an input instead of an
  /// output; an output may have several sinks.
  template <class T>
  flow::sink<T> sink(port_ref from, const channel_options& options = {}) {
    return flow::sink<T>(core_, add_sink(from, element_type::of<T>(), options));
  }

  /// Checks the graph, takes the memory that it needs, and lets it run. Throws error
  /// (invalid_option) with one line for each fault: a port without a channel, a node whose inputs
  /// are all sticky, a node without inputs whose channel drops blocks, no nodes, first blocks with
  /// on_error::go_on, and one cycle without a first block. Throws error(misuse) when it is called
  /// again after success; error(out_of_memory), and then it can be called again. Where an output is
  /// a heap_out<T>, error(invalid_option) also for heap_bytes of less than 64 KiB; not while a
  /// kernel of a runtime is resident on a device (park it).
  const plan& compile();

  /// Waits until no node is queued or runs, on the host or on a device. Throws as
  /// any_sink::pull().
  void wait();
  /// Ends the graph. Waits for functions and device work that have begun; starts no others. Blocks
  /// in channels are lost. Where a node's function calls it, it does not wait.
  void stop() noexcept;

  /// In the order in which they were made. Counts since compile().
  std::vector<block_channel_stats> channels() const;
  /// Nodes as they were made, then stretches, which have the times of those that they run.
  std::vector<node_stats> nodes() const;
  /// One line for each failed run, each input whose deadline has passed, and each stretch that
  /// cannot be a CUDA graph. The first 1,000 are kept.
  std::vector<std::string> events() const;
  /// What the graph's heap on a device of the executor holds (grosr/alloc/heap.hpp), when all that
  /// blocks have given back is free. Waits for what uses that, and copies from the device.
  /// Throws error(misuse) where the graph has no heap or is not compiled, error(invalid_option) for
  /// another device, error(device_lost).
  heap_report heap_use(const device& d) const;

 private:
  template <class F>
  using at_ports_of = typename detail::parameters<F>::at_ports;

  template <class Views>
  node add(const std::string& name, const std::vector<port>& ports, detail::function on_host,
           detail::function on_device, bool same_always = false) {
    check_ports(name, ports, Views::count);
    return add_node(
        {name, Views::describe(ports), std::move(on_host), std::move(on_device), same_always, {}});
  }

  template <class F>
  static detail::function on_host(F f) {
    static_assert(std::tuple_size_v<typename detail::parameters<F>::before> == 0,
                  "grosr: a host function takes in<T>, out<T> and inout<T> alone");
    static_assert(!at_ports_of<F>::any_from_heap,
                  "grosr: a heap_out<T> is for functions of devices; a host function takes an "
                  "out<T>, and says set_count()");
    return [f = std::move(f)](detail::invocation& v) mutable { at_ports_of<F>::call(f, v); };
  }
  template <class F>
  static detail::function into_stream(F f) {
    static_assert(
        std::is_same_v<typename detail::parameters<F>::before, std::tuple<simt::stream>>,
        "grosr: a stream function takes a simt::stream&, then in<T>, out<T> and inout<T>");
    return [f = std::move(f)](detail::invocation& v) mutable {
      if (v.loads == nullptr) at_ports_of<F>::call(f, v, *v.stream);
    };
  }
  template <class F>
  static void check_over_points() {
    static_assert(std::is_trivially_copyable_v<F>,
                  "grosr: a kernel function is copied to the device as bytes");
    static_assert(std::is_same_v<typename detail::parameters<F>::before, std::tuple<point>>,
                  "grosr: a kernel function takes a point, then in<T>, out<T> and inout<T>");
  }
  template <class F>
  static detail::function over_points(const F& f) {
    check_over_points<F>();
    return [f](detail::invocation& v) {
      if (v.loads != nullptr)
        at_ports_of<F>::template load<F>(*v.loads);
      else
        at_ports_of<F>::launch(f, v);
    };
  }

  static void check_ports(const std::string& node, const std::vector<port>& ports,
                          std::size_t parameters);
  node add_node(detail::node_description d);
  void add_implementation(const node& n, const std::vector<detail::parameter>& parameters,
                          detail::function on_host, detail::function on_device);
  unsigned add_source(const std::vector<port_ref>& to, const element_type& as,
                      const channel_options& options);
  unsigned add_sink(port_ref from, const element_type& as, const channel_options& options);

  std::shared_ptr<graph_core> core_;
};

template <class T>
void source<T>::push(std::span<const T> elements) const {
  datablock b = make();
  b.set_count(elements.size());
  {
    const auto to = b.template write<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) to[i] = elements[i];
  }
  push(std::move(b));
}

}  // namespace grosr::flow
