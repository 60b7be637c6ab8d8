// What the program does with a graph that runs: it pushes, pulls, waits, stops it, and asks.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "flow/channel_end.hpp"
#include "flow/graph_core.hpp"
#include "flow/locked.hpp"
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
  g.check_running();
  if (ready()) return true;  // mostly; and nothing is asked for the time
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
      lock = locked(e.mutex);
      continue;
    }
    // What comes soon is not slept for.
    const std::uint32_t events = w.events.load(std::memory_order_relaxed);
    lock.unlock();
    for (const auto began = clock::now();
         w.events.load(std::memory_order_relaxed) == events && clock::now() - began < spin;)
      std::this_thread::yield();
    lock = locked(e.mutex);
    if (w.events.load(std::memory_order_relaxed) != events) continue;
    ++w.count;
    if (until != clock::time_point::max())
      w.moved.wait_until(lock, until);
    else
      w.moved.wait(lock);
    --w.count;
  }
}

void check_pushed(const graph_core& g, const block_channel& c, const datablock& b) {
  if (!b) refuse("push: no block was given; make one");
  if (!(b.shape() == c.shape))
    refuse(fmt::format("push into {}: a block of {} was given, and it takes {}", g.to_name(c),
                       b.shape().text(), c.shape.text()));
  if (!g.where->memory.made(b))
    refuse(
        fmt::format("push into {}: a block of another executor's memory was given; make it with "
                    "source.make(), or copy it",
                    g.to_name(c)));
  if (!block_users::is_written(b))
    refuse(
        fmt::format("push into {}: a block of {} was given that nobody has written; write it "
                    "first",
                    g.to_name(c), b.shape().text()));
}

bool has_room(const graph_core& g, const block_channel& c) {
  return std::all_of(c.source.begin(), c.source.end(),
                     [&](unsigned i) { return g.channels[i].has_room(); });
}

/// With the executor's lock.
void put_in(graph_core& g, block_channel& c, datablock b, std::int64_t born, std::int64_t begins) {
  executor_core& e = *g.where;
  const std::uint64_t made_by = e.next_number();
  for (const unsigned i : c.source)
    g.deliver(i, {i == c.source.back() ? std::move(b) : b, {born, made_by}});
  for (const unsigned i : c.source) g.settle_pushed(i);
  if (e.trace)
    e.trace->add({.what = "push into " + g.options.name + ": " + g.to_name(c),
                  .number = made_by,
                  .begins = begins,
                  .ends = executor_core::ticks()});
}

/// Leaves `b` as it is where it returns false.
bool push_into(graph_core& g, unsigned number, datablock& b,
               std::optional<std::chrono::nanoseconds> limit) {
  block_channel& c = g.channels[number];
  executor_core& e = *g.where;
  e.check_outside("push");
  check_pushed(g, c, b);
  const std::int64_t begins = e.trace ? executor_core::ticks() : 0;
  lock_type lock = locked(e.mutex);
  const std::int64_t born = e.now();
  if (!wait_in(g, c.waiters, lock, limit, [&] { return has_room(g, c); })) return false;
  put_in(g, c, std::move(b), born, begins);
  e.begin_queued(lock, !limit);
  return true;
}

datablock pull_from(graph_core& g, unsigned number, std::optional<std::chrono::nanoseconds> limit) {
  executor_core& e = *g.where;
  e.check_outside("pull");
  const std::int64_t begins = e.trace ? executor_core::ticks() : 0;
  lock_type lock = locked(e.mutex);
  block_channel& c = g.channels[number];
  if (!wait_in(g, c.waiters, lock, limit, [&] { return !c.blocks.empty(); })) return {};
  moving_block b = g.take(number);
  if (e.trace)
    e.trace->add({.what = "pull from " + g.options.name + ": " + g.from_name(c),
                  .made_by = b.from.made_by,
                  .begins = begins,
                  .ends = executor_core::ticks()});
  e.begin_queued(lock, !limit);
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
void push_all(std::span<block_for> blocks) {
  push_all_for(blocks, std::chrono::nanoseconds::max());
}
bool push_all_for(std::span<block_for> blocks, std::chrono::nanoseconds limit) {
  if (blocks.empty()) return true;
  graph_core& g = *blocks.front().to.of_;
  executor_core& e = *g.where;
  e.check_outside("push");
  std::vector<block_channel*> channels;
  for (const block_for& b : blocks) {
    if (b.to.of_.get() != &g)
      refuse(
          fmt::format("push: sources of the graphs '{}' and '{}' were given; push into those of "
                      "one graph",
                      g.options.name, b.to.of_->options.name));
    channels.push_back(&g.channels[b.to.channel_]);
    check_pushed(g, *channels.back(), b.block);
  }
  auto sorted = channels;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    refuse(fmt::format("push: the source of {} was given twice; push one block after the other",
                       g.to_name(**twice)));
  const auto began = std::chrono::steady_clock::now();
  const std::int64_t begins = e.trace ? executor_core::ticks() : 0;
  lock_type lock = locked(e.mutex);
  const std::int64_t born = e.now();
  const auto full = [&] {
    return std::find_if(channels.begin(), channels.end(),
                        [&](const block_channel* c) { return !has_room(g, *c); });
  };
  // Others may fill one channel again while this thread waits for the next.
  for (;;) {
    const auto first = full();
    block_channel& c = first == channels.end() ? *channels.front() : **first;
    const auto gone = std::chrono::steady_clock::now() - began;
    if (!wait_in(g, c.waiters, lock, limit - std::min<std::chrono::nanoseconds>(limit, gone),
                 [&] { return has_room(g, c); }))
      return false;
    if (full() == channels.end()) break;
    c.waiters.wake_one();  // this thread was told of room that others may use
  }
  for (std::size_t i = 0; i < channels.size(); ++i)
    put_in(g, *channels[i], std::move(blocks[i].block), born, begins);
  e.begin_queued(lock, limit == std::chrono::nanoseconds::max());
  return true;
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
  lock_type lock = locked(core->where->mutex);
  wait_in(*core, core->waiters, lock, std::nullopt, [&] { return core->active == 0; });
}

void graph::stop() noexcept {
  executor_core& e = *core_->where;
  lock_type lock = locked(e.mutex);
  core_->end();
  std::erase(e.watched, core_.get());
  e.forget(core_.get());
  if (e.is_served_here()) return;  // by a function that would wait for its own end
  while (core_->active != 0) {
    // Where no thread is left that would, this one does what there is to do.
    if (e.options.threads == 0 || e.has_ended()) {
      lock.unlock();
      if (!e.step()) std::this_thread::yield();
      lock = locked(e.mutex);
    } else {
      ++core_->waiters.count;
      core_->waiters.moved.wait(lock);
      --core_->waiters.count;
    }
  }
}

std::vector<block_channel_stats> graph::channels() const {
  const auto lock = locked(core_->where->mutex);
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
  const auto lock = locked(core_->where->mutex);
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
  const auto lock = locked(core_->where->mutex);
  return core_->events;
}

}  // namespace grosr::flow
