// Channels and functions of graphs, and what is told of them.
#include "grosr/flow/detail/graph_plan.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>

namespace grosr::flow {

struct graph_plan::entry {
  grosr::channel_options options;
  std::uint32_t element_bytes = 0, kind = 0;
  queue::batch_buffer memory;
  simt::buffer<unsigned char> server;  // its function's node_state
  std::string function;
  bool connected = false, on_host = false;
  std::vector<std::uint32_t> targets;  // channels that the function holds
  std::uint64_t from_host = 0;         // atomic
};

struct graph_plan::router {
  simt::buffer<unsigned char> targets;
  std::vector<std::uint32_t> numbers;
  const queue::batch_buffer_state* via;
};

struct graph_plan::parts {
  std::deque<entry> channels;
  std::deque<router> routers;
};

struct graph_plan::shared {
  std::mutex told_lock, start_lock;
  std::uint64_t lost_told = 0, foreign_told = 0;
  std::atomic<bool> started{false};
};

graph_plan::graph_plan(device d)
    : device_(d),
      states_(d, simt::space::device, most_channels),
      parts_(new parts),
      shared_(new shared) {}
graph_plan::~graph_plan() = default;

const graph_plan::entry& graph_plan::at(const queue::batch_buffer_state* c) const {
  const auto i = static_cast<std::size_t>(c - states_.data());
  if (c == nullptr || i >= parts_->channels.size())
    throw error(errc::misuse, "graph: this channel is not one of its own: make it with channel()");
  return parts_->channels[i];
}

std::uint32_t graph_plan::channels() const {
  return static_cast<std::uint32_t>(parts_->channels.size());
}

const void* graph_plan::server(const queue::batch_buffer_state* c) const {
  return at(c).server.data();
}

std::uint32_t graph_plan::number_of(const queue::batch_buffer_state* c) const {
  (void)at(c);
  return static_cast<std::uint32_t>(c - states_.data());
}

std::vector<queue::batch_buffer_state> graph_plan::snapshot() const {
  std::vector<queue::batch_buffer_state> all(parts_->channels.size());
  if (!all.empty()) states_.copy_to(all);
  return all;
}

std::string graph_plan::name_of(std::uint32_t i) const {
  const std::string& name = parts_->channels[i].options.name;
  return name.empty() ? "channel " + std::to_string(i) : name;
}

void graph_plan::check_open(const char* what) const {
  if (closed_)
    throw error(errc::misuse, std::string("graph: ") + what +
                                  " after it began to run; build it first, then push or execute");
}

queue::batch_buffer_state* graph_plan::add_channel(const grosr::channel_options& o,
                                                   std::uint32_t element_bytes) {
  check_open("a channel was added");
  if (parts_->channels.size() == most_channels)
    throw error(errc::invalid_option,
                "graph: more than " + std::to_string(most_channels) + " channels were asked for");
  queue::batch_buffer_state* state = states_.data() + parts_->channels.size();
  queue::batch_buffer memory(device_, o, element_bytes, state);
  entry& e = parts_->channels.emplace_back();
  e.options = o;
  e.element_bytes = element_bytes;
  e.memory = std::move(memory);
  return state;
}

void graph_plan::connect(const queue::batch_buffer_state* input, const function& f) {
  check_open("a function was connected");
  const std::uint32_t number = number_of(input);
  entry& e = parts_->channels[number];
  if (e.options.batch > f.max_batch)
    throw error(errc::invalid_option, "graph: '" + name_of(number) + "' has batches of " +
                                          std::to_string(e.options.batch) + ", and " + f.name +
                                          " takes at most " + std::to_string(f.max_batch) +
                                          " elements at a time; give it smaller ones");
  if (e.connected)
    throw error(errc::invalid_option, "graph: '" + name_of(number) + "' has a function already, " +
                                          e.function +
                                          "; a channel has one, to which any number "
                                          "of functions may push");
  e.server = simt::buffer<unsigned char>(device_, simt::space::device, f.bytes);
  const auto* from = static_cast<const unsigned char*>(f.state);
  e.server.copy_from({from, f.bytes});
  e.memory.serve(
      e.server.data(), f.kind,
      e.options.batch == 0 ? std::min(f.default_batch, e.options.capacity) : e.options.batch);
  e.kind = f.kind;
  e.function = f.name;
  e.on_host = f.on_host;
  e.connected = true;
  // A function's channels and routers are members of it: pointers into states_ and to the routers'
  // memory, which nothing else holds. Only who serves a router's channel pushes for it.
  for (std::size_t i = 0; i + sizeof(void*) <= f.function_bytes; i += sizeof(void*)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, from + i, sizeof word);
    for (std::uint32_t k = 0; k < most_channels; ++k)
      if (word == reinterpret_cast<std::uintptr_t>(states_.data() + k)) e.targets.push_back(k);
    for (const router& r : parts_->routers)
      if (word == reinterpret_cast<std::uintptr_t>(r.targets.data()) &&
          (r.via == nullptr || r.via == input))
        e.targets.insert(e.targets.end(), r.numbers.begin(), r.numbers.end());
  }
}

