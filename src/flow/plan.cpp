// What compile() checks and works out.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "flow/graph_core.hpp"
#include "flow/stretch.hpp"
#include "grosr/flow/heap_out.hpp"

namespace grosr::flow {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

const char* place_of(const node_core& n) {
  if (n.resident) return "resident";
  return !n.on_device ? "host" : n.on_host ? "host or device" : "device";
}

const char* text_of(when_full f) {
  return f == when_full::block ? "block" : f == when_full::drop_oldest ? "drop oldest" : "latest";
}

/// Nodes, each behind those that feed it by channels that count; without those on cycles of such
/// channels, and behind these.
template <class Counts>
std::vector<unsigned> ordered(const graph_core& g, const Counts& counts) {
  std::vector<unsigned> order, lacks(g.nodes.size(), 0);
  for (const block_channel& c : g.channels)
    if (counts(c)) ++lacks[c.to];
  for (unsigned n = 0; n < g.nodes.size(); ++n)
    if (lacks[n] == 0) order.push_back(n);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const port_core& p : g.nodes[order[i]].ports)
      for (const unsigned c : p.out)
        if (counts(g.channels[c]) && --lacks[g.channels[c].to] == 0)
          order.push_back(g.channels[c].to);
  return order;
}

bool is_between_nodes(const block_channel& c) {
  return c.from != block_channel::outside && c.to != block_channel::outside &&
         c.inside == block_channel::outside;
}

/// A cycle of channels without a first block, as "a -> b -> a"; empty: none.
std::string cycle_without_block(const graph_core& g) {
  const auto counts = [](const block_channel& c) {
    return is_between_nodes(c) && c.blocks.empty();
  };
  std::vector<bool> left(g.nodes.size(), true);
  for (const unsigned n : ordered(g, counts)) left[n] = false;
  const auto first = std::find(left.begin(), left.end(), true);
  if (first == left.end()) return "";
  // Each of them has one before it among them: going back, one comes twice.
  std::vector<unsigned> path{static_cast<unsigned>(first - left.begin())};
  std::vector<unsigned> seen(g.nodes.size(), ~0u);
  while (seen[path.back()] == ~0u) {
    seen[path.back()] = static_cast<unsigned>(path.size() - 1);
    for (const port_core& p : g.nodes[path.back()].ports)
      if (p.is.way != direction::out && p.in != block_channel::outside &&
          counts(g.channels[p.in]) && left[g.channels[p.in].from]) {
        path.push_back(g.channels[p.in].from);
        break;
      }
  }
  std::string text;
  for (std::size_t i = path.size(); i-- > seen[path.back()];)
    text += (text.empty() ? "" : " -> ") + g.nodes[path[i]].name;
  return text;
}

/// Whether blocks of a channel may have a view in a memory: who makes them, who gets them, here or
/// by another channel of the same output, looks at them there, or they pass it on their way.
bool is_looked_at(const graph_core& g, const block_channel& c, space_number s) {
  const auto& devices = g.where->memory.devices();
  bool on_device = false;
  const auto looks = [&](unsigned n) {
    if (n == block_channel::outside) return s == host_space;
    on_device = on_device || g.nodes[n].on_device;
    return static_cast<bool>(s == host_space ? g.nodes[n].on_host : g.nodes[n].on_device);
  };
  bool any = looks(c.from) || looks(c.to);
  if (c.from != block_channel::outside && g.nodes[c.from].ports[c.from_port].counts)
    any = any || s == host_space;
  if (c.from != block_channel::outside)
    for (const unsigned other : g.nodes[c.from].ports[c.from_port].out)
      any = looks(g.channels[other].to) || any;
  const bool mixed = std::any_of(devices.begin(), devices.end(),
                                 [&](const device& d) { return d.kind() != devices[0].kind(); });
  return any || (s == host_space && on_device && mixed);
}

}  // namespace

void graph_core::find_prefetches() {
  const auto is_for_host = [&](unsigned c) {
    const block_channel& to = channels[c];
    return to.options.prefetch && (to.to == block_channel::outside || !nodes[to.to].on_device);
  };
  for (node_core& n : nodes)
    for (port_core& p : n.ports) {
      const auto c = std::find_if(p.out.begin(), p.out.end(), is_for_host);
      const bool any = c != p.out.end() && !p.is.from_heap;
      // Runs look at it without the lock.
      std::atomic_ref(p.to_host).store(any ? *c : block_channel::outside,
                                       std::memory_order_relaxed);
    }
}

void graph_core::choose_streams() {
  std::vector<bool> has(nodes.size(), false);
  std::vector<unsigned> all = in_order();
  for (const unsigned n : all) has[n] = true;
  for (unsigned n = 0; n < nodes.size(); ++n)
    if (!has[n]) all.push_back(n);
  has.assign(nodes.size(), false);
  for (const unsigned n : all) {
    if (!nodes[n].on_device || nodes[n].part_of != block_channel::outside) continue;
    // Behind the first node before it whose first consumer it is.
    bool found = false;
    for (const port_core& p : nodes[n].ports) {
      if (found || p.in == block_channel::outside) continue;
      const block_channel& c = channels[p.in];
      if (c.from == block_channel::outside || !has[c.from]) continue;
      if (nodes[c.from].ports[c.from_port].out.front() != p.in) continue;
      nodes[n].stream = nodes[c.from].stream;
      found = true;
    }
    if (!found) nodes[n].stream = where->next_stream++ % streams_each;
    has[n] = true;  // a stream
  }
}

