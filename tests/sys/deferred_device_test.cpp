// Handlers that reply later: each call ends once, with its own reply, and none holds a thread while
// it waits.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "support/errors.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(deferred);

using namespace std::chrono_literals;

/// Calls that wait, and what they were given.
struct waiting_calls {
  struct one {
    deferred_reply reply;
    std::span<long> to;
    long value;
  };
  std::mutex mutex;
  std::condition_variable came;
  std::deque<one> all;

  std::deque<one> take(std::size_t count) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(came.wait_for(lock, 60s, [&] { return all.size() >= count; })) << all.size();
    return std::exchange(all, {});
  }
};
struct keeps {
  static constexpr std::uint16_t number = 1;
  waiting_calls* in;
  void operator()(deferred_reply reply, long value, std::span<long> to) const {
    std::lock_guard lock(in->mutex);
    in->all.push_back({std::move(reply), to, value});
    in->came.notify_one();
  }
};
struct drops {
  static constexpr std::uint16_t number = 2;
  void operator()(deferred_reply reply, bool throws) const {
    const deferred_reply mine = std::move(reply);
    if (throws) throw std::runtime_error("no reply");
  }
};
struct replies_at_once {
  static constexpr std::uint16_t number = 3;
  void operator()(deferred_reply reply, long value) {
    EXPECT_TRUE(reply.is_awaited());
    EXPECT_TRUE(reply.reply(value + 1));
    EXPECT_FALSE(reply.reply(5));
    EXPECT_FALSE(reply.use([] { ADD_FAILURE() << "the call has ended"; }));
    EXPECT_FALSE(reply.is_awaited());
  }
};

struct call_each {
  server_ref sys;
  std::int64_t* r;  // two for each lane
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    long got = 0;
    r[2 * self] = call<keeps>(sys, long{self}, filled(&got, 1));
    r[2 * self + 1] = got;
  }
};
struct call_others {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    r[0] = call<drops>(sys, false);
    r[1] = call<drops>(sys, true);
    r[2] = call<replies_at_once>(sys, 41L);
    r[3] = syscall(sys, SYS_getpid);
  }
};

void reply_to(waiting_calls::one& w) {
  EXPECT_TRUE(w.reply.is_awaited());
  EXPECT_TRUE(w.reply.use([&] { w.to[0] = 3 * w.value; }));
  EXPECT_TRUE(w.reply.reply(2 * w.value));
}

TEST_P(deferred, replies_go_to_their_calls_in_any_order) {
  options o;
  o.threads = 1;
  waiting_calls waiting;
  server s(where(), o);
  s.install(keeps{&waiting});
  s.install(drops{});
  s.install(replies_at_once{});
  constexpr std::uint32_t lanes = 256;
  auto r = make<std::int64_t>(2 * lanes);
  auto others = make<std::int64_t>(4);
  simt::stream stream(where());
  simt::launch(stream, {2, lanes / 2}, call_each{s.ref(), r.data()});
  auto all = waiting.take(lanes);
  // The one thread of the server has others' calls meanwhile.
  run(1, 32, call_others{s.ref(), others.data()});
  EXPECT_EQ(contents(others), (std::vector<std::int64_t>{-ECANCELED, -ECANCELED, 42, ::getpid()}));
  std::thread other([&] {
    for (std::size_t i = 0; i < lanes / 2; ++i) reply_to(all[lanes - 1 - i]);
  });
  for (std::size_t i = 0; i < lanes / 2; ++i) reply_to(all[i]);
  other.join();
  stream.wait();
  const auto got = contents(r);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    ASSERT_EQ(got[2 * i], 2 * i) << i;
    ASSERT_EQ(got[2 * i + 1], 3 * i) << i;
  }
  s.drain(10s);
  EXPECT_EQ(s.statistics().thrown, 1u);
  EXPECT_EQ(s.statistics().waited, lanes + 3);
}

