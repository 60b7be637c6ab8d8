// Ends of channels that device code uses: what tasks push comes into the graph, and what they pull
// is taken out of it, whole and once; who waits holds no worker, and comes in turn; how waits end.
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/await/awaited.hpp"
#include "grosr/flow/device_port.hpp"
#include "grosr/run/runtime.hpp"
#include "grosr/simt/launch.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

GROSR_DEVICE_SUITE(device_ports);

constexpr std::size_t n = 4;
block_template four() { return block_template::of<word>(n); }

runtime_options small(const device& d) {
  runtime_options o;
  if (d.is_cuda()) o.sms = 2;
  o.blocks_per_sm = 1;
  return o;
}
sys::options with_chunks() {
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
  const auto until = clock::now() + 60s;
  while (!c()) {
    ASSERT_LT(clock::now(), until);
    std::this_thread::yield();
  }
}
template <class End>
void wait_for_waiting(const End& end, std::uint64_t count) {
  wait_until([&] { return end.stats().waiting == count; });
}

// ---- one and many ----

void push_and_pull_one(const device& d, bool on_device) {
  doubling g(d, on_device);
  sys::server server(d);
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  tasks rt(d, small(d));
  auto pull = rt.fork(pulls{server.ref(), out.ref()});
  EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref(), without_limit, 7}).get(), 0);
  EXPECT_EQ(pull.get(), 14);
  // What the program pushes and pulls is beside it.
  g.from_.push(numbers(100, n));
  EXPECT_EQ(rt.fork(pulls{server.ref(), out.ref()}).get(), 200);
  EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref(), without_limit, 30}).get(), 0);
  EXPECT_EQ(g.to_.pull_elements(), (std::vector<word>{60, 62, 64, 66}));
  EXPECT_EQ(in.stats().blocks, 2u);
  EXPECT_EQ(out.stats().blocks, 2u);
  EXPECT_EQ(in.why_ended() + out.why_ended(), "");
}
TEST_P(device_ports, carry_blocks_of_tasks_to_the_host) { push_and_pull_one(where(), false); }
TEST_P(device_ports, carry_blocks_of_tasks_to_the_device) { push_and_pull_one(where(), true); }

TEST_P(device_ports, carry_each_block_once) {
  const auto count = static_cast<word>(testing::scaled(400, 50));
  doubling g(where(), true, 4);
  sys::server server(where(), with_chunks());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  tasks rt(where(), small(where()));
  std::vector<future<long>> pushing, pulling;
  for (word i = 0; i < count; ++i) {
    pushing.push_back(rt.fork(pushes{server.ref(), in.ref(), without_limit, i}));
    pulling.push_back(rt.fork(pulls{server.ref(), out.ref()}));
  }
  std::vector<bool> came(count);
  for (auto& f : pulling) {
    const long first = f.get();
    ASSERT_EQ(first % 2, 0);
    ASSERT_FALSE(came.at(static_cast<std::size_t>(first) / 2));
    came[static_cast<std::size_t>(first) / 2] = true;
  }
  for (auto& f : pushing) ASSERT_EQ(f.get(), 0);
  EXPECT_EQ(in.stats().blocks, count);
  EXPECT_EQ(out.stats().blocks, count);
  rt.wait_all();
  EXPECT_TRUE(rt.errors().empty());
}

TEST_P(device_ports, carry_blocks_under_many_schedules) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  testing::for_seeds(
      50,
      [&] {
        doubling g(where());
        sys::server server(where(), with_chunks());
        const device_source<word> in(g.from_, server);
        const device_sink<word> out(g.to_, server);
        tasks rt(where(), small(where()));
        std::vector<future<long>> all;
        for (word i = 0; i < 8; ++i) {
          all.push_back(rt.fork(pulls{server.ref(), out.ref()}));
          all.push_back(rt.fork(pushes{server.ref(), in.ref(), without_limit, i}));
        }
        long sum = 0;
        for (auto& f : all) sum += f.get();
        ASSERT_EQ(sum, 2 * 28);
      },
      4);
}

// ---- who waits ----

