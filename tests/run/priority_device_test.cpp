// What is urgent starts before what is not, even when every worker is full; and what is not still
// runs in the end.
#include <chrono>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(priorities);

/// Holds its warp for so long, and adds 1.
struct busy {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* count;
  std::uint32_t us;
  GROSR_DEVICE void operator()(auto& context) const {
    const std::uint64_t end = context.clock_ns() + us * 1000ull;
    while (context.clock_ns() < end && !context.aborted()) simt::pause(0, "the clock");
    context.sync();
    if (context.rank() == 0) add_one(count);
  }
};

/// Notes how far the others are when it starts.
struct look {
  std::uint32_t* count;
  std::uint32_t* seen;
  GROSR_DEVICE void operator()(auto&) const {
    const std::uint32_t now = 1 + simt::atomic_ref(*count).load(simt::relaxed);
    simt::atomic_ref(*seen).store(now, simt::relaxed);
  }
};

/// Keeps its warp busy at its own level until the host says otherwise.
struct endless {
  static constexpr grosr::width width = grosr::width::warp;
  const std::uint32_t* over;  ///< pinned
  GROSR_DEVICE void operator()(auto& context) const {
    const std::uint64_t end = context.clock_ns() + 200'000;
    while (context.clock_ns() < end) simt::pause(0, "the clock");
    context.sync();
    if (context.rank() != 0 || context.aborted()) return;
    simt::atomic_ref<std::uint32_t, simt::scope::system> word(const_cast<std::uint32_t&>(*over));
    if (word.load(simt::relaxed) == 0) context.spawn(*this);
  }
};

/// A long task that splits itself when something higher waits.
struct tiles {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* yielded;
  std::uint32_t* finished;
  std::uint32_t left;  ///< tiles of 1 ms
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t n = left; n != 0; --n) {
      const std::uint64_t end = context.clock_ns() + 1'000'000;
      while (context.clock_ns() < end) simt::pause(0, "the clock");
      // One lane asks: the others might get other answers.
      bool yields = context.rank() == 0 && (context.yield_to_higher() || context.aborted());
      yields = simt::shuffle(simt::full_mask, yields ? 1u : 0u, 0) != 0;
      if (!yields) continue;
      if (context.rank() == 0) {
        add_one(yielded);
        if (n > 1 && !context.aborted()) context.spawn(tiles{yielded, finished, n - 1});
      }
      if (n > 1) return;
    }
    context.sync();
    if (context.rank() == 0) add_one(finished);
  }
};

using urgent_runtime = runtime<busy, look, endless, tiles>;

// Four rounds of low work for every worker; what comes later but is more urgent overtakes it.
TEST_P(priorities, overtake_a_backlog) {
  urgent_runtime rt(where(), small_options());
  const std::uint32_t n = 5 * rt.stats().workers;
  for (const priority p : {priority::normal, priority::high, priority::urgent}) {
    rt.park();  // memcheck knows no memory that comes while a kernel runs
    auto& words = keep<std::uint32_t>(2);
    rt.submit(std::vector<busy>(n, busy{words.data(), 20'000 * slowdown}), priority::low);
    const ticket t = rt.submit(look{words.data(), words.data() + 1}, p);
    ASSERT_TRUE(t.wait_for(20s));
    const std::uint32_t seen = contents(words)[1];
    EXPECT_GE(seen, 1u);
    EXPECT_LT(seen, n / 2) << "level " << static_cast<int>(p);
    rt.wait_all();
    EXPECT_EQ(contents(words)[0], n);
  }
}

TEST_P(priorities, of_spans_overtake_a_backlog) {
  urgent_runtime rt(where(), small_options());
  auto& words = keep<std::uint32_t>(2);
  const std::uint32_t n = 5 * rt.stats().workers;
  rt.submit(std::vector<busy>(n, busy{words.data(), 20'000 * slowdown}), priority::low);
  rt.submit(std::vector<look>(64, look{words.data(), words.data() + 1}), priority::high).wait();
  EXPECT_LT(contents(words)[1], n / 2);
}

TEST_P(priorities, starve_nobody) {
  urgent_runtime rt(where(), small_options());
  auto& over = keep<std::uint32_t>(1, simt::space::pinned);
  auto& words = keep<std::uint32_t>(2);
  rt.submit(std::vector<endless>(3 * rt.stats().workers, endless{over.data()}), priority::urgent);
  for (const priority p : {priority::low, priority::normal, priority::high}) {
    const ticket t = rt.submit(look{words.data(), words.data() + 1}, p);
    EXPECT_TRUE(t.wait_for(20s)) << "level " << static_cast<int>(p);
  }
  const auto n = static_cast<std::uint32_t>(scaled(200, 20));
  const ticket many = rt.submit(std::vector<busy>(n, busy{words.data(), 0}), priority::low);
  EXPECT_TRUE(many.wait_for(30s));
  simt::atomic_ref<std::uint32_t, simt::scope::system>(over[0]).store(1, simt::release);
  rt.wait_all();
  EXPECT_EQ(contents(words)[0], n);
}

TEST_P(priorities, tell_long_tasks_to_yield) {
  urgent_runtime rt(where(), small_options());
  auto& words = keep<std::uint32_t>(4);
  std::uint32_t* w = words.data();
  const std::uint32_t n = rt.stats().workers;
  const ticket low = rt.submit(std::vector<tiles>(n, tiles{w, w + 1, 3000}), priority::low);
  EXPECT_FALSE(low.wait_for(50ms));
  const auto before = std::chrono::steady_clock::now();
  const ticket t = rt.submit(look{w + 1, w + 2}, priority::urgent);
  ASSERT_TRUE(t.wait_for(20s));
  // Tiles of 1 ms, and not the 3 s that a task has left.
  EXPECT_LT(std::chrono::steady_clock::now() - before, 2s);
  const auto all = contents(words);
  EXPECT_GE(all[0], 1u);
  if (n > 100) {
    EXPECT_LT(all[0], n / 4);  // for one task not all yield
  }
  EXPECT_EQ(all[2], 1u);
  EXPECT_THROW(rt.stop(1ms), error);  // nobody waits for the rest
}

TEST_P(priorities, do_not_disturb_without_need) {
  urgent_runtime rt(where(), small_options());
  auto& words = keep<std::uint32_t>(4);
  rt.submit(tiles{words.data(), words.data() + 1, 20}, priority::low);
  rt.wait_all();
  EXPECT_EQ(contents(words)[0], 0u);
  EXPECT_EQ(contents(words)[1], 1u);
}

}  // namespace
}  // namespace grosr::testing
