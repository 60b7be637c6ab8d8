// A mailbox answers every request once: of one host thread or many, of tasks, beside other work and
// across parks. Errors reach whoever asked. The watchdog leaves a mailbox that waits alone, and
// names one whose request hangs.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "grosr/run/mailbox.hpp"
#include "grosr/run/runtime.hpp"
#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(mailbox_test);

using device_word = simt::atomic_ref<std::uint32_t>;
using shared_word = simt::atomic_ref<std::uint32_t, simt::scope::system>;

enum what : std::uint32_t {
  squares,  ///< the number
  fails,    ///< with it
  sleeps,   ///< so many milliseconds
  hangs,    ///< until the runtime aborts
};

struct question {
  std::uint32_t number, kind;
};

/// Counts in cells[number % 64] that it was asked.
template <width W>
struct oracle {
  static constexpr grosr::width width = W;
  using request = question;
  using answer = std::uint64_t;
  std::uint32_t* cells;
  GROSR_DEVICE int operator()(auto& context, const question& q, std::uint64_t& a) const {
    if (context.rank() == context.size() - 1)
      device_word(cells[q.number % 64]).fetch_add(1, simt::relaxed);
    if (context.rank() == 0) a = std::uint64_t{q.number} * q.number;
    if (q.kind == sleeps || q.kind == hangs) {
      const std::uint64_t end = context.clock_ns() + std::uint64_t{q.number} * 1'000'000;
      while ((q.kind == hangs || context.clock_ns() < end) && !context.aborted())
        simt::pause(1, "the clock");
      context.sync();
    }
    if (q.kind == hangs) return -ECANCELED;
    return q.kind == fails && context.rank() == 3 ? -static_cast<int>(q.number) : 0;
  }
};
using block_oracle = oracle<width::block>;
using warp_oracle = oracle<width::warp>;

/// Lanes that leave requests and go.
struct posts {
  mailbox_ref<block_oracle> box;
  std::uint32_t number, kind;
  std::uint32_t* refused;
  GROSR_DEVICE int operator()(auto& context) const {
    const int status = box.post(context, {number, kind});
    if (status == -EAGAIN) device_word(*refused).fetch_add(1, simt::relaxed);
    return status == -EAGAIN ? 0 : status;
  }
};

/// A warp that asks, and waits for the answer.
struct asks {
  static constexpr grosr::width width = grosr::width::warp;
  mailbox_ref<block_oracle> box;
  mail_cell* cell;
  std::uint32_t number, kind, asked = 0;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() != 0) return 0;
    int status = asked != 0 ? 0 : box.ask(context, {number, kind}, cell);
    if (status == 0) status = box.wait(context, *cell, 20'000'000'000);
    if (status == -EAGAIN) {  // the kernel leaves: waits in the next one
      context.spawn(asks{box, cell, number, kind, 1});
      return 0;
    }
    if (status != 0) return status;
    return box.answer(*cell) == std::uint64_t{number} * number ? 0 : -EPROTO;
  }
};

using mail_runtime =
    runtime<mail_server<block_oracle>, mail_server<warp_oracle>, posts, asks, tree, block_tree>;

runtime_options on_blocks(unsigned sms) {
  runtime_options o;
  o.memory_limit = std::size_t{64} << 20;
  o.sms = sms;
  return o;
}

template <class Oracle>
void answers_in_turn(const device& d, std::uint32_t* cells, std::uint32_t n) {
  mail_runtime rt(d, on_blocks(2));
  mailbox<Oracle> box(rt, Oracle{cells});
  for (std::uint32_t i = 0; i < n; ++i)
    ASSERT_EQ(box.ask({i, squares}).get(), std::uint64_t{i} * i) << i;
  rt.wait_all();  // a request is counted after it is answered
  EXPECT_EQ(rt.stats().requests, n);
}

TEST_P(mailbox_test, answers_one_request_after_the_other) {
  const auto n = static_cast<std::uint32_t>(scaled(640, 64)) / 64 * 64;
  auto& cells = keep<std::uint32_t>(64);
  answers_in_turn<block_oracle>(where(), cells.data(), n);
  EXPECT_TRUE(all_are(cells, n / 64));
  answers_in_turn<warp_oracle>(where(), cells.data(), n);
  EXPECT_TRUE(all_are(cells, n / 32));
}

