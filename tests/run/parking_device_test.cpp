// An idle runtime gives the device back and comes again for the next submission; nothing is lost
// around either.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/scramble.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(parking);

bool leaves_within(test_runtime& rt, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (rt.resident()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

runtime_options restless() {
  runtime_options o = small_options();
  o.idle_timeout = 1ms;
  return o;
}

TEST_P(parking, happens_when_idle_and_ends_with_a_submission) {
  auto rt = start(restless());
  EXPECT_FALSE(rt->resident());
  auto& cells = keep<std::uint32_t>(1);
  for (std::uint32_t i = 1; i <= 5; ++i) {
    rt->submit(mark<16>::make(cells.data(), 0)).wait();
    EXPECT_TRUE(leaves_within(*rt, 20s));
    EXPECT_EQ(contents(cells)[0], i);
  }
  EXPECT_GE(rt->stats().residencies, 5u);
}

TEST_P(parking, happens_after_the_default_time) {
  auto rt = start();
  auto& cells = keep<std::uint32_t>(1);
  rt->submit(mark<16>::make(cells.data(), 0)).wait();
  EXPECT_TRUE(leaves_within(*rt, 5s));
}

TEST_P(parking, does_not_happen_when_told_never) {
  runtime_options o = small_options();
  o.idle_timeout = 0us;
  auto rt = start(o);
  auto& cells = keep<std::uint32_t>(1);
  rt->submit(mark<16>::make(cells.data(), 0)).wait();
  EXPECT_FALSE(leaves_within(*rt, 200ms));
  rt->submit(mark<16>::make(cells.data(), 0)).wait();
  EXPECT_EQ(rt->stats().residencies, 1u);
}

TEST_P(parking, does_not_happen_while_tasks_run) {
  auto rt = start(restless());
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  const ticket t = rt->submit(gated{gate.data(), passed.data()});
  EXPECT_FALSE(leaves_within(*rt, 100ms));
  simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
  t.wait();
  EXPECT_EQ(rt->stats().residencies, 1u);
}

// Submissions come when the kernel just leaves, has just left, or thinks of it.
TEST_P(parking, loses_nothing_around_the_time_out) {
  auto rt = start(restless());
  auto& cells = keep<std::uint32_t>(1);
  auto& leaves = keep<std::uint32_t>(1);
  const auto n = static_cast<std::uint32_t>(scaled(2000, 100));
  for (std::uint32_t i = 1; i <= n; ++i) {
    const ticket t =
        rt->submit(mark<16>::make(cells.data(), 0), i % 2 ? priority::normal : priority::low);
    if (i % 16 == 0) rt->submit(tree{leaves.data(), 4});
    ASSERT_TRUE(t.wait_for(20s)) << "submission " << i;
    ASSERT_EQ(contents(cells)[0], i);
    std::this_thread::sleep_for(std::chrono::microseconds(scramble(i) % 2500 * slowdown));
  }
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], n / 16 * 16);
  EXPECT_GE(rt->stats().residencies, n / 20);
}

TEST_P(parking, loses_nothing_of_several_threads) {
  auto rt = start(restless());
  const auto n = static_cast<std::uint32_t>(scaled(300, 30));
  auto& cells = keep<std::uint32_t>(4 * n);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < n; ++i) {
        rt->submit(mark<16>::make(cells.data(), t * n + i));
        if (i % 8 == t) rt->wait_all();
        std::this_thread::sleep_for(std::chrono::microseconds(scramble(t * n + i) % 3000));
      }
    });
  for (auto& t : threads) t.join();
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
}

TEST_P(parking, when_asked_for_leaves_work_for_later) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  const std::uint32_t depth = scaled_depth(15, 10);
  for (std::uint32_t round = 1; round <= 4; ++round) {
    rt->submit(tree{leaves.data(), depth});
    rt->park();
    EXPECT_FALSE(rt->resident());
    rt->wait_all();
    EXPECT_EQ(contents(leaves)[0], round << depth);
  }
}

TEST_P(parking, when_asked_for_keeps_wide_tasks) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(2);
  rt->submit(mixed{leaves.data(), 6});
  rt->submit(std::vector<block_tree>(20, block_tree{leaves.data() + 1, 4}));
  for (int i = 0; i < 5; ++i) {
    rt->park();
    EXPECT_FALSE(rt->resident());
    rt->wait_all_for(2ms);
  }
  rt->wait_all();
  EXPECT_EQ(contents(leaves), (std::vector<std::uint32_t>{729, 320}));
}

TEST_P(parking, lets_a_ticket_bring_it_back) {
  auto rt = start();
  auto& cells = keep<std::uint32_t>(3000);
  std::vector<mark<16>> tasks;
  for (std::uint32_t i = 0; i < 3000; ++i) tasks.push_back(mark<16>::make(cells.data(), i));
  const ticket t = rt->submit(tasks);
  rt->park();
  t.wait();
  EXPECT_TRUE(all_are(cells, 1u));
}

TEST_P(parking, within_a_limit_leaves_tasks_alone) {
  auto rt = start();
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& begun = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  rt->submit(gated{gate.data(), passed.data(), begun.data()});
  const simt::atomic_ref<std::uint32_t, simt::scope::system> has_begun(begun[0]), opened(gate[0]);
  while (has_begun.load(simt::acquire) == 0) std::this_thread::yield();
  EXPECT_FALSE(rt->park_for(30ms));
  opened.store(1, simt::release);
  EXPECT_TRUE(rt->park_for(30s));
  EXPECT_FALSE(rt->resident());
  rt->wait_all();
  EXPECT_EQ(contents(passed)[0], 1u);
}

TEST_P(parking, without_anything_to_do_is_harmless) {
  auto rt = start();
  rt->park();
  rt->park();
  EXPECT_FALSE(rt->resident());
  EXPECT_EQ(rt->stats().residencies, 0u);
  auto& cells = keep<std::uint32_t>(1);
  rt->submit(mark<16>::make(cells.data(), 0)).wait();
  rt->park();
  rt->park();
  EXPECT_FALSE(rt->resident());
  EXPECT_EQ(rt->stats().residencies, 1u);
}

TEST_P(parking, by_another_thread_loses_nothing) {
  auto rt = start();
  const auto n = static_cast<std::uint32_t>(scaled(3000, 200));
  auto& cells = keep<std::uint32_t>(n);
  auto& leaves = keep<std::uint32_t>(1);
  std::atomic<bool> over{false};
  std::thread parker([&] {
    while (!over) {
      rt->park();
      std::this_thread::sleep_for(300us);
    }
  });
  for (std::uint32_t i = 0; i < n; ++i) {
    const ticket t = rt->submit(mark<16>::make(cells.data(), i));
    if (i % 32 == 0) rt->submit(tree{leaves.data(), 6});
    if (i % 64 == 0) t.wait();
  }
  rt->wait_all();
  over = true;
  parker.join();
  EXPECT_TRUE(all_are(cells, 1u));
  EXPECT_EQ(contents(leaves)[0], (n + 31) / 32 * 64);
  EXPECT_GE(rt->stats().residencies, 2u);
}

double seconds_of_processor() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

TEST_P(parking, leaves_the_processor_alone) {
  auto rt = start(restless());
  auto& cells = keep<std::uint32_t>(1);
  rt->submit(mark<16>::make(cells.data(), 0)).wait();
  ASSERT_TRUE(leaves_within(*rt, 20s));
  std::this_thread::sleep_for(20ms);
  const double before = seconds_of_processor();
  std::this_thread::sleep_for(1s);
  EXPECT_LE(seconds_of_processor() - before, 0.02);
}

}  // namespace
}  // namespace grosr::testing
