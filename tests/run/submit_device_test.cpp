// Every task that the host hands over runs exactly once, whole: one, many, in spans of any length,
// of any width, size and priority.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(submit);

constexpr std::uint32_t lengths[] = {1, 2, 31, 32, 33, 63, 255, 256, 257, 1000, 10'000};

template <class Task>
std::vector<Task> marks(std::uint32_t* cells, std::uint32_t n) {
  std::vector<Task> all;
  for (std::uint32_t i = 0; i < n; ++i) all.push_back(Task::make(cells, i));
  return all;
}

TEST_P(submit, runs_spans_of_any_length) {
  auto rt = start();
  for (std::uint32_t n : lengths) {
    rt->park();  // memcheck knows no memory that comes while a kernel runs
    auto& cells = keep<std::uint32_t>(n);
    rt->submit(marks<mark<16>>(cells.data(), n)).wait();
    EXPECT_TRUE(all_are(cells, 1u)) << n << " tasks";
  }
  EXPECT_TRUE(rt->errors().empty());
}

TEST_P(submit, runs_very_long_spans) {
  auto rt = start();
  // From 262,144 on packets are longer.
  const std::uint32_t n = scale() >= 1 ? 300'001 : 30'001;
  auto& cells = keep<std::uint32_t>(n);
  const auto tasks = marks<mark<16>>(cells.data(), n);
  const ticket t = rt->submit(tasks);
  t.wait();
  EXPECT_TRUE(all_are(cells, 1u));
  EXPECT_FALSE(t.failed());
}

TEST_P(submit, runs_tasks_of_any_size) {
  auto rt = start();
  for (std::uint32_t n : lengths) {
    rt->park();  // memcheck knows no memory that comes while a kernel runs
    auto& cells = keep<std::uint32_t>(n);
    rt->submit(marks<mark<24>>(cells.data(), n)).wait();
    rt->submit(marks<mark<64>>(cells.data(), n)).wait();
    EXPECT_TRUE(all_are(cells, 2u)) << n << " tasks";
  }
  EXPECT_TRUE(rt->errors().empty());
}

// Tasks of 1 and 4 bytes tell what arrived by the error that they return.
template <class Word>
void expect_small_ones(test_runtime& rt, std::uint32_t first) {
  std::vector<tell<Word>> all;
  for (std::uint32_t i = 0; i < 40; ++i) all.push_back({static_cast<Word>(first + i)});
  rt.submit(all).wait();
  rt.submit(tell<Word>{static_cast<Word>(first + 40)}).wait();
  std::vector<std::uint32_t> seen(41);
  for (const task_error& e : rt.errors()) {
    ASSERT_EQ(e.arguments.size(), sizeof(Word));
    Word word;
    std::memcpy(&word, e.arguments.data(), sizeof word);
    EXPECT_EQ(e.code, -1 - static_cast<int>(word));
    ASSERT_LT(word - first, 41u);
    ++seen[word - first];
  }
  EXPECT_EQ(seen, std::vector<std::uint32_t>(41, 1));
}

TEST_P(submit, runs_tasks_of_one_byte) {
  auto rt = start();
  expect_small_ones<std::uint8_t>(*rt, 100);
}

TEST_P(submit, runs_tasks_of_four_bytes) {
  auto rt = start();
  expect_small_ones<std::uint32_t>(*rt, 1'000'000);
}

TEST_P(submit, runs_wide_tasks_of_any_number) {
  auto rt = start();
  for (std::uint32_t n : {1u, 2u, 31u, 33u, 300u}) {
    rt->park();  // memcheck knows no memory that comes while a kernel runs
    auto& cells = keep<std::uint32_t>(2 * n);
    std::vector<warp_mark> warps;
    std::vector<block_mark> blocks;
    for (std::uint32_t i = 0; i < n; ++i) {
      warps.push_back({cells.data(), i});
      blocks.push_back({cells.data(), n + i});
    }
    const ticket w = rt->submit(warps), b = rt->submit(blocks);
    w.wait();
    b.wait();
    EXPECT_FALSE(w.failed() || b.failed());
    const auto all = contents(cells);
    for (std::uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(all[i], 32u) << "warp task " << i << " of " << n;
      ASSERT_EQ(all[n + i], 128u) << "block task " << i << " of " << n;
    }
  }
}

TEST_P(submit, takes_an_empty_span) {
  auto rt = start();
  const ticket t = rt->submit(std::span<const mark<16>>());
  EXPECT_TRUE(t.done());
  t.wait();
  EXPECT_FALSE(t.failed());
  EXPECT_TRUE(rt->try_submit(std::span<const mark<16>>()).has_value());
  rt->wait_all();
  EXPECT_EQ(rt->stats().submitted, 0u);
  EXPECT_EQ(rt->stats().residencies, 0u);
}

TEST_P(submit, lets_the_array_be_reused_at_once) {
  auto rt = start();
  constexpr std::uint32_t n = 3000;
  auto& cells = keep<std::uint32_t>(n);
  auto tasks = marks<mark<24>>(cells.data(), n);
  const ticket t = rt->submit(tasks);
  for (auto& task : tasks) task = {nullptr, ~0u, {}};
  t.wait();
  EXPECT_TRUE(all_are(cells, 1u));
  EXPECT_FALSE(t.failed());
}

TEST_P(submit, runs_every_priority) {
  auto rt = start();
  constexpr std::uint32_t n = 500;
  auto& cells = keep<std::uint32_t>(n);
  const auto tasks = marks<mark<16>>(cells.data(), n);
  for (unsigned level = 0; level < priority_levels; ++level) {
    rt->submit(tasks, static_cast<priority>(level));
    for (std::uint32_t i = 0; i < 40; ++i) rt->submit(tasks[i], static_cast<priority>(level));
  }
  rt->wait_all();
  const auto all = contents(cells);
  for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(all[i], i < 40 ? 8u : 4u) << "task " << i;
}

// Fewer blocks than rings: each goes round several. More: some share one.
TEST_P(submit, runs_every_priority_with_any_number_of_blocks_and_rings) {
  for (auto [sms, blocks_per_sm, rings] :
       {std::array{1u, 1u, 8u}, std::array{0u, 1u, 2u}, std::array{0u, 0u, 1u}}) {
    runtime_options o = small_options();
    o.sms = sms;
    o.blocks_per_sm = blocks_per_sm;
    o.rings_per_level = rings;
    o.idle_timeout = std::chrono::milliseconds(2);
    auto rt = start(o);
    auto& cells = keep<std::uint32_t>(4);
    const auto n = static_cast<std::uint32_t>(scaled(50, 5));
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t l = 0; l < 4; ++l) {
        rt->submit(mark<16>::make(cells.data(), l), static_cast<priority>(l));
        rt->submit(std::vector<mark<16>>(99, mark<16>::make(cells.data(), l)),
                   static_cast<priority>(l));
      }
      rt->wait_all();
    }
    EXPECT_TRUE(all_are(cells, n * 100));
  }
}