void graph_plan::check_router(const std::vector<const queue::batch_buffer_state*>& targets) const {
  check_open("a router was added");
  if (targets.empty() || targets.size() > most_channels)
    throw error(errc::invalid_option, "graph: a router to " + std::to_string(targets.size()) +
                                          " channels was asked for; it has from 1 to " +
                                          std::to_string(most_channels));
  for (const queue::batch_buffer_state* t : targets) (void)at(t);
}

const void* graph_plan::add_router(const std::vector<const queue::batch_buffer_state*>& targets,
                                   const queue::batch_buffer_state* via) {
  router r;
  r.via = via;
  for (const queue::batch_buffer_state* t : targets) r.numbers.push_back(number_of(t));
  const std::size_t bytes = targets.size() * sizeof(void*);
  r.targets = simt::buffer<unsigned char>(device_, simt::space::device, bytes);
  r.targets.copy_from({reinterpret_cast<const unsigned char*>(targets.data()), bytes});
  return parts_->routers.emplace_back(std::move(r)).targets.data();
}

void graph_plan::close() {
  if (closed_) return;
  for (std::uint32_t i = 0; i < parts_->channels.size(); ++i)
    if (!parts_->channels[i].connected)
      throw error(errc::invalid_option,
                  "graph: '" + name_of(i) +
                      "' has no function: what is pushed there would never be served; connect one");
  if (parts_->channels.empty())
    throw error(errc::invalid_option, "graph: it has no channels: make some, and connect them");
  closed_ = true;
}

void graph_plan::start(void (*begin)(void*), void* graph) {
  std::lock_guard lock(shared_->start_lock);
  if (shared_->started) return;
  close();
  begin(graph);
  shared_->started = true;
}

bool graph_plan::started() const { return shared_->started; }

std::uint32_t graph_plan::count_from_host(const queue::batch_buffer_state* c, std::size_t n) {
  entry& e = const_cast<entry&>(at(c));
  std::atomic_ref(e.from_host).fetch_add(n);
  return e.kind;
}

void graph_plan::throw_if_lost() {
  std::lock_guard lock(shared_->told_lock);
  const std::vector<queue::batch_buffer_state> all = snapshot();
  std::uint64_t lost = 0;
  for (const queue::batch_buffer_state& s : all) lost += s.lost;
  const std::uint64_t foreign = all[0].foreign - shared_->foreign_told;
  lost -= shared_->lost_told;
  shared_->lost_told += lost;
  shared_->foreign_told += foreign;
  if (lost != 0)
    throw error(
        errc::out_of_memory,
        "graph: " + std::to_string(lost) +
            " elements found their channel full and no place in task memory, and were not "
            "served; give channels more capacity, or the runtime more memory (memory_limit, "
            "overflow_limit, swap_limit)");
  if (foreign != 0)
    throw error(errc::misuse,
                "graph: " + std::to_string(foreign) +
                    " elements were pushed into channels that are not of this graph, or for "
                    "channels that a router does not have, and were not served; give its functions "
                    "channels that its channel() made, and routers numbers below their size()");
}

