// Any number of host threads submit, wait and ask at once; each gets what is its own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/scramble.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(many_threads);

void in_threads(unsigned n, const std::function<void(unsigned)>& body) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < n; ++t) threads.emplace_back([&, t] { body(t); });
  for (auto& thread : threads) thread.join();
}

// Each thread marks its own cells, in spans of all lengths, and waits for some of them.
void expect_all_marked(test_runtime& rt, std::uint32_t* cells, unsigned threads,
                       std::uint32_t each) {
  in_threads(threads, [&](unsigned t) {
    for (std::uint32_t i = 0; i < each;) {
      const std::uint32_t dice = scramble(t * 100'000 + i);
      const std::uint32_t length = std::min(dice % 8 == 0 ? 1 + dice % 700 : 1u, each - i);
      std::vector<mark<24>> tasks;
      for (std::uint32_t k = 0; k < length; ++k)
        tasks.push_back(mark<24>::make(cells, t * each + i + k));
      const ticket ticket = rt.submit(tasks, dice % 3 == 0 ? priority::low : priority::normal);
      if (dice % 16 == 0) ticket.wait();
      i += length;
    }
  });
}

TEST_P(many_threads, submit_at_once) {
  auto rt = start();
  const auto each = static_cast<std::uint32_t>(scaled(10'000, 500));
  auto& cells = keep<std::uint32_t>(8 * each);
  expect_all_marked(*rt, cells.data(), 8, each);
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
}

TEST_P(many_threads, submit_at_once_through_few_slots_and_packets) {
  runtime_options o = small_options();
  o.slots = 16;
  o.ring_capacity = 8;
  auto rt = start(o);
  const auto each = static_cast<std::uint32_t>(scaled(3000, 300));
  auto& cells = keep<std::uint32_t>(4 * each);
  expect_all_marked(*rt, cells.data(), 4, each);
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
}

// As many threads as slots, each with a span that needs several: they must not wait for each other.
TEST_P(many_threads, submit_long_spans_with_a_slot_each) {
  runtime_options o = small_options();
  o.slots = 4;
  o.watchdog = 3s;
  auto rt = start(o);
  constexpr std::uint32_t length = 600;
  const auto times = static_cast<std::uint32_t>(scaled(100, 20));
  auto& cells = keep<std::uint32_t>(4 * length);
  in_threads(4, [&](unsigned t) {
    std::vector<mark<16>> tasks;
    for (std::uint32_t i = 0; i < length; ++i)
      tasks.push_back(mark<16>::make(cells.data(), t * length + i));
    for (std::uint32_t again = 0; again < times; ++again) rt->submit(tasks);
  });
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, times));
}

TEST_P(many_threads, wait_for_their_own) {
  auto rt = start();
  const auto rounds = static_cast<std::uint32_t>(scaled(200, 20));
  constexpr unsigned threads = 6;
  std::vector<simt::buffer<std::uint32_t>*> cells;
  for (unsigned t = 0; t < threads; ++t) cells.push_back(&keep<std::uint32_t>(1));
  std::atomic<unsigned> wrong{0};
  in_threads(threads, [&](unsigned t) {
    const auto& mine = *cells[t];
    for (std::uint32_t i = 1; i <= rounds; ++i) {
      // A tree's leaves are descendants: only wait_all() covers them.
      if (i % 2 == 0)
        rt->submit(tree{mine.data(), 0}).wait();
      else
        rt->submit(tree{mine.data(), 3});
      if (i % 2 != 0) rt->wait_all();
      if (contents(mine)[0] != (i + 1) / 2 * 8 + i / 2) ++wrong;
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
}

// One thread waits for everything while others never stop submitting: it must come back, and what
// it had submitted must have run, with all that it spawned.
TEST_P(many_threads, wait_for_all_while_others_submit) {
  auto rt = start();
  auto& mine = keep<std::uint32_t>(1);
  auto& cells = keep<std::uint32_t>(2);
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  for (unsigned t = 0; t < 2; ++t)
    others.emplace_back([&, t] {
      std::vector<ticket> window(32);
      for (unsigned i = 0; !over; ++i) {  // there is always something left to run
        window[i % 32].wait();
        window[i % 32] = rt->submit(tree{cells.data() + t, 2});
      }
    });
  const auto rounds = static_cast<std::uint32_t>(scaled(50, 5));
  std::uint32_t good = 0;
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    rt->submit(tree{mine.data(), 5});
    if (!rt->wait_all_for(20s * slowdown)) break;
    if (contents(mine)[0] != i * 32) break;
    ++good;
  }
  over = true;
  for (auto& t : others) t.join();
  EXPECT_EQ(good, rounds);
  rt->wait_all();
}

TEST_P(many_threads, ask_while_tasks_run) {
  auto rt = start();
  auto& cells = keep<std::uint32_t>(1);
  std::atomic<bool> over{false};
  std::thread asker([&] {
    std::uint64_t tasks = 0, submitted = 0;
    while (!over) {
      const runtime_stats s = rt->stats();
      EXPECT_GE(s.tasks, tasks);
      EXPECT_GE(s.submitted, submitted);
      tasks = s.tasks;
      submitted = s.submitted;
      EXPECT_LE(rt->errors().size(), 64u);
      rt->resident();
    }
  });
  for (std::uint32_t i = 0; i < scaled(200, 20); ++i) {
    rt->submit(tree{cells.data(), 4});
    if (i % 10 == 0) rt->wait_all();
  }
  rt->wait_all();
  over = true;
  asker.join();
  EXPECT_EQ(contents(cells)[0], scaled(200, 20) * 16);
}

}  // namespace
}  // namespace grosr::testing
