// A runtime ends: stop() and the destructor run what was accepted, a deadline ends that in an
// error, and nothing hangs or is accepted afterwards.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(stopping);

TEST_P(stopping, runs_everything_first) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(2);
  rt->submit(tree{leaves.data(), 14});
  rt->submit(mixed{leaves.data() + 1, 5});
  rt->stop();
  EXPECT_EQ(contents(leaves), (std::vector<std::uint32_t>{1u << 14, 243}));
  EXPECT_FALSE(rt->resident());
}

TEST_P(stopping, by_destruction_runs_everything_first) {
  auto& leaves = keep<std::uint32_t>(1);
  start()->submit(tree{leaves.data(), 13});
  EXPECT_EQ(contents(leaves)[0], 1u << 13);
}

TEST_P(stopping, while_parked_runs_everything_first) {
  auto& leaves = keep<std::uint32_t>(1);
  {
    auto rt = start();
    rt->submit(tree{leaves.data(), 13});
    rt->park();
  }
  EXPECT_EQ(contents(leaves)[0], 1u << 13);
}

TEST_P(stopping, what_never_began_is_quick) {
  const auto before = std::chrono::steady_clock::now();
  start();
  auto rt = start();
  rt->stop();
  rt.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
}

TEST_P(stopping, twice_is_harmless) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  rt->submit(tree{leaves.data(), 5});
  rt->stop();
  rt->stop();
  rt->stop(1s);
  EXPECT_EQ(contents(leaves)[0], 32u);
}

TEST_P(stopping, from_two_threads_waits_in_both) {
  auto rt = start();
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  rt->submit(gated{gate.data(), passed.data()});
  const simt::atomic_ref<std::uint32_t, simt::scope::system> word(gate[0]);
  std::thread opener([&] {
    std::this_thread::sleep_for(200ms);
    word.store(1, simt::release);
  });
  std::vector<std::thread> stoppers;
  for (int i = 0; i < 2; ++i)
    stoppers.emplace_back([&] {
      rt->stop();
      EXPECT_EQ(contents(passed)[0], 1u);
    });
  for (auto& t : stoppers) t.join();
  opener.join();
}

TEST_P(stopping, refuses_what_comes_later) {
  auto rt = start();
  auto& cells = keep<std::uint32_t>(1);
  const mark<16> task = mark<16>::make(cells.data(), 0);
  const ticket before = rt->submit(task);
  rt->stop();
  auto expect_refusal = [](const error& e, const char* count) {
    EXPECT_EQ(e.code(), errc::stopped);
    const std::string text = e.what();
    EXPECT_NE(text.find(std::string("submit: ") + count), std::string::npos) << text;
    EXPECT_NE(text.find("mark<16"), std::string::npos) << text;
    EXPECT_NE(text.find("after stop(); make a new runtime"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  };
  expect_refusal(error_of([&] { rt->submit(task); }), "1 ");
  expect_refusal(error_of([&] { rt->submit(std::vector<mark<16>>(300, task)); }), "300 ");
  expect_refusal(error_of([&] { rt->try_submit(task); }), "1 ");
  // What is left to ask is answered.
  EXPECT_TRUE(before.done());
  before.wait();
  rt->wait_all();
  rt->park();
  EXPECT_EQ(rt->stats().tasks, 1u);
  EXPECT_EQ(contents(cells)[0], 1u);
}

// Everything that submit() took before stop() refused runs.
TEST_P(stopping, beside_submitters_loses_nothing_accepted) {
  for (std::uint32_t again = 0; again < scaled(20, 3); ++again) {
    auto rt = start();
    auto& cells = keep<std::uint32_t>(1);
    const mark<16> task = mark<16>::make(cells.data(), 0);
    std::atomic<std::uint32_t> accepted{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        try {
          for (;;) {
            rt->submit(task);
            ++accepted;
          }
        } catch (const error& e) {
          EXPECT_EQ(e.code(), errc::stopped) << e.what();
        }
      });
    std::this_thread::sleep_for(std::chrono::microseconds(again * 300));
    rt->stop();
    for (auto& t : threads) t.join();
    ASSERT_EQ(contents(cells)[0], accepted.load());
  }
}

TEST_P(stopping, past_its_deadline_says_what_was_not_run) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  auto rt = start();
  rt->submit(gated{gate.data(), passed.data()});
  rt->submit(gated{gate.data(), passed.data()});
  const auto before = std::chrono::steady_clock::now();
  const error e = error_of([&] { rt->stop(50ms); });
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_GE(took, 50ms);
  EXPECT_LT(took, 5s);
  EXPECT_EQ(e.code(), errc::timed_out);
  const std::string text = e.what();
  EXPECT_NE(text.find("stop: the deadline passed with about 2 of 2 tasks not run"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(error_of([&] { rt->submit(gated{gate.data(), passed.data()}); }).code(), errc::stopped);
}

// Nobody waits for ever for what was dropped.
TEST_P(stopping, past_its_deadline_ends_waits) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  runtime_options o = small_options();
  o.slots = 1 << 14;
  auto rt = start(o);
  // Twice as many as there are workers: the last one never starts.
  ticket t;
  for (unsigned i = 0; i < 2 * rt->stats().workers; ++i)
    t = rt->submit(gated{gate.data(), passed.data()});
  std::thread waiter([&] {
    try {
      EXPECT_FALSE(t.wait_for(5s)) << "it cannot be done";
      ADD_FAILURE() << "wait_for() went on after stop()";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::stopped) << e.what();
    }
  });
  EXPECT_EQ(error_of([&] { rt->stop(50ms); }).code(), errc::timed_out);
  waiter.join();
  EXPECT_FALSE(t.done());
  EXPECT_EQ(error_of([&] { t.wait_for(2s); }).code(), errc::stopped);
  EXPECT_EQ(error_of([&] { rt->wait_all_for(2s); }).code(), errc::stopped);
}

TEST_P(stopping, at_once_drops_what_has_not_run) {
  auto& gate = keep<std::uint32_t>(1, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  auto rt = start();
  const gated task{gate.data(), passed.data()};
  const ticket t = rt->submit(task);
  const auto before = std::chrono::steady_clock::now();
  rt->abort();
  rt->abort();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  EXPECT_FALSE(t.done());
  const error e = error_of([&] { rt->wait_all(); });
  EXPECT_EQ(e.code(), errc::stopped);
  EXPECT_NE(std::string(e.what()).find("about 1 of 1 tasks not run"), std::string::npos)
      << e.what();
  EXPECT_EQ(error_of([&] { rt->submit(task); }).code(), errc::stopped);
}

TEST_P(stopping, at_once_after_the_end_is_harmless) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  rt->submit(tree{leaves.data(), 5});
  rt->stop();
  rt->abort();
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], 32u);
  start()->abort();  // nothing ever ran
}

TEST_P(stopping, within_its_deadline_is_as_without) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  rt->submit(tree{leaves.data(), 10});
  rt->stop(30s);
  EXPECT_EQ(contents(leaves)[0], 1024u);
}

TEST_P(stopping, gives_everything_back) {
  const std::size_t before = where().properties().memory_free;
  for (int again = 0; again < 10; ++again) {
    auto rt = start();
    auto& leaves = keep<std::uint32_t>(1);
    rt->submit(tree{leaves.data(), 8});
    rt->wait_all();
    EXPECT_EQ(contents(leaves)[0], 256u);
  }
  if (where().is_cuda()) {
    EXPECT_GE(where().properties().memory_free + (32u << 20), before);
  }
}

}  // namespace
}  // namespace grosr::testing
