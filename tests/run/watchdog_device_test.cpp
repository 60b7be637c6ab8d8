// No call waits for ever for a task that does not end: the watchdog names it, and everybody who
// waits learns of it. A runtime that makes progress, or has nothing to do, is left alone.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "grosr/simt/relax.hpp"
#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(watchdog);

runtime_options impatient() {
  runtime_options o = small_options();
  o.watchdog = 300ms;
  return o;
}

void expect_watchdog(const error& e, const char* of = "a wait") {
  SCOPED_TRACE(of);
  EXPECT_EQ(e.code(), errc::watchdog) << e.what();
  const std::string text = e.what();
  EXPECT_NE(text.find("no task ended for 300 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("gated"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_P(watchdog, names_a_task_that_does_not_end) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  auto rt = start(impatient());
  const gated task{gate.data(), passed.data()};
  const auto before = std::chrono::steady_clock::now();
  const ticket t = rt->submit(task);
  std::thread other([&] { expect_watchdog(error_of([&] { rt->wait_all(); }), "wait_all"); });
  const error e = error_of([&] { t.wait(); });
  expect_watchdog(e, "ticket::wait");
  // The host knows what a lane waits for.
  const std::string text = e.what();
  const bool says = text.find("gated polls for \"the gate\" at ") != std::string::npos &&
                    text.find("run/tasks.hpp:") != std::string::npos;
  EXPECT_EQ(says, !where().is_cuda()) << text;
  other.join();
  EXPECT_GE(std::chrono::steady_clock::now() - before, 300ms);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
  // From now on everything says the same.
  expect_watchdog(error_of([&] { t.wait_for(1s); }), "wait_for");
  expect_watchdog(error_of([&] { rt->wait_all_for(1s); }), "wait_all_for");
  expect_watchdog(error_of([&] { rt->submit(task); }), "submit");
  expect_watchdog(error_of([&] { rt->try_submit(task); }), "try_submit");
  expect_watchdog(error_of([&] { rt->park(); }), "park");
  expect_watchdog(error_of([&] { rt->stop(); }), "stop");
  EXPECT_FALSE(t.failed());
  EXPECT_EQ(rt->stats().submitted, 1u);
  rt.reset();
  // Another runtime on the device works.
  auto next = start();
  auto& leaves = keep<std::uint32_t>(1);
  next->submit(tree{leaves.data(), 5});
  next->wait_all();
  EXPECT_EQ(contents(leaves)[0], 32u);
}

TEST_P(watchdog, ends_stop) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  auto rt = start(impatient());
  rt->submit(gated{gate.data(), passed.data()});
  expect_watchdog(error_of([&] { rt->stop(); }));
}

TEST_P(watchdog, ends_destruction) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  const auto before = std::chrono::steady_clock::now();
  start(impatient())->submit(gated{gate.data(), passed.data()});
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
}

TEST_P(watchdog, ends_a_submit_that_waits_for_room) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  runtime_options o = impatient();
  o.slots = 4;
  auto rt = start(o);
  const gated task{gate.data(), passed.data()};
  expect_watchdog(error_of([&] {
    for (;;) rt->submit(task);
  }));
}

/// Whether a task begins in time: one that has not does not hold up a park.
bool begins(std::uint32_t& word) {
  const simt::atomic_ref<std::uint32_t, simt::scope::system> shared(word);
  for (unsigned i = 0; i < 20'000 && shared.load(simt::acquire) == 0; ++i)
    std::this_thread::sleep_for(1ms);
  return shared.load(simt::acquire) != 0;
}

// Work is left, the kernel was told to leave, and one task does not let it.
TEST_P(watchdog, ends_a_park_that_a_task_holds_up) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  auto rt = start(impatient());
  auto& begun = keep<std::uint32_t>(1, simt::space::pinned);
  const ticket t = rt->submit(gated{gate.data(), passed.data(), begun.data()});
  EXPECT_TRUE(begins(begun[0]));
  // A hang here would be one of the whole suite: the gate opens in the end.
  std::atomic<bool> over{false};
  std::thread opener([&] {
    for (int i = 0; i < 100 && !over; ++i) std::this_thread::sleep_for(50ms);
    simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
  });
  // A thread that waits meanwhile brings the next kernel, which stands behind the one that does not
  // leave.
  std::thread waiter([&] { expect_watchdog(error_of([&] { t.wait(); })); });
  const auto before = std::chrono::steady_clock::now();
  try {
    rt->park();
    ADD_FAILURE() << "park() returned, after " << (std::chrono::steady_clock::now() - before) / 1ms
                  << " ms";
  } catch (const error& e) {
    expect_watchdog(e);
  }
  waiter.join();
  over = true;
  opener.join();
}