std::vector<channel_stats> graph_plan::stats() const {
  std::vector<channel_stats> all;
  const std::vector<queue::batch_buffer_state> states = snapshot();
  for (std::uint32_t i = 0; i < parts_->channels.size(); ++i) {
    const entry& e = parts_->channels[i];
    const queue::batch_buffer_state& s = states[i];
    channel_stats c;
    c.name = name_of(i);
    c.function = e.function;
    c.from_host = std::atomic_ref(const_cast<std::uint64_t&>(e.from_host)).load();
    c.pushed = s.ready - std::min(s.ready, s.padded);  // read while it changes
    c.refused = s.refused;
    c.alone = s.alone;
    c.batches = s.head / s.batch;
    c.padded = s.padded;
    c.waiting = s.ready > s.head ? s.ready - s.head : 0;
    c.capacity = s.capacity;
    c.batch = s.batch;
    c.bytes = queue::batch_buffer::bytes(s.capacity, e.element_bytes) + sizeof s;
    all.push_back(std::move(c));
  }
  return all;
}

std::string graph_plan::to_dot() const {
  auto quoted = [](const std::string& s) {
    std::string q = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\') q += '\\';
      q += c;
    }
    return q + "\"";
  };
  std::string dot = "digraph grosr {\n  rankdir=LR;\n";
  const auto counts = stats();
  for (std::uint32_t i = 0; i < parts_->channels.size(); ++i) {
    const entry& e = parts_->channels[i];
    const std::string n = std::to_string(i);
    dot += "  c" + n + " [shape=ellipse, label=" +
           quoted(counts[i].name + ": " + std::to_string(counts[i].pushed + counts[i].from_host)) +
           "];\n";
    if (!e.connected) continue;
    // As tasks of their own.
    if (const std::uint64_t past = counts[i].refused + counts[i].alone; past != 0)
      dot += "  t" + n + " [shape=plaintext, label=" +
             quoted("past " + counts[i].name + ", as tasks: " + std::to_string(past)) + "];\n  t" +
             n + " -> f" + n + " [style=dotted];\n";
    dot += "  f" + n + " [shape=box" + (e.on_host ? ", style=dashed" : "") +
           ", label=" + quoted(e.function) + "];\n  c" + n + " -> f" + n + ";\n";
    for (const std::uint32_t to : e.targets)
      dot += "  f" + n + " -> c" + std::to_string(to) + ";\n";
  }
  return dot + "}\n";
}

error graph_plan::still_runs(const std::vector<channel_stats>& before,
                             std::chrono::milliseconds limit) const {
  const auto now = stats();
  std::size_t most = 0;
  auto grown = [&](std::size_t i) {
    const auto all = [](const channel_stats& c) { return c.pushed + c.refused + c.alone; };
    return all(now[i]) - all(before[i]);
  };
  for (std::size_t i = 1; i < now.size(); ++i)
    if (grown(i) > grown(most)) most = i;
  std::string pushers;
  for (const entry& e : parts_->channels)
    for (const std::uint32_t to : e.targets)
      if (to == most) pushers += (pushers.empty() ? "" : ", ") + e.function;
  return error(
      errc::watchdog,
      "graph: it still runs after " + std::to_string(limit.count()) + " ms. Most went into '" +
          now[most].name + "': " + std::to_string(grown(most)) + " elements meanwhile, " +
          std::to_string(now[most].waiting) + " wait there now; what pushes there: " +
          (pushers.empty() ? "the host" : pushers) + ". Do its elements lead to more and more?");
}

}  // namespace grosr::flow