TEST_P(mailbox_test, answers_many_host_threads) {
  auto& cells = keep<std::uint32_t>(64);
  const auto n = static_cast<std::uint32_t>(scaled(300, 32)) / 32 * 32;
  for (const std::uint32_t capacity : {1u, 4u, 64u}) {
    mail_runtime rt(where(), on_blocks(2));
    mailbox<block_oracle> box(rt, {cells.data()}, {.capacity = capacity});
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::vector<std::pair<std::uint32_t, mailbox<block_oracle>::reply>> open;
        for (std::uint32_t i = 0; i < n; ++i) {
          const std::uint32_t number = t * n + i;
          open.emplace_back(number, box.ask({number, squares}));
          if (i % 5 == 4) open.erase(open.begin());  // nobody waits for it
          if (open.size() < 1 + t * 3) continue;
          for (auto& [of, reply] : open) wrong += reply.get() != std::uint64_t{of} * of;
          open.clear();
        }
        for (auto& [of, reply] : open) wrong += reply.get() != std::uint64_t{of} * of;
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(wrong, 0u);
  }
  EXPECT_TRUE(all_are(cells, 3 * 4 * n / 64));
}

TEST_P(mailbox_test, that_is_full_says_so_or_waits) {
  auto& cells = keep<std::uint32_t>(64);
  mail_runtime rt(where(), on_blocks(2));
  mailbox<block_oracle> box(rt, {cells.data()}, {.capacity = 2});
  const auto slow = box.ask({100, sleeps});
  const auto behind = box.try_ask({1, squares});
  ASSERT_TRUE(behind);
  EXPECT_FALSE(box.try_ask({2, squares}));
  EXPECT_FALSE(slow.wait_for(1ms));
  EXPECT_EQ(box.ask({3, squares}).get(), 9u);  // waits for the first
  EXPECT_TRUE(slow.ready());
  EXPECT_EQ(behind->get(), 1u);
  EXPECT_EQ(error_of([&] { mailbox<block_oracle>(rt, {cells.data()}, {.capacity = 3}); }).code(),
            errc::invalid_option);
  const error e = error_of([&] { mailbox<block_oracle>(rt, {cells.data()}, {.posts = 3}); });
  EXPECT_EQ(e.code(), errc::invalid_option);
  EXPECT_NE(std::string(e.what()).find("mailbox: posts: a capacity of 3"), std::string::npos);
}

TEST_P(mailbox_test, serves_requests_that_nobody_waits_for) {
  auto& cells = keep<std::uint32_t>(64);
  {
    mail_runtime rt(where(), on_blocks(2));
    mailbox<block_oracle> box(rt, {cells.data()});
    for (std::uint32_t i = 0; i < 64; ++i) box.ask({i, squares});
  }
  EXPECT_TRUE(all_are(cells, 1u));
}

TEST_P(mailbox_test, answers_tasks) {
  auto& cells = keep<std::uint32_t>(64);
  auto& refused = keep<std::uint32_t>(1);
  const auto n = static_cast<std::uint32_t>(scaled(256, 64)) / 64 * 64;
  auto& answers = keep<mail_cell>(n);
  mail_runtime rt(where(), on_blocks(0));
  {
    mailbox<block_oracle> box(rt, {cells.data()}, {.posts = 1024});
    std::vector<posts> all;
    for (std::uint32_t i = 0; i < n; ++i) all.push_back({box.ref(), i, squares, refused.data()});
    rt.submit(all);
    rt.wait_all();
    for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(box.ask({i, squares}).get(), i * i);
    // One at a time, for all workers that wait would leave none for the server.
    for (std::uint32_t i = 0; i < n; ++i) {
      rt.submit(asks{box.ref(), answers.data() + i, i, squares});
      rt.wait_all();
    }
    rt.wait_all();
  }
  EXPECT_EQ(contents(refused)[0], 0u);
  for (const task_error& e : rt.errors()) ADD_FAILURE() << e.type << ": " << e.code;
  EXPECT_TRUE(all_are(cells, 3 * n / 64));
  EXPECT_EQ(rt.stats().requests, 3 * n);
}