TEST_P(device_ports, hold_no_worker_while_tasks_wait_for_blocks) {
  constexpr word count = 1000;
  doubling g(where(), false, 16);
  sys::server server(where(), with_chunks());
  const device_sink<word> out(g.to_, server);
  simt::buffer<std::uint32_t> others(where(), simt::space::device, 1);
  others.copy_from(std::vector<std::uint32_t>(1));
  tasks rt(where(), small(where()));
  std::vector<future<long>> all;
  for (word i = 0; i < count; ++i) all.push_back(rt.fork(pulls{server.ref(), out.ref()}));
  wait_for_waiting(out, count);
  rt.submit(std::vector<other>(1000, other{others.data()})).wait();
  for (auto& f : all) ASSERT_FALSE(f.ready());
  for (word i = 0; i < count; ++i) g.from_.push(numbers(i, n));
  long sum = 0;
  for (auto& f : all) sum += f.get();
  EXPECT_EQ(sum, long{count} * (count - 1));
  EXPECT_EQ(out.stats().waiting, 0u);
}

TEST_P(device_ports, hold_no_worker_while_tasks_wait_for_room) {
  constexpr word count = 200;
  doubling g(where());
  sys::server server(where(), with_chunks());
  const device_source<word> in(g.from_, server);
  simt::buffer<std::uint32_t> others(where(), simt::space::device, 1);
  others.copy_from(std::vector<std::uint32_t>(1));
  tasks rt(where(), small(where()));
  std::vector<future<long>> all;
  for (word i = 0; i < count; ++i)
    all.push_back(rt.fork(pushes{server.ref(), in.ref(), without_limit, i}));
  // One waits at the sink, one at the node that cannot give it away, one before it.
  wait_until([&] { return in.stats().waiting + in.stats().blocks == count; });
  rt.submit(std::vector<other>(1000, other{others.data()})).wait();
  std::vector<bool> came(count);
  for (word i = 0; i < count; ++i) {
    const auto block = g.to_.pull_elements();
    ASSERT_FALSE(came.at(block[0] / 2));
    came[block[0] / 2] = true;
  }
  for (auto& f : all) EXPECT_EQ(f.get(), 0);
}

TEST_P(device_ports, serve_who_came_first) {
  constexpr word count = 20;
  doubling g(where());
  sys::server server(where());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  tasks rt(where(), small(where()));
  std::vector<future<long>> all;
  for (word i = 0; i < count; ++i) {
    all.push_back(rt.fork(pulls{server.ref(), out.ref()}));
    wait_for_waiting(out, i + 1);
  }
  for (word i = 0; i < count; ++i) g.from_.push(numbers(i, n));
  for (word i = 0; i < count; ++i) EXPECT_EQ(all[i].get(), 2 * i);
  all.clear();
  for (word i = 0; i < count; ++i) {
    all.push_back(rt.fork(pushes{server.ref(), in.ref(), without_limit, i}));
    wait_until([&] { return in.stats().waiting + in.stats().blocks == i + 1; });
  }
  for (word i = 0; i < count; ++i) EXPECT_EQ(g.to_.pull_elements()[0], 2 * i);
}

// ---- how waits end ----

TEST_P(device_ports, try_and_wait_for_so_long) {
  constexpr std::int64_t ms = 1'000'000, minute = 60'000 * ms;
  doubling g(where());
  sys::server server(where());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  tasks rt(where(), small(where()));
  const auto status_of_pull = [&](std::int64_t limit) {
    return rt.fork(pulls{server.ref(), out.ref(), limit}).status();
  };
  EXPECT_EQ(status_of_pull(0), -EAGAIN);
  const auto began = clock::now();
  EXPECT_EQ(status_of_pull(20 * ms), -ETIMEDOUT);
  EXPECT_GE(clock::now() - began, 20ms);
  // Some wait for ever, some give up, some get a block in time.
  auto waits = rt.fork(pulls{server.ref(), out.ref()});
  wait_for_waiting(out, 1);
  auto in_time = rt.fork(pulls{server.ref(), out.ref(), minute});
  wait_for_waiting(out, 2);
  EXPECT_EQ(status_of_pull(0), -EAGAIN);
  EXPECT_EQ(status_of_pull(5 * ms), -ETIMEDOUT);
  EXPECT_EQ(status_of_pull(1), -ETIMEDOUT);
  g.from_.push(numbers(1, n));
  EXPECT_EQ(waits.get(), 2);
  g.from_.push(numbers(2, n));
  EXPECT_EQ(in_time.get(), 4);
  auto longest = rt.fork(pulls{server.ref(), out.ref(), std::numeric_limits<std::int64_t>::max()});
  wait_for_waiting(out, 1);
  g.from_.push(numbers(3, n));
  EXPECT_EQ(longest.get(), 6);

  const auto status_of_push = [&](std::int64_t limit, word first) {
    return rt.fork(pushes{server.ref(), in.ref(), limit, first}).status();
  };
  word went = 0;
  for (int refused = 0; refused < 20;)  // until all of the graph is full
    status_of_push(0, went) == 0 ? (++went, refused = 0) : ++refused;
  EXPECT_EQ(status_of_push(0, 99), -EAGAIN);
  EXPECT_EQ(status_of_push(20 * ms, 99), -ETIMEDOUT);
  auto last = rt.fork(pushes{server.ref(), in.ref(), minute, went});
  wait_for_waiting(in, 1);
  EXPECT_EQ(status_of_push(5 * ms, 99), -ETIMEDOUT);
  for (word i = 0; i <= went; ++i) EXPECT_EQ(g.to_.pull_elements()[0], 2 * i);
  EXPECT_EQ(last.get(), 0);
  EXPECT_FALSE(g.to_.pull_for(20ms));  // what was given up never comes
}