TEST_P(submit, one_by_one_runs_each_once) {
  auto rt = start();
  const auto n = static_cast<std::uint32_t>(scaled(20'000, 1000));
  auto& cells = keep<std::uint32_t>(n);
  for (std::uint32_t i = 0; i < n; ++i) rt->submit(mark<16>::make(cells.data(), i));
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
}

// Tries only: what was not taken is tried again, and nothing runs twice.
TEST_P(submit, that_tries_runs_what_it_took) {
  runtime_options o = small_options();
  o.slots = 4;
  o.ring_capacity = 8;
  auto rt = start(o);
  const auto n = static_cast<std::uint32_t>(scaled(5000, 500));
  auto& cells = keep<std::uint32_t>(n);
  const auto tasks = marks<mark<16>>(cells.data(), n);
  for (std::uint32_t i = 0; i < n;) {
    const std::uint32_t length = std::min(1 + i % 40, n - i);
    const auto part = std::span<const mark<16>>(tasks).subspan(i, length);
    if (rt->try_submit(part, static_cast<priority>(i % priority_levels))) i += length;
  }
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
}

// While every worker is busy, slots run out: then a try says so at once.
TEST_P(submit, that_tries_does_not_wait_when_slots_are_full) {
  runtime_options o = small_options();
  o.slots = 8;
  auto rt = start(o);
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  std::uint32_t taken = 0;
  for (; taken < 20; ++taken)
    if (!rt->try_submit(gated{gate.data(), passed.data()})) break;
  EXPECT_EQ(taken, 8u);
  simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
  rt->wait_all();
  EXPECT_EQ(contents(passed)[0], taken);
}

// The same for packets: nobody reads them, and the slots are many.
TEST_P(submit, that_tries_does_not_wait_when_packets_are_full) {
  runtime_options o = small_options();
  o.ring_capacity = 8;
  o.rings_per_level = 1;
  auto rt = start(o);
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  const simt::atomic_ref<std::uint32_t, simt::scope::system> word(gate[0]);
  std::atomic<bool> over{false};
  std::thread opener([&] {  // ends a try that waits
    for (int i = 0; i < 60 && !over; ++i) std::this_thread::sleep_for(50ms);
    word.store(1, simt::release);
  });
  std::uint32_t taken = 0;
  bool refused = false;
  while (!refused && word.load(simt::acquire) == 0) {
    refused = !rt->try_submit(gated{gate.data(), passed.data()}, priority::low);
    if (!refused) ++taken;
  }
  EXPECT_TRUE(refused);
  EXPECT_EQ(word.load(simt::acquire), 0u) << "a try waited for a packet, after " << taken;
  over = true;
  opener.join();
  rt->wait_all();
  EXPECT_EQ(contents(passed)[0], taken);
}

TEST_P(submit, of_a_priority_that_is_none_is_refused) {
  auto rt = start();
  auto& cells = keep<std::uint32_t>(1);
  const auto task = mark<16>::make(cells.data(), 0);
  for (const auto p : {static_cast<priority>(4), static_cast<priority>(200)}) {
    EXPECT_EQ(error_of([&] { rt->submit(task, p); }).code(), errc::invalid_option);
    EXPECT_EQ(error_of([&] { rt->try_submit(task, p); }).code(), errc::invalid_option);
  }
  rt->submit(task).wait();
  EXPECT_EQ(contents(cells)[0], 1u);
}

}  // namespace
}  // namespace grosr::testing