TEST_P(mailbox_test, refuses_tasks_that_it_has_no_room_for) {
  auto& cells = keep<std::uint32_t>(64);
  auto& refused = keep<std::uint32_t>(1);
  mail_runtime rt(where(), on_blocks(2));
  mailbox<block_oracle> box(rt, {cells.data()}, {.posts = 4});
  const auto slow = box.ask({50, sleeps});
  std::vector<posts> all;
  for (std::uint32_t i = 0; i < 64; ++i) all.push_back({box.ref(), i, squares, refused.data()});
  rt.submit(all).wait();
  rt.wait_all();
  const std::uint32_t lost = contents(refused)[0];
  std::uint32_t served = 0;
  for (const std::uint32_t c : contents(cells)) served += c;
  EXPECT_EQ(served + lost, 65u);
  EXPECT_EQ(slow.status(), 0);
  rt.park();  // memcheck knows no memory that comes while a kernel runs
  mailbox<block_oracle> closed(rt, {cells.data()});  // no posts
  const ticket t = rt.submit(posts{closed.ref(), 1, squares, refused.data()});
  t.wait();
  EXPECT_TRUE(t.failed());
  EXPECT_EQ(rt.errors().back().code, -ENOTSUP);
}

TEST_P(mailbox_test, tells_whoever_asked_of_errors) {
  auto& cells = keep<std::uint32_t>(64);
  auto& refused = keep<std::uint32_t>(1);
  auto& cell = keep<mail_cell>(1);
  mail_runtime rt(where(), on_blocks(2));
  mailbox<block_oracle> box(rt, {cells.data()}, {.posts = 4});
  const auto bad = box.ask({ENOENT, fails});
  EXPECT_EQ(bad.status(), -ENOENT);
  EXPECT_EQ(error_of([&] { bad.get(); }).code(), errc::task_failed);
  EXPECT_EQ(box.ask({4, squares}).get(), 16u);
  EXPECT_EQ(rt.stats().failed, 0u);
  rt.submit(asks{box.ref(), cell.data(), EIO, fails});
  rt.wait_all();
  ASSERT_EQ(rt.errors().size(), 1u);
  EXPECT_EQ(rt.errors()[0].code, -EIO);
  rt.submit(posts{box.ref(), EPERM, fails, refused.data()});
  rt.wait_all();
  const auto errors = rt.errors();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[1].code, -EPERM);
  EXPECT_NE(errors[1].type.find("mail_server"), std::string::npos) << errors[1].type;
}

TEST_P(mailbox_test, goes_on_beside_other_work) {
  auto& cells = keep<std::uint32_t>(64);
  auto& leaves = keep<std::uint32_t>(1);
  mail_runtime rt(where(), on_blocks(1));  // which the server and all others share
  mailbox<block_oracle> box(rt, {cells.data()});
  for (std::uint32_t i = 0; i < 64; ++i) {
    rt.submit(tree{leaves.data(), 6});
    const auto answer = box.ask({i, squares});
    rt.submit(block_tree{leaves.data(), 2}, priority::high);
    ASSERT_TRUE(answer.wait_for(60s));
    ASSERT_EQ(answer.get(), i * i);
  }
  rt.wait_all();
  EXPECT_EQ(contents(leaves)[0], 64u * (64 + 4));
}

TEST_P(mailbox_test, goes_on_after_parks) {
  auto& cells = keep<std::uint32_t>(64);
  const auto n = static_cast<std::uint32_t>(scaled(256, 64)) / 64 * 64;
  mail_runtime rt(where(), on_blocks(2));
  mailbox<block_oracle> box(rt, {cells.data()}, {.posts = 64});
  std::atomic<bool> over{false};
  std::thread parker([&] {
    while (!over) {
      rt.park();
      std::this_thread::sleep_for(2ms * slowdown);
    }
  });
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < n; ++i) {
        const auto answer = box.ask({i, squares});
        if (i % 3 == t) std::this_thread::sleep_for(500us);
        if (!answer.wait_for(60s) || answer.get() != i * i) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  over = true;
  parker.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(all_are(cells, 3 * n / 64));
  rt.wait_all();
  EXPECT_EQ(rt.stats().requests, 3 * n);
}

// Requests follow each other without a pause.
TEST_P(mailbox_test, does_not_hold_up_a_park) {
  auto& cells = keep<std::uint32_t>(64);
  mail_runtime rt(where(), on_blocks(2));
  mailbox<block_oracle> box(rt, {cells.data()});
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!over) box.ask({1, sleeps}).wait();
    });
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(20ms);
    rt.park();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, 20s);
  over = true;
  for (auto& t : threads) t.join();
}

runtime_options impatient() {
  runtime_options o = on_blocks(2);
  o.watchdog = 300ms;
  return o;
}