TEST_P(device_ports, tell_waiting_tasks_that_the_graph_was_stopped) {
  doubling g(where());
  sys::server server(where());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  tasks rt(where(), small(where()));
  std::vector<future<long>> all;
  for (int i = 0; i < 100; ++i) all.push_back(rt.fork(pulls{server.ref(), out.ref()}));
  wait_for_waiting(out, 100);
  g.g.stop();
  for (auto& f : all) EXPECT_EQ(f.status(), -EPIPE);
  EXPECT_EQ(rt.fork(pulls{server.ref(), out.ref()}).status(), -EPIPE);
  EXPECT_EQ(rt.fork(pulls{server.ref(), out.ref(), 0}).status(), -EPIPE);
  EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref()}).status(), -EPIPE);
  EXPECT_NE(out.why_ended(), "");
  EXPECT_NE(in.why_ended(), "");
}

TEST_P(device_ports, tell_waiting_tasks_that_a_node_failed) {
  doubling g(where());
  sys::server server(where());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  tasks rt(where(), small(where()));
  auto waits = rt.fork(pulls{server.ref(), out.ref()});
  wait_for_waiting(out, 1);
  g.fail();
  EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref()}).status(), 0);
  EXPECT_EQ(waits.status(), -EIO);
  EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref()}).status(), -EIO);
  EXPECT_NE(out.why_ended().find("it was told to"), std::string::npos) << out.why_ended();
}

TEST_P(device_ports, give_the_block_of_a_lost_runtime_to_another) {
  for (const bool goes : {false, true}) {  // the lost one's object, before the block comes
    doubling g(where());
    sys::server server(where());
    const device_sink<word> out(g.to_, server);
    auto lost = std::make_unique<tasks>(where(), small(where()));
    lost->submit(pulls{server.ref(), out.ref()});
    wait_for_waiting(out, 1);
    EXPECT_EQ(testing::error_of([&] { lost->stop(100ms); }).code(), errc::timed_out);
    if (goes) lost.reset();
    tasks rt(where(), small(where()));
    auto waits = rt.fork(pulls{server.ref(), out.ref()});
    g.from_.push(numbers(5, n));
    EXPECT_EQ(waits.get(), 10);
    EXPECT_EQ(out.stats().blocks, 1u);
    EXPECT_TRUE(rt.wait_all_for(10s));
    EXPECT_TRUE(rt.errors().empty());
  }
}

TEST_P(device_ports, stop_before_the_runtime_whose_tasks_wait) {
  doubling g(where());
  sys::server server(where());
  device_source<word> in(g.from_, server);
  device_sink<word> out(g.to_, server);
  {
    tasks rt(where(), small(where()));
    auto waits = rt.fork(pulls{server.ref(), out.ref()});
    wait_for_waiting(out, 1);
    out.stop();
    out.stop();
    EXPECT_EQ(waits.status(), -EPIPE);
    EXPECT_EQ(rt.fork(pulls{server.ref(), out.ref()}).status(), -EPIPE);
    EXPECT_NE(out.why_ended(), "");
    rt.submit(pushes{server.ref(), in.ref()});
    EXPECT_EQ(g.to_.pull_elements()[0], 0u);
    in.stop();
    EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref()}).status(), -EPIPE);
  }
  g.from_.push(numbers(5, n));
  EXPECT_EQ(g.to_.pull_elements()[0], 10u);
}

