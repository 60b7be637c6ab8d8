// Jobs begin in order, each has its turn once, and threads are there while they are needed.
#include "sys/workers.hpp"

#include <cerrno>
#include <deque>

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

TEST(workers, let_a_job_submit_itself_again) {
  const auto rounds = static_cast<int>(scaled(20'000, 1000));
  workers pool(3);
  std::atomic<int> count{0};
  work w;
  w.body = [&] { EXPECT_TRUE(++count >= rounds || pool.submit(w) == 0); };
  ASSERT_EQ(pool.submit(w), 0);
  ASSERT_TRUE(comes_true([&] { return w.runs == rounds; }));
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