TEST_P(mailbox_test, that_waits_is_left_alone_by_the_watchdog_and_by_stop) {
  auto& cells = keep<std::uint32_t>(64);
  runtime_options o = impatient();
  o.idle_timeout = 0us;
  mail_runtime rt(where(), o);
  mailbox<block_oracle> box(rt, {cells.data()}, {.posts = 2, .patience = 10s});
  EXPECT_EQ(box.ask({5, squares}).get(), 25u);
  std::this_thread::sleep_for(800ms);
  EXPECT_EQ(box.ask({6, squares}).get(), 36u);
  EXPECT_TRUE(rt.wait_all_for(10s));
  rt.stop(10s);
  EXPECT_EQ(error_of([&] { box.ask({7, squares}).wait(); }).code(), errc::stopped);
}

TEST_P(mailbox_test, that_is_always_busy_is_left_alone_by_the_watchdog) {
  auto& cells = keep<std::uint32_t>(64);
  mail_runtime rt(where(), impatient());
  mailbox<block_oracle> box(rt, {cells.data()});
  std::vector<mailbox<block_oracle>::reply> all;
  for (int i = 0; i < 40; ++i) all.push_back(box.ask({20, sleeps}));
  for (const auto& one : all) EXPECT_EQ(one.status(), 0);
}

TEST_P(mailbox_test, whose_request_hangs_is_named_by_the_watchdog) {
  auto& cells = keep<std::uint32_t>(64);
  mail_runtime rt(where(), impatient());
  mailbox<block_oracle> box(rt, {cells.data()});
  EXPECT_EQ(box.ask({5, squares}).get(), 25u);
  const auto hung = box.ask({0, hangs});
  const auto behind = box.ask({1, squares});
  std::thread other([&] {
    const error e = error_of([&] { behind.wait(); });
    EXPECT_EQ(e.code(), errc::watchdog) << e.what();
  });
  const error e = error_of([&] { hung.wait(); });
  other.join();
  EXPECT_EQ(e.code(), errc::watchdog) << e.what();
  EXPECT_NE(std::string(e.what()).find("mail_server"), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("oracle"), std::string::npos) << e.what();
  EXPECT_EQ(error_of([&] { box.ask({1, squares}).wait(); }).code(), errc::watchdog);
}

TEST_P(mailbox_test, ends_when_the_runtime_aborts) {
  auto& cells = keep<std::uint32_t>(64);
  mail_runtime rt(where(), on_blocks(2));
  mailbox<block_oracle> box(rt, {cells.data()});
  const auto hung = box.ask({0, hangs});
  EXPECT_FALSE(hung.wait_for(20ms));
  EXPECT_EQ(error_of([&] { rt.stop(1ms); }).code(), errc::timed_out);
  EXPECT_EQ(error_of([&] { hung.wait(); }).code(), errc::stopped);
}

TEST_P(mailbox_test, is_made_and_ended_again_and_again) {
  auto& cells = keep<std::uint32_t>(64);
  auto& refused = keep<std::uint32_t>(1);
  mail_runtime rt(where(), on_blocks(2));
  for (std::uint32_t i = 0; i < 20; ++i) {
    mailbox<block_oracle> box(rt, {cells.data()}, {.capacity = 4, .posts = i % 2 * 8});
    if (i % 4 == 3) rt.submit(posts{box.ref(), 0, squares, refused.data()}).wait();
    if (i % 3 != 2) box.ask({0, squares});
  }
  EXPECT_EQ(contents(cells)[0], 5u + 14u);
}

TEST(mailbox, answers_all_in_every_schedule) {
  std::uint32_t round = 0;
  for_seeds(60, [&] {
    std::vector<std::uint32_t> cells(64);
    std::uint32_t refused = 0;
    runtime_options o = on_blocks(1 + round % 3);
    o.idle_timeout = std::chrono::microseconds(round % 5 == 0 ? 200 : 20'000);
    mail_runtime rt(device(), o);
    {
      mailbox<block_oracle> box(rt, {cells.data()}, {.capacity = 4, .posts = 64});
      std::thread other([&] {
        for (std::uint32_t i = 0; i < 16; ++i)
          EXPECT_EQ(box.ask({i, squares}).get(), std::uint64_t{i} * i);
      });
      for (std::uint32_t i = 16; i < 32; ++i) {
        rt.submit(posts{box.ref(), i + 16, squares, &refused});
        EXPECT_EQ(box.ask({i, squares}).get(), std::uint64_t{i} * i);
        if (round % 4 == 3 && i % 8 == 0) rt.park();
      }
      other.join();
      rt.wait_all();
    }
    for (std::uint32_t i = 0; i < 48; ++i) ASSERT_EQ(cells[i], 1u) << i;
    ASSERT_EQ(refused, 0u);
    ++round;
  });
}

}  // namespace
}  // namespace grosr::testing