TEST_P(device_ports, push_nothing_that_has_ended_with_the_server) {
  doubling g(where());
  auto server = std::make_unique<sys::server>(where());
  device_source<word> in(g.from_, *server);
  tasks rt(where(), small(where()));
  word went = 0;
  for (int refused = 0; refused < 20;)  // until all of the graph is full
    rt.fork(pushes{server->ref(), in.ref(), 0, went}).status() == 0 ? (++went, refused = 0)
                                                                    : ++refused;
  std::vector<future<long>> waiting;
  for (int i = 0; i < 3; ++i)
    waiting.push_back(rt.fork(pushes{server->ref(), in.ref(), without_limit, 99}));
  wait_for_waiting(in, 3);
  server->stop();
  for (auto& f : waiting) EXPECT_EQ(f.status(), -ESHUTDOWN);
  for (word i = 0; i < went; ++i) EXPECT_EQ(g.to_.pull_elements()[0], 2 * i);
  EXPECT_FALSE(g.to_.pull_for(20ms));
  EXPECT_EQ(in.stats().blocks, went);
  in.stop();
}

TEST_P(device_ports, end_with_the_server) {
  doubling g(where());
  auto server = std::make_unique<sys::server>(where());
  const device_sink<word> out(g.to_, *server);
  {
    tasks rt(where(), small(where()));
    auto waits = rt.fork(pulls{server->ref(), out.ref()});
    wait_for_waiting(out, 1);
    server->stop();
    EXPECT_EQ(waits.status(), -ESHUTDOWN);
    EXPECT_EQ(rt.fork(pulls{server->ref(), out.ref()}).status(), -ESHUTDOWN);
    g.from_.push(numbers(5, n));
    EXPECT_EQ(g.to_.pull_elements()[0], 10u);  // nobody else has it
  }
}

TEST_P(device_ports, can_end_before_the_graph) {
  doubling g(where());
  sys::server server(where());
  tasks rt(where(), small(where()));
  device_sink_ref<word> old;
  {
    const device_sink<word> out(g.to_, server);
    old = out.ref();
    auto waits = rt.fork(pulls{server.ref(), out.ref()});
    wait_for_waiting(out, 1);
    std::optional<device_sink<word>> ended;  // a second one, of the same sink
    ended.emplace(g.to_, server);
    auto ends = rt.fork(pulls{server.ref(), ended->ref()});
    wait_for_waiting(*ended, 1);
    ended.reset();
    EXPECT_EQ(ends.status(), -EPIPE);
    g.from_.push(numbers(5, n));
    EXPECT_EQ(waits.get(), 10);
  }
  EXPECT_EQ(rt.fork(pulls{server.ref(), old}).status(), -ENOSYS);
  g.from_.push(numbers(6, n));
  EXPECT_EQ(g.to_.pull_elements()[0], 12u);
}

// ---- counts, and what is refused ----

TEST_P(device_ports, carry_as_many_elements_as_there_are) {
  doubling g(where(), false, 1, block_template::variable<word>(n));
  sys::server server(where());
  const device_source<word> in(g.from_, server);
  tasks rt(where(), small(where()));
  for (const std::uint32_t count : {0u, 1u, 3u, 4u}) {
    EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref(), without_limit, 10, count}).get(), 0);
    std::vector<word> expected;
    for (word i = 0; i < count; ++i) expected.push_back(20 + 2 * i);
    EXPECT_EQ(g.to_.pull_elements(), expected);
  }
  EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref(), without_limit, 10, 5}).status(), -EINVAL);
  doubling fixed(where());
  const device_source<word> all(fixed.from_, server);
  for (const std::uint32_t count : {0u, 3u, 5u})
    EXPECT_EQ(rt.fork(pushes{server.ref(), all.ref(), 0, 10, count}).status(), -EINVAL);
}

TEST_P(device_ports, refuse_counts_that_do_not_fit_before_they_wait) {
  doubling g(where());
  sys::server server(where());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  tasks rt(where(), small(where()));
  auto waits = rt.fork(pulls{server.ref(), out.ref()});
  wait_for_waiting(out, 1);
  for (const std::uint32_t room : {0u, 3u})
    EXPECT_EQ(rt.fork(pulls{server.ref(), out.ref(), without_limit, room}).status(), -EINVAL);
  const std::uint32_t most = 1u << 30;  // more bytes than a call carries, too
  EXPECT_EQ(rt.fork(pushes{server.ref(), in.ref(), without_limit, 10, most}).status(), -EINVAL);
  EXPECT_EQ(rt.fork(pulls{server.ref(), out.ref(), 0}).status(), -EAGAIN);
  EXPECT_EQ(out.stats().waiting, 1u);
  g.from_.push(numbers(1, n));
  EXPECT_EQ(waits.get(), 2);
}

