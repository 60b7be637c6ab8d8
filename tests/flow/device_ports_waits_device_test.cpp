// How calls that wait at a device port end: by a block, by a limit, and by the end of the port, of
// its graph, of its server and of a runtime.
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "flow/device_port_tasks.hpp"
#include "support/devices.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

GROSR_DEVICE_SUITE(device_ports_waits);

TEST_P(device_ports_waits, try_and_wait_for_so_long) {
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

TEST_P(device_ports_waits, tell_waiting_tasks_that_the_graph_was_stopped) {
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

TEST_P(device_ports_waits, tell_waiting_tasks_that_a_node_failed) {
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

TEST_P(device_ports_waits, give_the_block_of_a_lost_runtime_to_another) {
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

TEST_P(device_ports_waits, stop_before_the_runtime_whose_tasks_wait) {
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

TEST_P(device_ports_waits, push_nothing_that_has_ended_with_the_server) {
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

TEST_P(device_ports_waits, end_with_the_server) {
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

TEST_P(device_ports_waits, can_end_before_the_graph) {
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

}  // namespace
}  // namespace grosr::flow
