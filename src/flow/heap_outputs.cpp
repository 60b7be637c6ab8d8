// Runs of nodes whose functions allocate what they write.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "flow/block_heap.hpp"
#include "flow/graph_core.hpp"
#include "flow/refuse.hpp"
#include "grosr/flow/heap_out.hpp"

namespace grosr::flow {

/// With the lock: which channels have blocks of heaps.
void graph_core::find_heap_channels() {
  std::vector<unsigned> next;
  for (block_channel& c : channels) c.from_heap = false;
  for (const node_core& n : nodes)
    for (const port_core& p : n.ports)
      if (p.is.from_heap) next.insert(next.end(), p.out.begin(), p.out.end());
  while (!next.empty()) {
    block_channel& c = channels[next.back()];
    next.pop_back();
    if (std::exchange(c.from_heap, true) || c.to == block_channel::outside) continue;
    const port_core& p = nodes[c.to].ports[c.to_port];
    if (p.is.way == direction::inout) next.insert(next.end(), p.out.begin(), p.out.end());
  }
}

bool graph_core::has_heap_outputs() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const node_core& n) { return n.heap_outs != 0; });
}

/// Throws as heap().
void graph_core::make_heaps() {
  if (!has_heap_outputs()) return;
  where->memory.free_borrowed();  // heaps of graphs that have ended
  for (const device& d : where->memory.devices())
    heaps.push_back(std::make_shared<block_heap>(d, options.heap_bytes));
}

/// Buffers that blocks of heaps had in other memories, and in which no block is.
void graph_core::free_spare_buffers() noexcept {
  std::size_t most = 0;
  for (const block_channel& c : channels)
    if (c.from_heap) most = std::max(most, c.shape.size_bytes());
  if (most == 0) return;
  for (space_number s = 0; s <= where->memory.devices().size(); ++s)
    for (std::size_t bytes = 256; bytes / 2 < most; bytes *= 2)
      where->memory.unreserve(s, bytes, 0);
}

heap_report graph::heap_use(const device& d) const {
  const space_number s = core_->where->memory.space_of(d);
  std::shared_ptr<block_heap> h;
  {
    std::lock_guard lock(core_->where->mutex);
    if (core_->compiled && !core_->heaps.empty()) h = core_->heaps[s - 1];
  }
  if (!h)
    throw error(errc::misuse,
                fmt::format("graph '{}': what its heap holds was asked for, and it has none; it "
                            "has one after compile(), if an output is a heap_out<T>",
                            core_->options.name));
  return h->report();
}

// ---- a run ----

/// The stream comes to the function when the heap has room, and descriptors say nothing yet.
void executor_core::begin_descriptors(invocation_core& r, simt::timeline& t, space_number s,
                                      std::vector<device_access>& in_use) {
  const node_core& n = r.of->nodes[r.node];
  if (n.heap_outs == 0) return;
  block_heap& heap = *r.of->heaps[s - 1];
  heap.free_before(t);
  const datablock all = memory.make(block_template::of<heap_descriptor>(n.heap_outs));
  in_use.push_back(all.write(t, s));
  auto* next = static_cast<heap_descriptor*>(in_use.back().data());
  static_assert(sizeof(heap_descriptor) <= zero_bytes);
  for (std::size_t i = 0; i < n.ports.size(); ++i) {
    if (!n.ports[i].is.from_heap) continue;
    r.call.ports[i].shape = &n.ports[i].is.shape;
    r.call.ports[i].heap = &heap.ref();
    r.call.ports[i].data = next;
    t.copy(next++, zero.data(), sizeof(heap_descriptor));
  }
  r.descriptors = all;
}

/// Behind the function. Whether there are any.
bool executor_core::bring_descriptors(invocation_core& r, simt::timeline& t) {
  if (!r.descriptors) return false;
  const std::unique_ptr<looks_for> whom =
      trace ? std::make_unique<looks_for>(
                  r.of->options.name + ": " + r.of->nodes[r.node].name,
                  "ahead: the executor looks up what the function has allocated")
            : nullptr;
  copy_counts of_no_channel;
  block_users::bring_to_host(r.descriptors, {&t}, of_no_channel);
  return true;
}

/// Of a run that is over. What was allocated is a block's, which gives it back, also where the run
/// has failed.
std::exception_ptr executor_core::take_descriptors(invocation_core& r) {
  if (!r.descriptors) return nullptr;
  const node_core& n = r.of->nodes[r.node];
  try {
    block_heap& heap = *r.of->heaps[r.unit - 1];
    const auto space = static_cast<space_number>(r.unit);
    const auto all = r.descriptors.read<heap_descriptor>();
    // First, as nothing that goes wrong later is to lose it.
    std::size_t next = 0;
    for (std::size_t i = 0; i < n.ports.size(); ++i) {
      if (!n.ports[i].is.from_heap) continue;
      const heap_descriptor& d = all[next++];
      if (d.data == nullptr) continue;
      block_users::take_from(heap, r.failed ? memory.make(n.ports[i].is.shape) : r.blocks[i], space,
                             d.data, d.count);
    }
    if (r.failed) return nullptr;
    std::string wrong;
    next = 0;
    for (std::size_t i = 0; i < n.ports.size(); ++i) {
      const port_core& p = n.ports[i];
      if (!p.is.from_heap) continue;
      const heap_descriptor& d = all[next++];
      const std::size_t most = p.is.shape.count(), each = p.is.shape.element().bytes;
      r.call.ports[i].count = d.count;
      if (!wrong.empty()) continue;
      if (d.calls > 1)
        wrong = fmt::format("port '{}': allocate() was called {} times in one run; call it once",
                            p.is.name, d.calls);
      else if (d.count > most)
        wrong = fmt::format(
            "port '{}': {} elements were allocated for a block of {}; allocate at "
            "most {}",
            p.is.name, d.count, p.is.shape.text(), most);
      else if (d.data == nullptr && d.count * each > heap.bytes())
        wrong = fmt::format(
            "port '{}': {} bytes were allocated for {} elements, and the graph's heap on {} has {} "
            "bytes in all; raise graph_options::heap_bytes",
            p.is.name, d.count * each, d.count, memory.devices()[r.unit - 1].name(), heap.bytes());
      else if (d.data == nullptr && d.count != 0)
        wrong = fmt::format(
            "port '{}': {} bytes were allocated for {} elements, and the graph's heap on {} has no "
            "room for them: it has {} bytes, of which other blocks have {}; let blocks go earlier, "
            "or give it more (graph_options::heap_bytes)",
            p.is.name, d.count * each, d.count, memory.devices()[r.unit - 1].name(), heap.bytes(),
            heap.in_use());
      else if (d.count == 0)
        block_users::take_from(heap, r.blocks[i], space, nullptr, 0);
    }
    if (!wrong.empty()) refuse(wrong);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace grosr::flow
