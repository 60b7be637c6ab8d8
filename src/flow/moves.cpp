// How blocks move in a graph: out of nodes, through channels, into nodes.
#include <fmt/format.h>

#include "flow/graph_core.hpp"

namespace grosr::flow {

void graph_core::check_running() const {
  if (failure) std::rethrow_exception(failure);
  if (ended)
    throw error(errc::stopped, fmt::format("graph '{}' has ended; make another one", options.name));
  if (!compiled)
    throw error(errc::misuse,
                fmt::format("graph '{}' is not compiled yet; call compile() first", options.name));
}

void graph_core::note(const std::string& event) {
  if (events.size() < 1000) events.push_back(event);
}

void graph_core::deliver(unsigned number, moving_block b) {
  block_channel& c = channels[number];
  if (c.goes_back) b.from.born = origin::unknown;
  ++c.came;
  if (c.options.full == when_full::latest && c.blocks.size() >= c.options.capacity) {
    c.dropped += c.blocks.size();
    c.blocks.clear();
  } else if (c.blocks.size() >= c.options.capacity) {
    ++c.dropped;
    c.blocks.pop_front();
  }
  c.blocks.push_back(std::move(b));
  if (c.to == block_channel::outside) c.waiters.wake_one();
}

moving_block graph_core::take(unsigned number) {
  block_channel& c = channels[number];
  moving_block b = std::move(c.blocks.front());
  c.blocks.pop_front();
  if (c.from != block_channel::outside) settle(c.from);
  return b;
}

void graph_core::settle(unsigned node) {
  std::vector<unsigned>& next = to_settle_;  // empty: settle() does not call itself
  next.push_back(node);
  while (!next.empty()) {
    const unsigned n = next.back();
    next.pop_back();
    if (nodes[n].state == run_state::completed && hand_out(n, next))
      nodes[n].state = run_state::waiting;
    for (port_core& p : nodes[n].ports) fill(nodes[n], p, next);
    queue_if_ready(n);
  }
}

void graph_core::settle_pushed(unsigned number) {
  const block_channel& c = channels[number];
  node_core& n = nodes[c.to];
  fill(n, n.ports[c.to_port], to_settle_);  // nobody is before it
  queue_if_ready(c.to);
}

void graph_core::queue_if_ready(unsigned node) {
  node_core& n = nodes[node];
  if (n.state == run_state::waiting && !ended && compiled && n.lacking == 0) {
    n.state = run_state::queued;
    n.queued_at = where->now();
    ++active;
    where->enqueue(this, node);
  }
  const bool partly = n.state == run_state::waiting && n.waiting != 0;
  if (partly && n.partly_since < 0) n.partly_since = where->now();
  if (!partly) n.partly_since = -1;
}

bool graph_core::has_deadlines() const {
  for (const node_core& n : nodes)
    for (const port_core& p : n.ports)
      if (p.is.deadline) return true;
  return false;
}

void graph_core::look_at_deadlines() {
  const std::int64_t now = where->now();
  for (unsigned n = 0; n < nodes.size(); ++n) {
    if (nodes[n].partly_since < 0) continue;
    const std::int64_t since = now - nodes[n].partly_since;
    for (unsigned i = 0; i < nodes[n].ports.size(); ++i) {
      port_core& p = nodes[n].ports[i];
      if (p.held || p.late || !p.is.deadline || since <= p.is.deadline->count()) continue;
      p.late = true;
      const std::string text = fmt::format(
          "graph '{}': input {} has had no block for {} us, while others of its node have "
          "theirs; its deadline is {} us",
          options.name, port_name(n, i), since / 1000, p.is.deadline->count() / 1000);
      note(text);
      if (where->trace) where->trace->mark(nodes[n].track, executor_core::ticks(), text);
    }
  }
}

/// Gives the outputs of a node to channels that have room. Whether all have been given.
bool graph_core::hand_out(unsigned node, std::vector<unsigned>& next) {
  bool all = true;
  for (port_core& p : nodes[node].ports) {
    if (!p.made) continue;
    std::size_t left = 0;
    for (std::size_t i = 0; i < p.out.size(); ++i) left += p.given[i] ? 0 : 1;
    for (std::size_t i = 0; i < p.out.size(); ++i) {
      if (p.given[i] || !channels[p.out[i]].has_room()) continue;
      p.given[i] = true;
      // The last one takes the block itself, so that nobody else has it.
      deliver(p.out[i], --left == 0 ? std::move(p.made) : p.made);
      if (const unsigned to = channels[p.out[i]].to; to != block_channel::outside)
        next.push_back(to);
    }
    if (p.out.empty()) p.made = {};  // it was for the stretch alone
    all = all && left == 0;
  }
  return all;
}

/// An input without a block takes the next one of its channel. A sticky one takes whatever came.
/// While the node is queued or executing its function has not taken the blocks yet, or the next
/// ones may come already.
void graph_core::fill(node_core& n, port_core& p, std::vector<unsigned>& next) {
  if (p.is.way == direction::out || p.in == block_channel::outside) return;
  block_channel& c = channels[p.in];
  while (!c.blocks.empty() && (!p.held || (p.is.sticky && n.state != run_state::queued))) {
    n.hold(p, std::move(c.blocks.front()));
    c.blocks.pop_front();
    p.late = false;
    if (c.from != block_channel::outside)
      next.push_back(c.from);
    else
      channels[c.first_of_source].waiters.wake_one();
  }
}

}  // namespace grosr::flow
