#include "grosr/flow/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "flow/graph_core.hpp"
#include "flow/refuse.hpp"
#include "flow/stretch.hpp"

namespace grosr::flow {
namespace {

bool fits(const block_template& a, const block_template& b) { return a == b; }

/// Whether elements of a type are what a template has.
bool takes(const block_template& t, const element_type& as) {
  return t.layout() == block_template::records::bytes ? as.bytes == 1 : as == t.element();
}

void check_resident(const node_core& n) {
  const std::string asked = fmt::format("resident node '{}'", n.name);
  if (n.resident.options.thread_blocks == 0)
    refuse(asked + ": 0 thread blocks were asked for; it needs at least 1");
  const auto stays = n.resident.options.idle_timeout;
  if (stays.count() <= 0 || stays > std::chrono::hours(1))
    refuse(
        fmt::format("{}: idle_timeout {} us was asked for; it is more than 0, and at most an hour",
                    asked, stays.count()));
  bool any_input = false;
  for (const port_core& p : n.ports) {
    any_input = any_input || p.is.way != direction::out;
    if (p.is.shape.layout() != block_template::records::fixed || p.is.sticky || p.is.deadline)
      refuse(
          fmt::format("{}: port '{}' is {}; its ports have fixed templates and nothing else: "
                      "make it so, or make the node a kernel",
                      asked, p.is.name,
                      p.is.sticky     ? "sticky"
                      : p.is.deadline ? "one with a deadline"
                                      : p.is.shape.text()));
  }
  if (!any_input) refuse(asked + " has no input; a node without one is a kernel");
}

void check_capacity(const channel_options& o, const std::string& asked) {
  if (o.capacity == 0)
    refuse(fmt::format("{}: capacity 0 was asked for; a channel has room for at least 1 block",
                       asked));
}

}  // namespace

void detail::throw_too_many(std::size_t points, const block_template& shape) {
  refuse(fmt::format(
      "{} elements are at the first port, and a block of {} was to get as many; give it "
      "a larger template",
      points, shape.text()));
}

std::size_t plan::bytes(space_number s) const {
  if (s >= bytes_.size())
    refuse(fmt::format("plan: the bytes of memory {} were asked for; there are memories 0 to {}", s,
                       bytes_.size() - 1));
  return bytes_[s];
}

// ---- building ----

port_core& graph_core::at(const port_ref& p, const char* asked) const {
  if (p.of != this)
    refuse(fmt::format("{}: a port of another graph was given; use ports of graph '{}'", asked,
                       options.name));
  return const_cast<port_core&>(nodes[p.node].ports[p.port]);
}

void graph_core::check_building(const std::string& asked) const {
  if (compiled)
    throw error(errc::misuse, fmt::format("{}: graph '{}' is compiled and does not change any "
                                          "more; build all of it before compile()",
                                          asked, options.name));
}

port_ref node::operator[](const std::string& port) const {
  const auto& ports = of_->nodes[number_].ports;
  std::string all;
  for (unsigned i = 0; i < ports.size(); ++i) {
    if (ports[i].is.name == port) return {of_, number_, i};
    all += (i == 0 ? "" : ", ") + ports[i].is.name;
  }
  refuse(fmt::format("node '{}' has no port '{}'; it has {}", of_->nodes[number_].name, port, all));
}

graph::graph(executor& e, const graph_options& options)
    : core_(std::make_shared<graph_core>(e.core_, options)) {
  if (options.runs_in_flight == 0 || options.runs_in_flight > most_runs_in_flight)
    refuse(fmt::format("graph '{}': {} runs in flight were asked for; there are 1 to {}",
                       options.name, options.runs_in_flight, most_runs_in_flight));
}

graph::~graph() {
  if (core_->where->made_in != simt::this_process()) {  // as executor's
    simt::leave(new std::shared_ptr<graph_core>(core_));
    return;
  }
  stop();
  for (const node_core& n : core_->nodes)
    if (n.runs_all_of) n.runs_all_of->prepare({});
  core_->give_back_memory();
}

void graph::check_ports(const std::string& node, const std::vector<port>& ports,
                        std::size_t parameters) {
  if (ports.size() != parameters || ports.empty())
    refuse(
        fmt::format("node '{}': {} ports were named, and its function takes {} views; name one "
                    "port for each, at least one",
                    node, ports.size(), parameters));
}

node graph::add_node(detail::node_description d) {
  core_->check_building("add node '" + d.name + "'");
  node_core n;
  for (const node_core& other : core_->nodes)
    if (other.name == d.name)
      refuse(fmt::format("graph '{}' has a node '{}' already; give this one another name",
                         core_->options.name, d.name));
  for (detail::port_description& p : d.ports) {
    const std::string name = d.name + "." + p.name;
    for (const port_core& other : n.ports)
      if (other.is.name == p.name)
        refuse(fmt::format("node '{}' has two ports '{}'; give one another name", d.name, p.name));
    if (!takes(p.shape, p.element))
      refuse(
          fmt::format("port '{}': its template is {}, and the function takes elements of {}; "
                      "make them the same",
                      name, p.shape.text(), p.element.name));
    if (p.sticky && p.way != direction::in)
      refuse(
          fmt::format("port '{}' is sticky, and its function writes it; only inputs that are "
                      "read can be sticky",
                      name));
    if (p.from_heap && p.shape.layout() == block_template::records::fixed)
      refuse(
          fmt::format("port '{}': its function allocates as many elements as there are, and {} "
                      "has all of them; make the template variable",
                      name, p.shape.text()));
    if (p.from_heap && !p.count_port.empty())
      refuse(
          fmt::format("port '{}' is to have its number of elements at port '{}', but its function "
                      "says it to the heap; leave count_port empty",
                      name, p.count_port));
    if (p.from_heap) n.heap_outs += 1;
    n.ports.emplace_back(std::move(p));
  }
  n.counts_late = n.heap_outs != 0;
  for (port_core& p : n.ports) {
    if (p.is.count_port.empty()) continue;
    const std::string name = d.name + "." + p.is.name;
    const auto count = std::find_if(n.ports.begin(), n.ports.end(), [&](const port_core& o) {
      return o.is.name == p.is.count_port;
    });
    if (count == n.ports.end() || count->is.way != direction::out ||
        !(count->is.shape == block_template::of<std::uint32_t>(1)))
      refuse(
          fmt::format("port '{}': its number of elements is to be at port '{}', which the node "
                      "does not have, or not as an output of one std::uint32_t; make it that",
                      name, p.is.count_port));
    if (p.is.way != direction::out || p.is.shape.layout() == block_template::records::fixed)
      refuse(fmt::format(
          "port '{}': its number of elements is to be at port '{}', but it is {}; only "
          "an output of variable records or bytes has as many as it says",
          name, p.is.count_port, p.is.way != direction::out ? "no output" : p.is.shape.text()));
    p.count_at = static_cast<unsigned>(count - n.ports.begin());
    count->counts = n.counts_late = true;
  }
  n.name = n.stats.name = d.name;
  n.on_host = std::move(d.on_host);
  n.on_device = std::move(d.on_device);
  n.same_always = d.same_always;
  n.resident = std::move(d.resident);
  if (n.resident) check_resident(n);
  core_->nodes.push_back(std::move(n));
  return node(core_.get(), static_cast<unsigned>(core_->nodes.size() - 1));
}

void graph::add_implementation(const node& n, const std::vector<detail::parameter>& parameters,
                               detail::function on_host, detail::function on_device) {
  if (n.of_ != core_.get()) refuse("another implementation of a node: it is of another graph");
  node_core& core = core_->nodes[n.number_];
  core_->check_building("add an implementation of node '" + core.name + "'");
  if (core.resident)
    refuse(
        fmt::format("node '{}' is resident, and has no other implementation; make it a kernel to "
                    "give it one",
                    core.name));
  for (const port_core& p : core.ports)
    if (on_host && p.is.from_heap)
      refuse(
          fmt::format("node '{}': port '{}' has its memory from the heap of a device, so the node "
                      "does not run on the host; give it no implementation there",
                      core.name, p.is.name));
  bool same = parameters.size() == core.ports.size();
  for (std::size_t i = 0; same && i < parameters.size(); ++i)
    same = parameters[i] == detail::parameter{core.ports[i].is.way, core.ports[i].is.element,
                                              core.ports[i].is.from_heap};
  if (!same)
    refuse(
        fmt::format("node '{}': another implementation takes other views; let it take the same, in "
                    "the same order",
                    core.name));
  detail::function& to = on_host ? core.on_host : core.on_device;
  if (to)
    refuse(fmt::format("node '{}' has a function for {} already; it has one of each kind at most",
                       core.name, on_host ? "the host" : "devices"));
  to = on_host ? std::move(on_host) : std::move(on_device);
}

void graph::connect(port_ref from, port_ref to, const channel_options& o) {
  connect(from, to, datablock(), o);
}

void graph::connect(port_ref from, port_ref to, const datablock& first, const channel_options& o) {
  core_->check_building("connect");
  port_core& a = core_->at(from, "connect");
  port_core& b = core_->at(to, "connect");
  const std::string asked = fmt::format("connect {} to {}", core_->port_name(from.node, from.port),
                                        core_->port_name(to.node, to.port));
  if (a.is.way == direction::in) refuse(asked + ": the first is an input; name an output");
  if (b.is.way == direction::out) refuse(asked + ": the second is an output; name an input");
  if (b.in != block_channel::outside)
    refuse(asked + ": that input has a channel already; it takes one");
  if (!fits(a.is.shape, b.is.shape))
    refuse(fmt::format("{}: {} comes out, and {} goes in; make the templates the same", asked,
                       a.is.shape.text(), b.is.shape.text()));
  if (first && !core_->where->memory.made(first))
    refuse(asked +
           ": the first block is of another executor's memory; make it with memory().make()");
  if (first && !fits(first.shape(), a.is.shape))
    refuse(fmt::format("{}: the first block is {}, and {} goes in", asked, first.shape().text(),
                       b.is.shape.text()));
  if (first && !block_users::is_written(first))
    refuse(fmt::format("{}: the first block is one of {} that nobody has written; write it first",
                       asked, first.shape().text()));
  check_capacity(o, asked);
  const auto number = static_cast<unsigned>(core_->channels.size());
  block_channel& c =
      core_->channels.emplace_back(from.node, from.port, to.node, to.port, a.is.shape, o);
  if (first) c.blocks.push_back({first, {}});
  c.goes_back = static_cast<bool>(first);
  a.out.push_back(number);
  b.in = number;
}

unsigned graph::add_source(const std::vector<port_ref>& to, const element_type& as,
                           const channel_options& o) {
  core_->check_building("make a source");
  if (to.empty()) refuse("make a source: no input was named; name one, or several");
  if (to.size() > 1 && o.full != when_full::block)
    refuse(
        "make a source of several inputs: their channels are to drop blocks when they are full, "
        "each "
        "by itself, and the inputs would get different ones; let them block");
  const auto first = static_cast<unsigned>(core_->channels.size());
  const block_template& shape = core_->at(to.front(), "make a source").is.shape;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const port_core& p = core_->at(to[i], "make a source");
    const std::string asked = "make a source of " + core_->port_name(to[i].node, to[i].port);
    if (p.is.way == direction::out) refuse(asked + ": that is an output; make a sink of it");
    if (p.in != block_channel::outside)
      refuse(asked + ": that input has a channel already; it takes one");
    for (std::size_t k = 0; k < i; ++k)
      if (&core_->at(to[k], "make a source") == &p)
        refuse(asked + ": that input is named twice; name it once");
    if (!takes(p.is.shape, as))
      refuse(fmt::format("{}: elements of {}, and its template is {}", asked, as.name,
                         p.is.shape.text()));
    if (!fits(p.is.shape, shape))
      refuse(fmt::format("{}: its template is {}, and that of {} is {}; make them the same", asked,
                         p.is.shape.text(), core_->port_name(to[0].node, to[0].port),
                         shape.text()));
    check_capacity(o, asked);
  }
  for (const port_ref& r : to) {
    port_core& p = core_->at(r, "make a source");
    p.in = static_cast<unsigned>(core_->channels.size());
    core_->channels.emplace_back(block_channel::outside, 0u, r.node, r.port, p.is.shape, o);
    core_->channels.back().first_of_source = first;
    core_->channels[first].source.push_back(p.in);
  }
  return first;
}

