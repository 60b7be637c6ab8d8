// Ends of channels that device code uses: what tasks push comes into the graph, and what they pull
// is taken out of it, whole and once; who waits holds no worker, and comes in turn.
#include <vector>

#include "flow/device_port_tasks.hpp"
#include "grosr/simt/launch.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(device_ports);

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