TEST_P(device_ports, refuse_calls_by_another_server) {
  doubling g(where()), other(where());
  sys::server server(where()), foreign(where());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  const device_source<word> other_in(other.from_, foreign);
  const device_sink<word> other_out(other.to_, foreign);
  tasks rt(where(), small(where()));
  other.from_.push(numbers(5, n));
  EXPECT_EQ(rt.fork(pulls{foreign.ref(), out.ref()}).status(), -ENOSYS);
  EXPECT_EQ(rt.fork(pushes{foreign.ref(), in.ref()}).status(), -ENOSYS);
  EXPECT_EQ(rt.fork(pulls{foreign.ref(), other_out.ref()}).get(), 10);
  EXPECT_EQ(other_in.stats().blocks, 0u);
}

TEST_P(device_ports, refuse_what_cannot_be_served) {
  sys::server server(where());
  const auto serve = [&](const block_template& t, unsigned threads, bool compiles) {
    executor e(on(where(), threads));
    graph g(e);
    const node a = g.host("a", [](in<word>) {}, {{"a", t}});
    const auto from = g.source<word>(a["a"]);
    if (compiles) g.compile();
    const device_source<word> in(from, server);
  };
  serve(block_template::of<word>(most_device_block / 4), 1, true);
  expect_error([&] { serve(block_template::of<word>(most_device_block / 4 + 1), 1, true); },
               "at most 65536");
  expect_error([&] { serve(four(), 1, false); }, "compile");
  expect_error([&] { serve(four(), 0, true); }, "has no threads");
}

// ---- kernels that wait in place ----

struct kernel_of_all {
  sys::server_ref sys;
  device_source_ref<word> to;
  device_sink_ref<word> from;
  word* blocks;  // one for the block, and one a lane
  std::int64_t* results;
  GROSR_DEVICE void operator()() const {
    const unsigned self = simt::thread_id();
    word* const own = blocks + (self + 1) * to.elements();
    for (std::size_t i = 0; i < to.elements(); ++i) own[i] = self + static_cast<word>(i);
    results[2 * self] = to.push(sys, own, to.elements());
    results[2 * self + 1] = from.pull(sys, own, to.elements());
    simt::sync_block();
    if (self == 0)
      for (std::size_t i = 0; i < to.elements(); ++i) blocks[i] = 1000 + static_cast<word>(i);
    simt::sync_block();
    const long code = to.push(sys.block(), blocks, to.elements());
    simt::sync_block();
    const long elements = from.pull(sys.block(), blocks, from.elements());
    if (self == 0) results[128] = code;
    if (self == 1) results[129] = elements;
    if (simt::warp_id() == 0) {
      const long again = from.try_pull(sys.warp(), blocks, from.elements());
      const long of_null = to.push(sys.warp(), nullptr, to.elements());
      const long too_many = to.push(sys.warp(), blocks, std::size_t{1} << 40);
      if (self == 0) results[130] = again;
      if (self == 0) results[131] = of_null;
      if (self == 0) results[132] = too_many;
    }
  }
};

TEST_P(device_ports, serve_kernels_that_wait_in_place) {
  constexpr std::uint32_t elements = 3000, lanes = 64;
  doubling g(where(), false, lanes, block_template::of<word>(elements));
  sys::server server(where());
  const device_source<word> in(g.from_, server);
  const device_sink<word> out(g.to_, server);
  simt::buffer<word> blocks(where(), simt::space::device, (lanes + 1) * elements);
  simt::buffer<std::int64_t> results(where(), simt::space::device, 2 * lanes + 5);
  simt::run(where(), {1, lanes},
            kernel_of_all{server.ref(), in.ref(), out.ref(), blocks.data(), results.data()});
  std::vector<std::int64_t> r(2 * lanes + 5);
  results.copy_to(r);
  std::vector<word> b(blocks.size());
  blocks.copy_to(b);
  std::vector<bool> came(lanes);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    ASSERT_EQ(r[2 * i], 0);
    ASSERT_EQ(r[2 * i + 1], elements);
    const word first = b[(i + 1) * elements];
    ASSERT_FALSE(came.at(first / 2));
    came[first / 2] = true;
    for (word k = 0; k < elements; ++k) ASSERT_EQ(b[(i + 1) * elements + k], first + 2 * k);
  }
  EXPECT_EQ(r[2 * lanes], 0);
  EXPECT_EQ(r[2 * lanes + 1], elements);
  EXPECT_EQ(r[2 * lanes + 2], -EAGAIN);
  EXPECT_EQ(r[2 * lanes + 3], -EFAULT);
  EXPECT_EQ(r[2 * lanes + 4], -EINVAL);
  for (word k = 0; k < elements; ++k) ASSERT_EQ(b[k], 2000 + 2 * k);
}

}  // namespace
}  // namespace grosr::flow
