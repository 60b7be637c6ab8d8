// Jobs begin in order, each has its turn once, and threads are there while they are needed.
#include "sys/workers.hpp"

#include <signal.h>

#include <cerrno>
#include <deque>
#include <thread>

#include "sys/interruption.hpp"
#include "sys/waits.hpp"

namespace grosr::testing {
namespace {

using sys::turn;
using sys::workers;

struct work : sys::job {
  explicit work(std::function<void()> b = [] {}) : job(act_on), body(std::move(b)) {}
  static void act_on(job& j, turn t) {
    auto& w = static_cast<work&>(j);
    if (t == turn::run) w.body();
    ++(t == turn::run ? w.runs : w.stops);
  }
  std::function<void()> body;
  std::atomic<int> runs{0}, stops{0};
};

// Keeps jobs from ending until it is opened.
struct gate {
  std::function<void()> body() {
    return [this] {
      ++inside;
      comes_true([this] { return open.load(); });
    };
  }
  std::atomic<bool> open{false};
  std::atomic<int> inside{0};
};

TEST(workers, begin_jobs_in_the_order_they_were_submitted) {
  constexpr int n = 1000;
  std::vector<int> order;
  std::deque<work> jobs;
  workers pool(1);
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(pool.submit(jobs.emplace_back([&order, i] { order.push_back(i); })), 0);
  pool.drain();
  ASSERT_EQ(order.size(), std::size_t{n});
  for (int i = 0; i < n; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(workers, grow_to_their_limit_and_queue_the_rest) {
  gate g;
  std::deque<work> jobs;
  workers pool(8);
  EXPECT_EQ(pool.threads(), 0u);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pool.submit(jobs.emplace_back(g.body())), 0);
  ASSERT_TRUE(comes_true([&] { return g.inside == 8; }));
  EXPECT_EQ(pool.threads(), 8u);
  EXPECT_EQ(pool.queued(), 12u);
  g.open = true;
  pool.drain();
  for (work& w : jobs) EXPECT_EQ(w.runs, 1);
}

TEST(workers, end_when_idle_and_come_back) {
  gate g;
  std::deque<work> jobs;
  workers pool(4, 30ms);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(pool.submit(jobs.emplace_back(g.body())), 0);
  g.open = true;
  EXPECT_TRUE(comes_true([&] { return pool.threads() == 0; }));
  ASSERT_EQ(pool.submit(jobs.emplace_back()), 0);
  pool.drain();
  EXPECT_EQ(jobs.back().runs, 1);
}

// A little work keeps one thread, not all of them in turn.
TEST(workers, end_though_there_is_work_for_one) {
  gate g;
  std::deque<work> jobs;
  workers pool(8, 300ms * slowdown);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(pool.submit(jobs.emplace_back(g.body())), 0);
  g.open = true;
  pool.drain();
  EXPECT_TRUE(comes_true([&] {
    work w;
    EXPECT_EQ(pool.submit(w), 0);
    pool.drain();
    return pool.threads() <= 2;
  }));
}

TEST(workers, drain_does_not_wait_for_later_jobs) {
  gate g;
  work before, after(g.body());
  std::atomic<bool> drained{false};
  workers pool(2);
  gate first;
  work slow(first.body());
  ASSERT_EQ(pool.submit(slow), 0);
  ASSERT_EQ(pool.submit(before), 0);
  std::thread t([&] {
    pool.drain();
    drained = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(drained);
  ASSERT_EQ(pool.submit(after), 0);
  first.open = true;
  EXPECT_TRUE(comes_true([&] { return drained.load(); }));
  t.join();
  g.open = true;
}

TEST(workers, stop_ends_what_runs_and_hands_the_rest_back) {
  gate g;
  std::deque<work> running, queued;
  workers pool(2);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(pool.submit(running.emplace_back(g.body())), 0);
  ASSERT_TRUE(comes_true([&] { return g.inside == 2; }));
  for (int i = 0; i < 50; ++i) ASSERT_EQ(pool.submit(queued.emplace_back()), 0);
  std::thread t([&] { pool.stop(); });
  EXPECT_TRUE(comes_true([&] { return queued.back().stops == 1; }));
  g.open = true;
  t.join();
  for (work& w : running) EXPECT_EQ(w.runs, 1);
  for (work& w : queued) {
    EXPECT_EQ(w.runs, 0);
    EXPECT_EQ(w.stops, 1);
  }
  EXPECT_EQ(pool.threads(), 0u);
  EXPECT_EQ(pool.submit(running[0]), -ESHUTDOWN);
  pool.drain();
  pool.stop();
}

/// Waits in Linux until it may end; makes way when it is asked to.
struct patient : sys::job {
  explicit patient(workers& p, std::function<bool()> e, int fd = -1)
      : job(act_on), pool(&p), may_end(std::move(e)) {
    interruptible = true;
    descriptor = fd;
  }
  static void act_on(job& j, turn t) {
    auto& w = static_cast<patient&>(j);
    ++w.turns;
    while (t == turn::run && !w.may_end()) {
      if (::poll(nullptr, 0, -1) == 0 || errno != EINTR) break;  // never
      if (workers::is_asked() && !w.may_end() && w.pool->submit(w) == 0) return;
    }
    w.ended = true;
  }
  workers* pool;
  std::function<bool()> may_end;
  std::atomic<int> turns{0};
  std::atomic<bool> ended{false};
};

TEST(workers, make_way_for_jobs_that_queue) {
  std::atomic<bool> released{false};
  std::deque<patient> waiting;
  workers pool(2);
  for (int i = 0; i < 20; ++i) {
    waiting.emplace_back(pool, [&] { return released.load(); });
    ASSERT_EQ(pool.submit(waiting.back()), 0);
  }
  ASSERT_TRUE(comes_true([&] { return pool.queued() == 18; }));
  work releases([&] { released = true; });
  ASSERT_EQ(pool.submit(releases), 0);  // behind all of them
  ASSERT_TRUE(comes_true([&] { return releases.runs == 1; }));
  for (patient& p : waiting) EXPECT_GE(p.turns, 1);
  pool.stop();
  for (patient& p : waiting) EXPECT_TRUE(p.ended);
}

TEST(workers, leave_jobs_alone_that_nobody_queues_behind) {
  std::atomic<bool> released{false};
  workers pool(2);
  patient waits(pool, [&] { return released.load(); });
  ASSERT_EQ(pool.submit(waits), 0);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(waits.turns, 1);
  released = true;
  pool.stop();
  EXPECT_EQ(waits.turns, 1);
  EXPECT_TRUE(waits.ended);
}

TEST(workers, ask_those_that_use_a_descriptor) {
  std::atomic<bool> closed{false}, stopped{false};
  workers pool(4);
  patient of_it(
      pool, [&] { return closed || stopped; }, 7);
  patient of_another(
      pool, [&] { return stopped.load(); }, 8);
  ASSERT_EQ(pool.submit(of_it), 0);
  ASSERT_EQ(pool.submit(of_another), 0);
  ASSERT_TRUE(comes_true([&] { return of_it.turns == 1 && of_another.turns == 1; }));
  closed = true;
  pool.ask_users_of(7);
  EXPECT_TRUE(comes_true([&] { return of_it.ended.load(); }));
  EXPECT_FALSE(of_another.ended);
  EXPECT_EQ(of_another.turns, 1);
  stopped = true;
  pool.stop();
  EXPECT_TRUE(of_another.ended);
}

TEST(workers, let_a_job_submit_itself_again) {
  const auto rounds = static_cast<int>(scaled(20'000, 1000));
  workers pool(3);
  std::atomic<int> count{0};
  work w;
  w.body = [&] { EXPECT_TRUE(++count >= rounds || pool.submit(w) == 0); };
  ASSERT_EQ(pool.submit(w), 0);
  ASSERT_TRUE(comes_true([&] { return w.runs == rounds; }));
}

TEST(workers, take_no_signal_that_the_program_has_a_handler_for) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto try_it = [] {
    struct sigaction own {
    }, found{};
    own.sa_handler = [](int) {};
    ::sigaction(SIGRTMAX, &own, nullptr);
    workers pool(1);
    ::sigaction(SIGRTMAX, nullptr, &found);
    std::_Exit(found.sa_handler == own.sa_handler && sys::interruption_signal() == SIGRTMAX - 1);
  };
  EXPECT_EXIT(try_it(), ::testing::ExitedWithCode(1), "");
}

TEST(workers, survive_a_storm) {
  const auto n = static_cast<std::size_t>(scaled(20'000, 500));
  std::deque<std::deque<work>> jobs(4);
  std::atomic<std::size_t> refused{0};
  {
    workers pool(16, 1ms);
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < 4; ++t)
      all.emplace_back([&, t] {
        for (std::size_t i = 0; i < n; ++i) {
          work& w = jobs[t].emplace_back();
          if (i % 1000 == 999) std::this_thread::sleep_for(2ms);
          if (pool.submit(w) != 0) {
            ++refused;
            ++w.stops;
          }
          if (i % 1000 == 500) {
            pool.drain();
            EXPECT_EQ(w.runs + w.stops, 1);
          }
          if (t == 0 && i == n - n / 8) pool.stop();
        }
      });
    for (auto& t : all) t.join();
  }
  for (auto& of_thread : jobs)
    for (work& w : of_thread) ASSERT_EQ(w.runs + w.stops, 1);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace grosr::testing