void graph_core::give_back_memory() noexcept {
  // Without the lock: who frees memory waits for streams.
  std::vector<datablock> gone;
  {
    std::lock_guard lock(where->mutex);
    if (!compiled) return;
    for (block_channel& c : channels) {
      for (moving_block& b : c.blocks) gone.push_back(std::move(b.block));
      c.blocks.clear();
    }
    for (node_core& n : nodes)
      for (port_core& p : n.ports) {
        gone.push_back(std::move(p.held.block));
        gone.push_back(std::move(p.made.block));
        p.held = p.made = {};
      }
  }
  gone.clear();
  for (space_number s = 0; s < compiled->buffers_.size(); ++s)
    for (const auto& [bytes, buffers] : compiled->buffers_[s])
      where->memory.unreserve(s, bytes, buffers);
  free_spare_buffers();
  heaps.clear();
  where->memory.free_borrowed();  // which keeps heaps
}

std::vector<unsigned> graph_core::in_order() const { return ordered(*this, is_between_nodes); }

void graph_core::check_whole() const {
  std::string wrong;
  const auto complain = [&](const std::string& text) {
    wrong += (wrong.empty() ? "" : "\n") + text;
  };
  for (unsigned n = 0; n < nodes.size(); ++n) {
    bool any_input = false, all_sticky = true;
    for (unsigned i = 0; i < nodes[n].ports.size(); ++i) {
      const port_core& p = nodes[n].ports[i];
      if (p.is.way != direction::out) {
        any_input = true;
        all_sticky = all_sticky && p.is.sticky;
      }
      if (p.is.way != direction::out && p.in == block_channel::outside)
        complain(
            fmt::format("graph '{}': input {} has no channel; connect it, or make a source of it",
                        options.name, port_name(n, i)));
      if (p.is.way != direction::in && p.out.empty() && !p.counts)
        complain(
            fmt::format("graph '{}': output {} has no channel; connect it, or make a sink of it",
                        options.name, port_name(n, i)));
    }
    if (!any_input)
      for (const port_core& p : nodes[n].ports)
        for (const unsigned c : p.out)
          if (channels[c].options.full != when_full::block)
            complain(
                fmt::format("graph '{}': node '{}' has no input, and its channel to {} is never "
                            "full, so it would never stop; let that channel block",
                            options.name, nodes[n].name, to_name(channels[c])));
    if (any_input && all_sticky)
      complain(
          fmt::format("graph '{}': all inputs of node '{}' are sticky, so it would never stop; "
                      "make one that is not",
                      options.name, nodes[n].name));
  }
  if (options.heap_bytes < alloc::slab_bytes)
    for (unsigned n = 0; n < nodes.size(); ++n)
      for (unsigned i = 0; i < nodes[n].ports.size(); ++i)
        if (nodes[n].ports[i].is.from_heap)
          complain(
              fmt::format("graph '{}': output {} is allocated from the graph's heap, and it has "
                          "{}; set graph_options::heap_bytes to the bytes of all such blocks "
                          "that are there at a time, at least {}",
                          options.name, port_name(n, i),
                          options.heap_bytes == 0 ? std::string("none")
                                                  : fmt::format("{} bytes", options.heap_bytes),
                          alloc::slab_bytes));
  if (nodes.empty()) complain(fmt::format("graph '{}' has no nodes; add some", options.name));
  if (const std::string cycle = cycle_without_block(*this); !cycle.empty())
    complain(
        fmt::format("graph '{}': the cycle {} has no first block, so no node of it ever runs; "
                    "give connect() one",
                    options.name, cycle));
  if (options.errors == on_error::go_on)
    for (const block_channel& c : channels)
      if (!c.blocks.empty()) {
        complain(
            fmt::format("graph '{}' has a cycle by {} and goes on when functions throw: the cycle "
                        "would stand still then; let it end",
                        options.name, to_name(c)));
        break;
      }
  if (!wrong.empty()) throw error(errc::invalid_option, wrong);
}