TEST_P(watchdog, lets_a_wait_with_a_limit_end_in_time_during_a_park) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  runtime_options o = small_options();
  o.watchdog = 0ms;
  auto rt = start(o);
  auto& begun = keep<std::uint32_t>(1, simt::space::pinned);
  const ticket t = rt->submit(gated{gate.data(), passed.data(), begun.data()});
  EXPECT_TRUE(begins(begun[0]));
  std::thread opener([&] {
    std::this_thread::sleep_for(1s);
    simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
  });
  std::thread parker([&] { rt->park(); });
  std::this_thread::sleep_for(100ms);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(t.wait_for(50ms));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 500ms);
  opener.join();
  parker.join();
  t.wait();
}

// Each step is shorter than the watchdog's time, all of them together are longer.
struct step {
  std::uint32_t* count;
  std::uint32_t left;
  std::uint64_t ns = 60'000'000;
  GROSR_DEVICE void operator()(auto& context) const {
    const std::uint64_t end = context.clock_ns() + ns;
    while (context.clock_ns() < end && !context.aborted()) simt::pause(0, "the clock");
    add_one(count);
    if (left > 1) context.spawn(step{count, left - 1, ns});
  }
};

TEST_P(watchdog, leaves_slow_progress_alone) {
  auto& count = keep<std::uint32_t>(1);
  runtime<step> rt(where(), impatient());
  rt.submit(step{count.data(), 12});
  rt.wait_all();
  EXPECT_EQ(contents(count)[0], 12u);
}

/// Threads that want all of every processor, while it lives, for a minute at most.
class other_programs {
 public:
  other_programs() {
    const unsigned n = 5 * std::max(1u, std::thread::hardware_concurrency());
    const auto end = std::chrono::steady_clock::now() + 60s;
    for (unsigned i = 0; i < n; ++i)
      threads_.emplace_back([this, end] {
        while (!ended_ && std::chrono::steady_clock::now() < end) simt::relax();
      });
  }
  ~other_programs() {
    ended_ = true;
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

// A machine with so much else to do that no thread of the runtime has a processor for longer than
// the watchdog's time. With a sanitizer that time is ten times as long, so that other tests beside
// this one do not end it: there the test finds races, and a watchdog that counts all time would
// pass.
TEST_P(watchdog, leaves_alone_what_has_no_processor) {
  if (where().is_cuda()) GTEST_SKIP() << "a GPU has processors of its own";
  auto& count = keep<std::uint32_t>(1);
  runtime_options o = small_options();
  o.watchdog = 50ms * slowdown;
  other_programs others;
  std::thread([&] {
    ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10), 0);  // its own
    EXPECT_NO_THROW({
      runtime<step> rt(where(), o);
      rt.submit(step{count.data(), 20, 1'000'000});
      rt.wait_all();
    });
  }).join();
  EXPECT_EQ(contents(count)[0], 20u);
}

TEST_P(watchdog, leaves_the_idle_alone) {
  runtime_options o = impatient();
  o.idle_timeout = 0us;
  auto rt = start(o);
  auto& leaves = keep<std::uint32_t>(1);
  rt->submit(tree{leaves.data(), 5});
  rt->wait_all();
  std::this_thread::sleep_for(800ms);
  rt->submit(tree{leaves.data(), 5});
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], 64u);
}

TEST_P(watchdog, leaves_the_parked_alone) {
  auto rt = start(impatient());
  auto& leaves = keep<std::uint32_t>(1);
  rt->submit(tree{leaves.data(), 15});
  rt->park();
  std::this_thread::sleep_for(800ms);
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], 1u << 15);
}

TEST_P(watchdog, that_is_off_waits) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  runtime_options o = small_options();
  o.watchdog = 0ms;
  auto rt = start(o);
  const ticket t = rt->submit(gated{gate.data(), passed.data()});
  EXPECT_FALSE(t.wait_for(500ms));
  simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
  t.wait();
  EXPECT_EQ(contents(passed)[0], 1u);
}

}  // namespace
}  // namespace grosr::testing
