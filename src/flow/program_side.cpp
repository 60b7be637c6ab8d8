// What the program does with a graph that runs: it pushes, pulls, waits, stops it, and asks.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "flow/channel_end.hpp"
#include "flow/graph_core.hpp"
#include "flow/refuse.hpp"

namespace grosr::flow {

namespace {

using lock_type = std::unique_lock<std::mutex>;
constexpr std::chrono::microseconds spin{20};

/// Waits with the executor's lock until `ready`, or until a moment. Where the executor has no
/// threads, the caller does the work.
template <class Ready>
bool wait_in(graph_core& g, outside_waiters& w, lock_type& lock,
             std::optional<std::chrono::nanoseconds> limit, const Ready& ready) {
  executor_core& e = *g.where;
  using clock = std::chrono::steady_clock;
  const auto now = clock::now();
  const clock::time_point until =
      limit && *limit < clock::time_point::max() - now ? now + *limit : clock::time_point::max();
  unsigned steps = 0;
  constexpr unsigned enough = 1000;  // of a graph that always has something to do
  for (;;) {
    g.check_running();
    if (ready()) return true;
    const bool works = e.options.threads == 0;
    // Who has to do the work does some before giving up.
    if (clock::now() >= until && (steps >= enough || !works)) return false;
    if (works) {
      lock.unlock();
      ++steps;
      if (!e.step()) {
        steps = std::max(steps, enough);
        std::this_thread::yield();
      }
      lock.lock();
      continue;
    }
    // What comes soon is not slept for.
    const std::uint32_t events = w.events.load(std::memory_order_relaxed);
    lock.unlock();
    for (const auto began = clock::now();
         w.events.load(std::memory_order_relaxed) == events && clock::now() - began < spin;)
      std::this_thread::yield();
    lock.lock();
    if (w.events.load(std::memory_order_relaxed) != events) continue;
    ++w.count;
    if (until != clock::time_point::max())
      w.moved.wait_until(lock, until);
    else
      w.moved.wait(lock);
    --w.count;
  }
}

/// Leaves `b` as it is where it returns false.
bool push_into(graph_core& g, unsigned number, datablock& b,
               std::optional<std::chrono::nanoseconds> limit) {
  block_channel& c = g.channels[number];
  g.where->check_outside("push");
  if (!b) refuse("push: no block was given; make one");
  if (!(b.shape() == c.shape))
    refuse(fmt::format("push into {}: a block of {} was given, and it takes {}", g.to_name(c),
                       b.shape().text(), c.shape.text()));
  if (!g.where->memory.made(b))
    refuse(
        fmt::format("push into {}: a block of another executor's memory was given; make it with "
                    "source.make(), or copy it",
                    g.to_name(c)));
  executor_core& e = *g.where;
  const std::int64_t begins = e.trace ? executor_core::ticks() : 0;
  lock_type lock(e.mutex);
  const std::int64_t born = e.now();
  const auto has_room = [&] {
    return std::all_of(c.source.begin(), c.source.end(),
                       [&](unsigned i) { return g.channels[i].has_room(); });
  };
  if (!wait_in(g, c.waiters, lock, limit, has_room)) return false;
  const std::uint64_t made_by = e.next_number();
  for (const unsigned i : c.source)
    g.deliver(i, {i == c.source.back() ? std::move(b) : b, {born, made_by}});
  for (const unsigned i : c.source) g.settle(g.channels[i].to);
  if (e.trace)
    e.trace->add({.what = "push into " + g.options.name + ": " + g.to_name(c),
                  .number = made_by,
                  .begins = begins,
                  .ends = executor_core::ticks()});
  return true;
}

datablock pull_from(graph_core& g, unsigned number, std::optional<std::chrono::nanoseconds> limit) {
  executor_core& e = *g.where;
  e.check_outside("pull");
  const std::int64_t begins = e.trace ? executor_core::ticks() : 0;
  lock_type lock(e.mutex);
  block_channel& c = g.channels[number];
  if (!wait_in(g, c.waiters, lock, limit, [&] { return !c.blocks.empty(); })) return {};
  moving_block b = g.take(number);
  if (e.trace)
    e.trace->add({.what = "pull from " + g.options.name + ": " + g.from_name(c),
                  .made_by = b.from.made_by,
                  .begins = begins,
                  .ends = executor_core::ticks()});
  return std::move(b.block);
}

}  // namespace

void any_source::push(datablock b) const { push_into(*of_, channel_, b, std::nullopt); }
bool any_source::try_push(datablock b) const {
  return push_into(*of_, channel_, b, std::chrono::nanoseconds(0));
}
bool any_source::push_for(datablock b, std::chrono::nanoseconds limit) const {
  return push_into(*of_, channel_, b, limit);
}
bool channel_end::try_push(datablock& b) const {
  return push_into(*of_, channel_, b, std::chrono::nanoseconds(0));
}
datablock any_source::make() const {
  return of_->where->memory.make(of_->channels[channel_].shape);
}

datablock any_sink::pull() const { return pull_from(*of_, channel_, std::nullopt); }
datablock any_sink::try_pull() const {
  return pull_from(*of_, channel_, std::chrono::nanoseconds(0));
}
datablock channel_end::try_pull() const {
  return pull_from(*of_, channel_, std::chrono::nanoseconds(0));
}
datablock any_sink::pull_for(std::chrono::nanoseconds limit) const {
  return pull_from(*of_, channel_, limit);
}

void graph::wait() {
  const std::shared_ptr<graph_core> core = core_;  // the graph may go meanwhile
  core->where->check_outside("wait");
  lock_type lock(core->where->mutex);
  wait_in(*core, core->waiters, lock, std::nullopt, [&] { return core->active == 0; });
}

void graph::stop() noexcept {
  executor_core& e = *core_->where;
  lock_type lock(e.mutex);
  core_->end();
  std::erase(e.watched, core_.get());
  e.forget(core_.get());
  if (e.is_served_here()) return;  // by a function that would wait for its own end
  while (core_->active != 0) {
    // Where no thread is left that would, this one does what there is to do.
    if (e.options.threads == 0 || e.has_ended()) {
      lock.unlock();
      if (!e.step()) std::this_thread::yield();
      lock.lock();
    } else {
      ++core_->waiters.count;
      core_->waiters.moved.wait(lock);
      --core_->waiters.count;
    }
  }
}

std::vector<block_channel_stats> graph::channels() const {
  std::lock_guard lock(core_->where->mutex);
  std::vector<block_channel_stats> all;
  for (const block_channel& c : core_->channels) {
    all.push_back({core_->from_name(c), core_->to_name(c), c.came, c.dropped, c.copies});
    if (c.inside == block_channel::outside) continue;
    const std::uint64_t runs = core_->nodes[c.inside].stats.runs;
    all.back().blocks = runs;
    all.back().copies = {0, 0, runs, runs * c.shape.size_bytes()};
  }
  return all;
}

std::vector<node_stats> graph::nodes() const {
  std::lock_guard lock(core_->where->mutex);
  std::vector<node_stats> all;
  for (const node_core& n : core_->nodes) {
    all.push_back(n.stats);
    all.back().latency = n.latency.get();
    if (n.part_of == block_channel::outside) continue;
    all.back().stretch = core_->nodes[n.part_of].name;
    all.back().runs = core_->nodes[n.part_of].stats.runs;
  }
  return all;
}

std::vector<std::string> graph::events() const {
  std::lock_guard lock(core_->where->mutex);
  return core_->events;
}

}  // namespace grosr::flow