std::unique_ptr<plan> graph_core::make_plan() const {
  auto made = std::make_unique<plan>();
  const std::size_t spaces = where->memory.devices().size() + 1;
  made->bytes_.resize(spaces);
  made->buffers_.resize(spaces);
  std::string text,
      dot = fmt::format("digraph {} {{\n  rankdir=LR; node [shape=box];\n", quoted(options.name));
  std::string json = fmt::format("{{\"graph\": {}, \"nodes\": [", quoted(options.name));
  // A block that others have, too, is copied where a stretch changes it and nobody gets it.
  const auto add_changed_in_place = [&](const node_core& n, space_number s) {
    for (const port_core& p : n.ports) {
      if (p.is.way != direction::inout || !p.out.empty()) continue;
      const std::size_t block = (p.is.shape.size_bytes() + 255) / 256 * 256;
      made->buffers_[s][block] += 1 + options.runs_in_flight;
      made->bytes_[s] += (1 + options.runs_in_flight) * block;
    }
  };
  if (has_heap_outputs()) {
    const std::size_t heap =
        (options.heap_bytes + alloc::slab_bytes - 1) / alloc::slab_bytes * alloc::slab_bytes;
    for (space_number s = host_space + 1; s < spaces; ++s) made->bytes_[s] += heap;
    text += fmt::format("heap: {} on each device\n", simt::in_units(heap));
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].runs_all_of) {
      const std::size_t bytes = nodes[n].runs_all_of->bytes();
      if (nodes[n].runs_all_of->is_resident()) {
        made->bytes_[host_space + 1] += bytes;
        add_changed_in_place(nodes[n], host_space);
        text += fmt::format("stretch {}: stays on {}, and has {} there\n", nodes[n].name,
                            where->memory.devices().front().name(), simt::in_units(bytes));
        continue;
      }
      for (space_number s = host_space + 1; s < spaces; ++s) {
        made->bytes_[s] += bytes;
        add_changed_in_place(nodes[n], s);
      }
      text += fmt::format("stretch {}: runs as one, and has {} on each device\n", nodes[n].name,
                          simt::in_units(bytes));
      continue;
    }
    const auto add_for_host_to_see = [&](std::size_t bytes) {
      bytes = (bytes + 255) / 256 * 256;
      for (space_number s = 0; s < spaces; ++s) {
        made->buffers_[s][bytes] += 2;
        made->bytes_[s] += 2 * bytes;
      }
    };
    for (const port_core& p : nodes[n].ports)
      if (p.counts && p.out.empty()) add_for_host_to_see(sizeof(std::uint32_t));
    if (nodes[n].heap_outs != 0) add_for_host_to_see(nodes[n].heap_outs * sizeof(heap_descriptor));
    const std::string in_stretch =
        nodes[n].part_of == block_channel::outside ? "" : nodes[nodes[n].part_of].name;
    text += fmt::format("node {} ({})\n", nodes[n].name, place_of(nodes[n]));
    dot += fmt::format("  {} [label={}];\n", quoted(nodes[n].name),
                       quoted(nodes[n].name + "\\n" + place_of(nodes[n])));
    json +=
        fmt::format("{}{{\"name\": {}, \"place\": \"{}\", \"stretch\": {}}}", n == 0 ? "" : ", ",
                    quoted(nodes[n].name), place_of(nodes[n]), quoted(in_stretch));
  }
  json += "], \"channels\": [";
  unsigned outside = 0;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const block_channel& c = channels[i];
    // What waits in the channel, lies at the input, is being used, and is being made.
    const std::size_t blocks = std::size_t{c.options.capacity} + 2 + options.runs_in_flight;
    const std::size_t bytes = (c.shape.size_bytes() + 255) / 256 * 256;  // as pools have them
    const std::size_t each = c.from_heap ? 256 : bytes;
    for (space_number s = 0; s < spaces; ++s) {
      if (c.inside != block_channel::outside || !is_looked_at(*this, c, s)) continue;
      made->buffers_[s][each] += blocks;
      made->bytes_[s] += blocks * each;
    }
    text += fmt::format("channel {} -> {}: {}, capacity {}, when full {}{}\n", from_name(c),
                        to_name(c), c.shape.text(), c.options.capacity, text_of(c.options.full),
                        c.from_heap ? ", from the heap" : "");
    const auto end = [&](unsigned n, const char* name) {
      if (n != block_channel::outside) return quoted(nodes[n].name);
      const std::string id = fmt::format("{}{}", name, ++outside);
      dot += fmt::format("  {} [shape=plaintext, label=\"{}\"];\n", id, name);
      return id;
    };
    const std::string a = end(c.named.from, "source"), b = end(c.named.to, "sink");
    dot += fmt::format("  {} -> {} [label={}];\n", a, b, quoted(c.shape.text()));
    json += fmt::format(
        "{}{{\"from\": {}, \"to\": {}, \"template\": {}, \"block_bytes\": {}, \"capacity\": {}, "
        "\"when_full\": \"{}\", \"first_block\": {}}}",
        i == 0 ? "" : ", ", quoted(from_name(c)), quoted(to_name(c)), quoted(c.shape.text()), bytes,
        c.options.capacity, text_of(c.options.full), c.blocks.empty() ? "false" : "true");
  }
  json += "], \"bytes\": {";
  for (space_number s = 0; s < spaces; ++s) {
    const std::string name = s == host_space ? "host" : where->memory.devices()[s - 1].name();
    text += fmt::format("memory of {}: {}\n", name, simt::in_units(made->bytes_[s]));
    json += fmt::format("{}{}: {}", s == 0 ? "" : ", ", quoted(name), made->bytes_[s]);
  }
  made->text_ = std::move(text);
  made->dot_ = dot + "}\n";
  made->json_ = json + "}}";
  return made;
}

}  // namespace grosr::flow