unsigned graph::add_sink(port_ref from, const element_type& as, const channel_options& o) {
  core_->check_building("make a sink");
  port_core& p = core_->at(from, "make a sink");
  const std::string asked = "make a sink of " + core_->port_name(from.node, from.port);
  if (p.is.way == direction::in) refuse(asked + ": that is an input; make a source of it");
  if (!takes(p.is.shape, as))
    refuse(fmt::format("{}: elements of {}, and its template is {}", asked, as.name,
                       p.is.shape.text()));
  check_capacity(o, asked);
  const auto number = static_cast<unsigned>(core_->channels.size());
  core_->channels.emplace_back(from.node, from.port, block_channel::outside, 0u, p.is.shape, o);
  p.out.push_back(number);
  return number;
}

/// A first launch would wait for kernels that stay on a device, and they may wait for it.
void graph_core::load_kernels() const {
  for (const node_core& n : nodes)
    for (const device& d : where->memory.devices()) {
      if (!n.on_device || n.runs_all_of || !d.is_cuda()) continue;
      detail::invocation v;
      v.loads = &d;
      n.on_device(v);
    }
}

const plan& graph::compile() {
  core_->check_building("compile");
  core_->check_whole();
  executor_core& e = *core_->where;
  std::unique_ptr<plan> made;
  std::vector<std::function<void()>> undo;
  try {
    core_->find_stretches();
    core_->find_heap_channels();
    made = core_->make_plan();
    for (space_number s = 0; s < made->bytes_.size(); ++s) {
      const device d = s == host_space ? device() : e.memory.devices()[s - 1];
      if (const std::size_t all = d.properties().memory; made->bytes_[s] > all)
        throw error(errc::out_of_memory,
                    fmt::format("graph '{}': its plan needs {} of memory of {}, which has {}; "
                                "lower the capacity of its channels",
                                core_->options.name, simt::in_units(made->bytes_[s]), d.name(),
                                simt::in_units(all)));
    }
    for (space_number s = 0; s < made->buffers_.size(); ++s)
      for (const auto& [bytes, n] : made->buffers_[s]) {
        e.memory.reserve(s, bytes, n);
        undo.push_back([&e, s, bytes = bytes, n = n] { e.memory.unreserve(s, bytes, n); });
      }
    core_->make_heaps();
    core_->check_residency();
    core_->load_kernels();
    for (const node_core& n : core_->nodes)
      if (n.runs_all_of) n.runs_all_of->prepare(e.memory.devices());
  } catch (...) {
    for (const auto& f : undo) f();
    core_->heaps.clear();
    core_->undo_stretches();
    throw;
  }
  std::unique_lock lock(e.mutex);
  core_->compiled = std::move(made);
  core_->find_prefetches();
  core_->choose_streams();
  for (node_core& n : core_->nodes) {
    n.count_inputs();
    if (n.part_of != block_channel::outside) continue;  // its inputs never come
    n.latency.start();
    n.runs_on.resize(e.memory.devices().size() + 1);
    n.first_home = std::exchange(e.next_home, e.next_home + n.ports.size() * core_->homes());
    if (e.trace) n.track = e.trace->add_track(core_->options.name + ": " + n.name);
  }
  if (core_->has_deadlines()) {
    e.watched.push_back(core_.get());
    e.work.notify_all();  // those who sleep without looking at the time
  }
  for (unsigned n = 0; n < core_->nodes.size(); ++n) core_->settle(n);
  e.begin_queued(lock, true);
  return *core_->compiled;
}

}  // namespace grosr::flow
