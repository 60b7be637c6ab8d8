// A node being run: how it begins, on the host and on devices, and what follows.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "flow/graph_core.hpp"
#include "flow/locked.hpp"
#include "flow/stretch.hpp"

namespace grosr::flow {
namespace {

/// A moving average of a node's last eight runs or so.
void average(double& mean, std::int64_t last) {
  mean = mean == 0 ? static_cast<double>(last) : mean + (static_cast<double>(last) - mean) / 8;
}

bool is_fixed(const block_template& t) { return t.layout() == block_template::records::fixed; }
std::size_t elements_of(const datablock& b, const block_template& t) {
  return is_fixed(t) ? t.count() : b.count();
}

access access_of(direction way) {
  return way == direction::in    ? access::read
         : way == direction::out ? access::write
                                 : access::update;
}

}  // namespace

/// The node executes: its function gets the blocks at its inputs, and new ones for its outputs.
void executor_core::begin(queued q, const choice& c, running& r) {
  const std::size_t unit = c.unit;
  node_core& n = q.of->nodes[q.node];
  if (spare_.empty()) {
    r = std::make_unique<invocation_core>();
  } else {
    r = std::move(spare_.back());
    spare_.pop_back();
  }
  r->reset(n.ports.size());
  r->of = q.of;
  r->node = q.node;
  r->unit = unit;
  r->began = now();
  r->run = ++n.stats.runs;
  r->run_there = ++n.runs_on[unit];
  n.state = run_state::executing;
  n.stats.waited_ns += r->began - n.queued_at;
  average(n.mean_wait, r->began - n.queued_at);
  r->made.made_by = next_number();
  if (trace) trace_run(*r, q, c.reason);
  for (port_core& p : n.ports) {
    if (p.is.way == direction::out) {
      r->blocks.push_back(memory.make(p.is.shape));
      continue;
    }
    if (const std::int64_t born = p.held.from.born; !p.is.sticky && born != origin::unknown)
      r->made.born = r->made.born == origin::unknown ? born : std::min(r->made.born, born);
    r->blocks.push_back(n.use(p));
  }
  if (r->made.born == origin::unknown) r->made.born = r->began;
  ++units_[unit].running;
  if (unit != 0) launching_ |= std::uint64_t{1} << unit;
  q.of->settle(q.node);
}

void executor_core::trace_run(invocation_core& r, const queued& q, const char* reason) {
  const node_core& n = r.of->nodes[r.node];
  r.traced.track = n.track;
  r.traced.number = r.made.made_by;
  r.traced.run = r.run;
  r.traced.unit = r.unit == 0 ? "host" : memory.devices()[r.unit - 1].name();
  r.traced.reason = reason;
  r.traced.queued = q.since;
  r.traced.began = ticks();
  for (const port_core& p : n.ports)
    if (p.held && p.held.from.made_by != 0) r.traced.made_by.push_back(p.held.from.made_by);
}

// ---- running it ----

void executor_core::run(running r) {
  node_core& n = r->of->nodes[r->node];
  try {
    // In and out, and others have the block, too: they keep what it holds.
    for (std::size_t i = 0; i < r->blocks.size(); ++i) {
      if (n.ports[i].is.way != direction::inout || r->blocks[i].use_count() == 1) continue;
      r->originals[i] = std::move(r->blocks[i]);
      r->blocks[i] = block_users::make_for_copy(memory, r->originals[i]);
    }
    if (r->unit == 0 && !start_on_host(*r)) {
      const auto lock = locked(mutex);
      --units_[0].running;  // its thread turns to something else
      coming_.push_back(std::move(r));
      return;
    }
  } catch (...) {
    return finish(std::move(r), std::current_exception());
  }
  if (r->unit == 0)
    run_on_host(std::move(r));
  else
    put_on_device(std::move(r));
}

/// A run that failed, and whose stream never came to its end, ends now.
void executor_core::trace_end(invocation_core& r) {
  if (!trace) return;
  if (!r.traced.begins.was_known()) r.traced.begins = r.traced.began;
  if (!r.traced.ends.was_known()) r.traced.ends = ticks();
  trace->add(std::move(r.traced));
}

/// For whom and why the block at a port is looked at now.
std::unique_ptr<looks_for> executor_core::for_trace(const invocation_core& r, std::size_t port,
                                                    const char* reason) const {
  if (!trace) return nullptr;
  const graph_core& g = *r.of;
  return std::make_unique<looks_for>(
      g.options.name + ": " + g.port_name(r.node, static_cast<unsigned>(port)), reason);
}

/// Whether all that the function looks at is there; else it is on its way.
bool executor_core::start_on_host(invocation_core& r) {
  const node_core& n = r.of->nodes[r.node];
  std::size_t begun = 0;
  bool original = false;  // of the next one has begun
  try {
    for (; begun < r.blocks.size(); ++begun) {
      const std::size_t i = begun;
      const auto whom = for_trace(r, i, "a function of the host takes it");
      auto& p = r.call.ports[i];
      p.shape = &n.ports[i].is.shape;
      p.count = elements_of(r.blocks[i], *p.shape);
      original = false;
      if (r.originals[i]) {
        r.original_data[i] =
            block_users::begin_on_host(r.originals[i], access::read, r.waits, &r.copies[i]);
        original = true;
      }
      p.data = block_users::begin_on_host(
          r.blocks[i], r.originals[i] ? access::write : access_of(n.ports[i].is.way), r.waits,
          &r.copies[i]);
    }
    original = false;
    return r.waits.have_happened();
  } catch (...) {
    if (original) block_users::end_on_host(r.originals[begun], access::read, false);
    end_on_host(r, begun, true);
    throw;
  }
}

/// Of the first so many ports.
void executor_core::end_on_host(invocation_core& r, std::size_t ports, bool failed) {
  const node_core& n = r.of->nodes[r.node];
  for (std::size_t i = 0; i < ports; ++i) {
    block_users::end_on_host(r.blocks[i],
                             r.originals[i] ? access::write : access_of(n.ports[i].is.way), failed);
    if (r.originals[i]) block_users::end_on_host(r.originals[i], access::read, false);
  }
}

void executor_core::run_on_host(running r) {
  const node_core& n = r->of->nodes[r->node];
  std::exception_ptr thrown = std::move(r->thrown);  // its inputs did not come
  try {
    for (std::size_t i = 0; !thrown && i < r->blocks.size(); ++i)
      if (r->originals[i])
        std::memcpy(r->call.ports[i].data, r->original_data[i],
                    r->call.ports[i].count * n.ports[i].is.shape.element().bytes);
    if (!thrown) {
      for (std::size_t i = 0; i < n.ports.size(); ++i)
        if (n.ports[i].counts) *static_cast<std::uint32_t*>(r->call.ports[i].data) = 0;
      const std::int64_t begins = ticks();
      r->traced.begins = begins;
      n.on_host(r->call);
      r->function_ns = ticks() - begins;
      r->traced.ends = begins + r->function_ns;
      for (std::size_t i = 0; i < n.ports.size(); ++i)
        if (const auto at = n.ports[i].count_at)
          r->call.ports[i].count = *static_cast<const std::uint32_t*>(r->call.ports[*at].data);
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  end_on_host(*r, r->blocks.size(), thrown != nullptr);
  if (!thrown) thrown = set_counts(*r);
  finish(std::move(r), thrown);
}

/// What functions said that they wrote.
std::exception_ptr executor_core::set_counts(invocation_core& r) {
  const node_core& n = r.of->nodes[r.node];
  try {
    for (std::size_t i = 0; i < r.blocks.size(); ++i)
      if (n.ports[i].is.way == direction::out &&
          r.call.ports[i].count != elements_of(r.blocks[i], n.ports[i].is.shape))
        r.blocks[i].set_count(r.call.ports[i].count);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// So that a stretch finds its blocks where they were some runs ago, for which it has a CUDA graph:
/// as many homes as runs in flight, or a multiple of that.
std::uint64_t executor_core::home_of(const invocation_core& r, std::size_t port) const {
  const node_core& n = r.of->nodes[r.node];
  if (!n.runs_all_of) return 0;
  return n.first_home + port * r.of->homes() + r.run_there % r.of->homes();
}

void executor_core::put_on_device(running r) {
  const node_core& n = r->of->nodes[r->node];
  const auto space = static_cast<space_number>(r->unit);
  unit& u = units_[r->unit];
  std::exception_ptr thrown;
  std::lock_guard one_at_a_time(u.mutex);
  const unsigned in_flight = r->of->options.runs_in_flight;
  simt::timeline& t = u.streams[(n.stream + r->run_there % in_flight) % streams_each];
  // Copies of one run overlap with what another one computes.
  stream_user by{&t, in_flight == 1 ? stream_user::small : ~std::size_t{0}};
  std::vector<device_access> in_use;
  stream_waits waits;
  bool brought = false;  // to the host, which waits for no more than this invocation
  try {
    in_use.reserve(r->blocks.size() + 1);
    begin_descriptors(*r, t, space, in_use);
    for (std::size_t i = 0; i < r->blocks.size(); ++i) {
      if (n.ports[i].is.from_heap) continue;
      const auto whom = for_trace(*r, i, "a function of the device takes it");
      auto& p = r->call.ports[i];
      p.shape = &n.ports[i].is.shape;
      p.count = elements_of(r->blocks[i], *p.shape);
      by.home = home_of(*r, i);
      if (r->originals[i]) {
        const device_access from = block_users::on_device(
            r->originals[i], access::read, {&t, by.copies}, space, &r->copies[i], waits);
        const device_access to =
            block_users::on_device(r->blocks[i], access::write, by, space, nullptr, waits);
        waits.put_into(t);
        t.copy(to.data(), from.data(), p.count * p.shape->element().bytes);
      }
      in_use.push_back(block_users::on_device(r->blocks[i], access_of(n.ports[i].is.way), by, space,
                                              &r->copies[i], waits));
      p.data = in_use.back().data();
    }
    waits.put_into(t);
    for (std::size_t i = 0; i < n.ports.size(); ++i)
      if (n.ports[i].counts) t.copy(r->call.ports[i].data, zero.data(), sizeof(std::uint32_t));
    if (trace) r->traced.begins = t.time();
    r->call.stream = &t.queue();
    r->call.number = r->run_there;
    n.on_device(r->call);
    if (trace) r->traced.ends = t.time();
    block_users::end_on_device(in_use, t.here());
    if (n.counts_late)
      r->counts_late = true;
    else
      thrown = set_counts(*r);
    for (std::size_t i = 0; !thrown && i < r->blocks.size(); ++i) {
      const bool to_host = std::atomic_ref(n.ports[i].to_host).load(std::memory_order_relaxed) !=
                           block_channel::outside;
      if (n.ports[i].counts || (to_host && !n.ports[i].count_at)) {
        const auto whom = for_trace(*r, i, "ahead: it goes to the host next");
        by.home = 0;
        block_users::bring_to_host(r->blocks[i], by, r->fetched[i]);
        brought = true;
      }
    }
  } catch (...) {
    thrown = std::current_exception();
    // The end of an access says that those before have ended, too.
    try {
      waits.put_into(t);
    } catch (...) {
    }
    in_use.clear();
  }
  try {
    brought = bring_descriptors(*r, t) || brought;
  } catch (...) {
    if (!thrown) thrown = std::current_exception();
  }
  // Also of a function that threw: something may be under way.
  r->end = t.here();
  if (brought) try {
      r->end = t.mark();
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  finish(std::move(r), thrown);
}

// ---- after it ----

void executor_core::took(node_core& n, const invocation_core& r, bool failed) {
  const std::int64_t t = now(), ran = t - r.began;
  n.stats.ran_ns += ran;
  average(n.mean_run, ran);
  if (!failed) n.latency.add(t - r.made.born);
}

/// What a run on a device that is over has counted.
std::exception_ptr executor_core::take_counts(invocation_core& r) {
  const node_core& n = r.of->nodes[r.node];
  try {
    for (std::size_t i = 0; i < n.ports.size(); ++i)
      if (const auto at = n.ports[i].count_at)
        r.call.ports[i].count = r.blocks[*at].read<std::uint32_t>()[0];
  } catch (...) {
    return std::current_exception();
  }
  return set_counts(r);
}

/// Its outputs go on, if nothing was thrown.
void executor_core::hand_over(invocation_core& r, std::exception_ptr thrown) {
  node_core& n = r.of->nodes[r.node];
  n.state = run_state::completed;
  for (std::size_t i = 0; i < n.ports.size(); ++i) {
    port_core& p = n.ports[i];
    if (p.is.way == direction::in || thrown) continue;
    p.made = {std::move(r.blocks[i]), r.made};
    p.given.assign(p.out.size(), false);
  }
  r.blocks.clear();
  r.originals.clear();
}

/// The function has returned: on a device, what it put there may still be under way.
void executor_core::finish(running r, std::exception_ptr thrown) {
  const auto lock = locked(mutex);
  graph_core& g = *r->of;
  const unsigned number = r->node;
  node_core& n = g.nodes[number];
  for (std::size_t i = 0; i < n.ports.size(); ++i) {
    if (n.ports[i].in != block_channel::outside) g.channels[n.ports[i].in].copies += r->copies[i];
    if (n.ports[i].to_host != block_channel::outside)
      g.channels[n.ports[i].to_host].copies += r->fetched[i];
  }
  if (n.runs_all_of && n.runs_all_of->has_fallen_back() && !thrown)
    g.note(
        fmt::format("graph '{}': {} cannot be a CUDA graph, or does not always do the same; its "
                    "functions are called in each run",
                    g.options.name, n.name));
  if (thrown) fail(*r, thrown);
  r->failed = thrown != nullptr;
  r->counts_late = r->counts_late && !thrown;
  const bool hands_over = !r->counts_late;
  if (hands_over) hand_over(*r, thrown);
  if (r->unit != 0) {
    launching_ &= ~(std::uint64_t{1} << r->unit);
    under_way_.push_back(std::move(r));
  } else {
    --units_[0].running;
    took(n, *r, r->failed);
    trace_end(*r);
    average(n.mean_function, std::max(r->function_ns, std::int64_t{1}));
    g.leave();
    r->reset(0);
    spare_.push_back(std::move(r));
  }
  if (!hands_over) return;
  if (!g.ended) g.settle(number);
  if (g.ended) n.state = run_state::waiting;
}

void executor_core::fail(invocation_core& r, std::exception_ptr thrown) {
  graph_core& g = *r.of;
  node_core& n = g.nodes[r.node];
  std::string why = "an exception that is no std::exception";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  const std::string text =
      fmt::format("graph '{}': node '{}' failed in run {}: {}", g.options.name, n.name, r.run, why);
  ++n.stats.failures;
  g.note(text);
  r.traced.failed = why;
  if (g.options.errors == on_error::go_on) return;
  if (!g.failure) g.failure = std::make_exception_ptr(error(errc::task_failed, text));
  g.end();
  forget(&g);
}

/// Sees what has come meanwhile. An invocation for the host whose inputs are there now, or did not
/// come; null: none, or no thread is to run it.
executor_core::running executor_core::look_after() {
  std::vector<std::pair<invocation_core*, bool>> asked;  // and whether it is on a device
  {
    const auto lock = locked(mutex);
    if (looking_) return nullptr;
    looking_ = true;
    for (const running& r : under_way_) asked.push_back({r.get(), true});
    if (units_[0].running < units_[0].depth)
      for (const running& r : coming_) asked.push_back({r.get(), false});
  }
  std::vector<std::pair<invocation_core*, std::exception_ptr>> over;
  invocation_core* ready = nullptr;
  for (const auto& [r, on_device] : asked) {
    std::exception_ptr thrown;
    bool happened = false;
    try {
      happened = on_device ? r->end.has_happened() : r->waits.have_happened();
    } catch (...) {
      thrown = std::current_exception();
      happened = true;
    }
    if (!happened) continue;
    if (on_device) {
      if (trace) {  // while no lock is held
        r->traced.begins.is_known();
        r->traced.ends.is_known();
      }
      if (!thrown) thrown = take_descriptors(*r);
      if (r->counts_late && !thrown) thrown = take_counts(*r);
      over.push_back({r, thrown});
    } else if (ready == nullptr) {
      ready = r;
      r->thrown = thrown;
    }
  }
  const auto lock = locked(mutex);
  looking_ = false;
  for (const auto& [done, thrown] : over) {
    const auto at = std::find_if(under_way_.begin(), under_way_.end(),
                                 [d = done](const running& r) { return r.get() == d; });
    running r = std::move(*at);
    under_way_.erase(at);
    graph_core& g = *r->of;
    --units_[r->unit].running;
    node_core& n = g.nodes[r->node];
    took(n, *r, r->failed || thrown);
    if (thrown) fail(*r, thrown);
    trace_end(*r);
    if (r->counts_late) {
      const unsigned number = r->node;
      hand_over(*r, thrown);
      if (!g.ended) g.settle(number);
      if (g.ended) n.state = run_state::waiting;
    }
    r->reset(0);
    spare_.push_back(std::move(r));
    g.leave();
  }
  if (ready == nullptr) return nullptr;
  const auto at = std::find_if(coming_.begin(), coming_.end(),
                               [&](const running& r) { return r.get() == ready; });
  running r = std::move(*at);
  coming_.erase(at);
  ++units_[0].running;
  return r;
}

}  // namespace grosr::flow
