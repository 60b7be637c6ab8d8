// A ticket is done when its tasks have run, says whether one failed, and goes on to say so long
// after its slot serves others.
#include <chrono>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(tickets);

void open(const simt::buffer<std::uint32_t>& gate) {
  simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
}

TEST_P(tickets, of_nobody_are_done) {
  const ticket t;
  EXPECT_TRUE(t.done());
  EXPECT_TRUE(t.wait_for(0ns));
  t.wait();
  EXPECT_FALSE(t.failed());
}

TEST_P(tickets, are_done_when_their_tasks_are) {
  auto rt = start();
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  const ticket t = rt->submit(gated{gate.data(), passed.data()});
  EXPECT_FALSE(t.done());
  const auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(t.wait_for(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  EXPECT_FALSE(t.done());
  open(gate);
  EXPECT_TRUE(t.wait_for(30s));
  EXPECT_TRUE(t.done());
  t.wait();
  EXPECT_EQ(contents(passed)[0], 1u);
}

// A span of many packets: its ticket is not done before the last of its tasks.
TEST_P(tickets, of_many_packets_wait_for_the_last) {
  auto rt = start();
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  // Every gated task holds its warp, so only some of them run before the gate opens.
  const std::vector<gated> tasks(4000, gated{gate.data(), passed.data()});
  const ticket t = rt->submit(tasks);
  EXPECT_FALSE(t.wait_for(5ms));
  open(gate);
  t.wait();
  EXPECT_EQ(contents(passed)[0], 4000u);
}

TEST_P(tickets, do_not_wait_for_what_their_tasks_spawn) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  const ticket t = rt->submit(tree{leaves.data(), 12});
  t.wait();
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], 4096u);
}

// Marks whose bytes are wrong return an error.
TEST_P(tickets, say_whether_a_task_failed) {
  auto rt = start();
  auto& cells = keep<std::uint32_t>(1000);
  const mark<16> good = mark<16>::make(cells.data(), 0), bad{cells.data(), 1, {0}};
  for (std::uint32_t n : {1u, 5u, 32u, 200u, 1000u, 3000u}) {
    std::vector<mark<16>> tasks(n, good);
    const ticket well = rt->submit(tasks);
    tasks[n - 1] = bad;
    const ticket badly = rt->submit(tasks);
    well.wait();
    badly.wait();
    EXPECT_FALSE(well.failed()) << n;
    EXPECT_TRUE(badly.failed()) << n;
  }
}

TEST_P(tickets, outlive_their_slots) {
  runtime_options o = small_options();
  o.slots = 4;
  auto rt = start(o);
  auto& cells = keep<std::uint32_t>(1);
  const auto n = static_cast<std::uint32_t>(scaled(5000, 500));
  std::vector<ticket> all;
  for (std::uint32_t i = 0; i < n; ++i) {
    mark<16> task = mark<16>::make(cells.data(), 0);
    if (i % 3 == 0) task.check[0] = 99;
    all.push_back(i % 7 == 0 ? rt->submit(std::vector<mark<16>>(100, task)) : rt->submit(task));
  }
  rt->wait_all();
  for (std::uint32_t i = 0; i < n; ++i) {
    ASSERT_TRUE(all[i].done()) << "ticket " << i;
    ASSERT_EQ(all[i].failed(), i % 3 == 0) << "ticket " << i;
    ASSERT_TRUE(all[i].wait_for(0ns));
  }
}

// The newest failures are the ones that somebody still asks for; 65,536 are remembered.
TEST_P(tickets, say_that_they_failed_after_very_many_failures) {
  runtime_options o = small_options();
  o.slots = 256;
  auto rt = start(o);
  auto& cells = keep<std::uint32_t>(1);
  mark<16> bad = mark<16>::make(cells.data(), 0);
  bad.check[0] = 99;
  std::vector<ticket> last;
  const auto n = static_cast<std::uint32_t>(scaled(70'000, 2000));
  for (std::uint32_t i = 0; i < n; ++i) {
    const ticket t = rt->submit(bad);
    if (i >= n - 1000) last.push_back(t);
  }
  rt->wait_all();
  for (const ticket& t : last) ASSERT_TRUE(t.failed());
  rt->stop();
  EXPECT_EQ(rt->stats().failed, n);
}

TEST_P(tickets, can_be_waited_for_by_many_threads) {
  auto rt = start();
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  const ticket t = rt->submit(gated{gate.data(), passed.data()});
  std::vector<std::thread> threads;
  std::atomic<unsigned> woken{0};
  for (unsigned i = 0; i < 6; ++i)
    threads.emplace_back([&, t] {
      t.wait();
      ++woken;
    });
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(woken.load(), 0u);
  open(gate);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken.load(), 6u);
}

// Longer than the clock goes on: no limit.
TEST_P(tickets, can_be_waited_for_without_end) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  const auto ever = std::chrono::nanoseconds::max();
  EXPECT_TRUE(rt->submit(tree{leaves.data(), 10}).wait_for(ever));
  EXPECT_TRUE(rt->wait_all_for(ever));
  rt->stop(ever);
  EXPECT_EQ(contents(leaves)[0], 1024u);
}

}  // namespace
}  // namespace grosr::testing