TEST_P(deferred, calls_end_with_the_server_and_their_replies_outlive_it) {
  waiting_calls waiting;
  auto r = make<std::int64_t>(64);
  std::deque<waiting_calls::one> all;
  {
    server s(where());
    s.install(keeps{&waiting});
    simt::stream stream(where());
    simt::launch(stream, {1, 32}, call_each{s.ref(), r.data()});
    all = waiting.take(32);
    EXPECT_EQ(testing::error_of([&] { s.drain(1ms); }).code(), errc::timed_out);
    s.stop();
    stream.wait();
    EXPECT_FALSE(all[0].reply.is_awaited());
    EXPECT_FALSE(all[0].reply.use([] { ADD_FAILURE() << "the call has ended"; }));
    EXPECT_FALSE(all[0].reply.reply(5));
    simt::launch(stream, {1, 32}, call_each{s.ref(), r.data()});
    stream.wait();
  }
  EXPECT_FALSE(all[1].reply.use([] { ADD_FAILURE() << "the server is gone"; }));
  EXPECT_FALSE(all[1].reply.reply(5));
  all.clear();
  for (std::size_t i = 0; i < 64; i += 2) EXPECT_EQ(contents(r)[i], -ESHUTDOWN);
}

TEST_P(deferred, replies_race_with_the_end_of_the_server) {
  for (std::uint64_t i = 0; i < testing::scaled(50, 5); ++i) {
    waiting_calls waiting;
    server s(where());
    s.install(keeps{&waiting});
    auto r = make<std::int64_t>(64);
    simt::stream stream(where());
    simt::launch(stream, {1, 32}, call_each{s.ref(), r.data()});
    auto all = waiting.take(32);
    std::atomic<long> replied{0};
    std::thread other([&] {
      for (auto& w : all)
        if (w.reply.use([&] { w.to[0] = 7; }) && w.reply.reply(1)) ++replied;
    });
    s.stop();
    other.join();
    stream.wait();
    long ended = 0;
    const auto got = contents(r);
    for (std::size_t k = 0; k < 64; k += 2) {
      ASSERT_TRUE(got[k] == 1 || got[k] == -ESHUTDOWN) << got[k];
      ASSERT_EQ(got[k + 1], got[k] == 1 ? 7 : 0);
      ended += got[k] == 1;
    }
    ASSERT_EQ(ended, replied);
  }
}

TEST_P(deferred, calls_are_found_under_many_schedules) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  options o;
  o.threads = 1;
  testing::for_seeds(
      200,
      [&] {
        waiting_calls waiting;
        server s(where(), o);
        s.install(keeps{&waiting});
        auto r = make<std::int64_t>(2 * 64);
        simt::stream stream(where());
        simt::launch(stream, {2, 32}, call_each{s.ref(), r.data()});
        for (std::size_t left = 64; left != 0;) {
          auto some = waiting.take(1);
          left -= some.size();
          for (auto& w : some) reply_to(w);
        }
        stream.wait();
        const auto got = contents(r);
        for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(got[2 * i + 1], 3 * i);
      },
      10);
}

// ---- handlers that are added ----

struct adds {
  long more;
  long operator()(long value) const { return value + more; }
};
struct call_added {
  server_ref sys;
  handler_ref h[3];
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    for (unsigned i = 0; i < 3; ++i) r[i] = call(sys, h[i], 40L);
  }
};

TEST_P(deferred, handlers_that_are_added_have_numbers_of_their_own) {
  server s(where());
  auto r = make<std::int64_t>(3);
  const handler_ref one = s.add(adds{1}), two = s.add(adds{2});
  run(1, 32, call_added{s.ref(), {one, two, {}}, r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{41, 42, -ENOSYS}));
  s.remove(one);
  s.remove({});
  const handler_ref three = s.add(adds{3});
  EXPECT_NE(three.number, one.number);
  run(1, 32, call_added{s.ref(), {one, two, three}, r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{-ENOSYS, 42, 43}));
  // As many as there can be, and a number that is free again.
  std::vector<handler_ref> all;
  while (all.size() < 16'382) all.push_back(s.add(adds{4}));
  EXPECT_EQ(testing::error_of([&] { s.add(adds{5}); }).code(), errc::invalid_option);
  s.remove(all[100]);
  EXPECT_EQ(s.add(adds{6}).number, all[100].number);
}

}  // namespace
}  // namespace grosr::sys
