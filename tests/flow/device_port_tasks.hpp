// Tests of device ports: tasks that push and pull, and a graph between them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/await/awaited.hpp"
#include "grosr/flow/device_port.hpp"
#include "grosr/run/runtime.hpp"

namespace grosr::flow::tested {

inline constexpr std::size_t n = 4;
inline block_template four() { return block_template::of<word>(n); }

inline runtime_options small(const device& d) {
  runtime_options o;
  if (d.is_cuda()) o.sms = 2;
  o.blocks_per_sm = 1;
  return o;
}
inline sys::options with_chunks() {
  sys::options o;
  o.threads = 1;
  o.chunks = {8192, 0, 0};
  return o;
}

// ---- tasks ----

/// Gives the first word of a block of which each is one more than the one before.
struct got {
  using result = long;
  long elements;
  word block[n];
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (elements < 0) return static_cast<int>(elements);
    for (std::size_t i = 1; i < n; ++i)
      if (block[i] != block[0] + 2 * i) return -EDOM;
    context.give(static_cast<long>(block[0]));
    return 0;
  }
};
struct pulls {
  using result = long;
  sys::server_ref sys;
  device_sink_ref<word> from;
  std::int64_t limit = without_limit;
  std::uint32_t room = n;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(got{-1, {}});
    if (room != n)
      from.pull(context.await(sys, &next.elements), next.block, room);
    else if (limit == 0)
      from.try_pull(context.await(sys, &next.elements), next.block);
    else if (limit > 0)
      from.pull_for(context.await(sys, &next.elements), next.block, limit);
    else
      from.pull(context.await(sys, &next.elements), next.block);
  }
};
struct pushed {
  using result = long;
  long code;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(code);
    return static_cast<int>(code);
  }
};
struct pushes {
  using result = long;
  sys::server_ref sys;
  device_source_ref<word> to;
  std::int64_t limit = without_limit;
  word first = 0;
  std::uint32_t count = n;
  GROSR_DEVICE void operator()(auto& context) const {
    word block[2 * n];  // which is gone when the task has ended
    for (std::uint32_t i = 0; i < 2 * n; ++i) block[i] = first + i;
    auto& next = context.join(pushed{-1});
    if (limit == 0)
      to.try_push(context.await(sys, &next.code), block, count);
    else if (limit > 0)
      to.push_for(context.await(sys, &next.code), block, count, limit);
    else
      to.push(context.await(sys, &next.code), block, count);
  }
};
struct other {
  std::uint32_t* count;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t>(*count).fetch_add(1, simt::relaxed);
  }
};
using tasks = runtime<pushes, pushed, pulls, got, other, awaited>;

// ---- graphs ----

/// Blocks go through a function that gives each word times two: of the host, or of the device.
struct doubling {
  explicit doubling(const device& d, bool on_device = false, unsigned capacity = 1,
                    const block_template& t = four())
      : e(on(d, 1)), g(e), from_(add(on_device, capacity, t)), to_(sink_of(capacity)) {
    g.compile();
  }
  /// Ends the graph in the next run.
  void fail() { *fails_ = true; }

 private:
  source<word> add(bool on_device, unsigned capacity, const block_template& t) {
    const std::vector<port> ports = {{"a", t}, {"b", t}};
    n_ = std::make_unique<node>(on_device ? g.kernel("double", times{2}, ports)
                                          : g.host(
                                                "double",
                                                [fails = fails_](in<word> a, out<word> b) {
                                                  if (*fails)
                                                    throw std::runtime_error("it was told to");
                                                  for (std::size_t i = 0; i < a.count; ++i)
                                                    b[i] = a[i] * 2;
                                                  b.set_count(a.count);
                                                },
                                                ports));
    return g.source<word>((*n_)["a"], {.capacity = capacity});
  }
  sink<word> sink_of(unsigned capacity) { return g.sink<word>((*n_)["b"], {.capacity = capacity}); }
  const std::shared_ptr<std::atomic<bool>> fails_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<node> n_;

 public:
  executor e;
  graph g;
  source<word> from_;
  sink<word> to_;
};

template <class Condition>
void wait_until(const Condition& c) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!c()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    std::this_thread::yield();
  }
}
template <class End>
void wait_for_waiting(const End& end, std::uint64_t count) {
  wait_until([&] { return end.stats().waiting == count; });
}

}  // namespace grosr::flow::tested
