// What is put into a stream behind a place of another one begins after all before that place.
#include "grosr/simt/timeline.hpp"

#include <atomic>
#include <memory>
#include <thread>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(timelines);
using testing::scaled;

/// Waits for a gate that the host opens, then counts.
struct pass {
  std::uint32_t* gate;
  std::uint32_t* passed;
  GROSR_DEVICE void operator()() const {
    wait_until([&] { return atomic_ref(*gate).load(acquire) != 0; }, forever, nullptr, "the gate");
    if (thread_id() == 0) atomic_ref(*passed).fetch_add(1u, relaxed);
  }
};
struct copy_word {
  const std::uint32_t* from;
  std::uint32_t* to;
  GROSR_DEVICE void operator()() const {
    if (thread_id() == 0) *to = *from;
  }
};
struct set_word {
  std::uint32_t* word;
  std::uint32_t value;
  GROSR_DEVICE void operator()() const {
    if (thread_id() == 0) *word = value;
  }
};

void open(buffer<std::uint32_t>& gate) {
  std::atomic_ref(gate[0]).store(1, std::memory_order_release);
}

TEST_P(timelines, hold_others_at_a_place) {
  fit<1024, 1, pass>(where(), 32);
  fit<1024, 1, copy_word>(where(), 32);
  for (const bool marked : {false, true}) {
    auto gate = make<std::uint32_t>(1, space::pinned);
    auto words = make<std::uint32_t>(2);
    timeline a(where()), b(where());
    launch(a.queue(), {1, 32}, pass{gate.data(), words.data()});
    const stream_point there = marked ? a.mark() : a.here();
    b.wait_for(there);
    launch(b.queue(), {1, 32}, copy_word{words.data(), words.data() + 1});
    const stream_point after = b.here();
    EXPECT_FALSE(there.has_happened());
    EXPECT_FALSE(after.has_happened());
    open(gate);
    after.wait();
    EXPECT_TRUE(there.has_happened());
    EXPECT_TRUE(after.has_happened());
    EXPECT_EQ(contents(words), (std::vector<std::uint32_t>{1, 1}));
  }
}

TEST_P(timelines, a_mark_waits_for_nothing_behind_it) {
  fit<1024, 1, pass>(where(), 32);
  auto gate = make<std::uint32_t>(1, space::pinned);
  auto words = make<std::uint32_t>(2);
  timeline a(where());
  launch(a.queue(), {1, 32}, set_word{words.data() + 1, 7});
  const stream_point there = a.mark();
  launch(a.queue(), {1, 32}, pass{gate.data(), words.data()});
  there.wait();
  EXPECT_TRUE(there.has_happened());
  EXPECT_FALSE(a.here().has_happened());
  open(gate);
}

TEST_P(timelines, places_say_which_is_later) {
  timeline a(where()), b(where());
  const stream_point first = a.here(), second = a.here(), other = b.here();
  EXPECT_TRUE(second.covers(first));
  EXPECT_TRUE(second.covers(second));
  EXPECT_FALSE(first.covers(second));
  EXPECT_FALSE(first.covers(other));
  EXPECT_TRUE(first.covers(stream_point()));
  EXPECT_TRUE(stream_point().has_happened());
  stream_point().wait();
}

TEST_P(timelines, places_outlive_their_timeline) {
  auto words = make<std::uint32_t>(2);
  stream_point there;
  {
    timeline a(where());
    launch(a.queue(), {1, 32}, set_word{words.data(), 3});
    there = a.here();
  }
  timeline b(where());
  b.wait_for(there);
  launch(b.queue(), {1, 32}, copy_word{words.data(), words.data() + 1});
  b.here().wait();
  EXPECT_EQ(contents(words), (std::vector<std::uint32_t>{3, 3}));
  EXPECT_TRUE(there.has_happened());
}

// A value that goes round many streams, each time behind the place before.
TEST_P(timelines, chains_over_many_streams) {
  std::vector<std::unique_ptr<timeline>> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(std::make_unique<timeline>(where()));
  const auto hops = static_cast<std::uint32_t>(scaled(500, 50));
  auto words = make<std::uint32_t>(hops + 1);
  launch(streams[0]->queue(), {1, 32}, set_word{words.data(), 5});
  stream_point last = streams[0]->here();
  for (std::uint32_t i = 0; i < hops; ++i) {
    timeline& s = *streams[(i * 7 + i / 3) % streams.size()];
    s.wait_for(last);
    launch(s.queue(), {1, 32}, copy_word{words.data() + i, words.data() + i + 1});
    last = i % 3 == 0 ? s.mark() : s.here();
  }
  last.wait();
  EXPECT_EQ(contents(words).back(), 5u);
}

TEST_P(timelines, any_thread_may_wait) {
  auto words = make<std::uint32_t>(1);
  timeline a(where());
  std::vector<std::thread> threads;
  std::atomic<int> seen{0};
  for (std::uint32_t i = 0; i < 8; ++i) {
    launch(a.queue(), {1, 32}, set_word{words.data(), i});
    threads.emplace_back([p = a.here(), &seen] {
      p.wait();
      if (p.has_happened()) ++seen;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(seen, 8);
}

TEST_P(timelines, copies_are_in_order) {
  auto from = make<std::uint32_t>(1000, space::pinned),
       back = make<std::uint32_t>(1000, space::pinned);
  auto there = make<std::uint32_t>(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) from[i] = i * i;
  timeline a(where());
  copy_bytes(a.queue(), there.data(), from.data(), from.bytes());
  copy_bytes(a.queue(), back.data(), there.data(), there.bytes());
  copy_bytes(a.queue(), back.data(), back.data(), 0);
  a.here().wait();
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(back[i], i * i);
}

TEST(host_timelines, of_a_failed_stream_throw_and_hold_nobody_for_ever) {
  timeline a{device()}, b{device()};
  a.queue().call_host([] { throw error(errc::task_failed, "failed as asked"); });
  const stream_point there = a.here();
  try {
    b.wait_for(there);
  } catch (const error&) {  // it had failed already
  }
  EXPECT_THROW(there.wait(), error);
  EXPECT_THROW(there.has_happened(), error);
  try {
    b.here().wait();
  } catch (const error&) {  // it has failed, too
  }
}

TEST(host_timelines, that_fail_say_so_only_of_what_comes_behind) {
  timeline a{device()};
  std::atomic<bool> ran{false};
  a.queue().call_host([&] { ran = true; });
  const stream_point before = a.mark();
  before.wait();
  a.queue().call_host([] { throw error(errc::task_failed, "failed as asked"); });
  EXPECT_THROW(a.mark().wait(), error);
  EXPECT_TRUE(before.has_happened());
  before.wait();
}

}  // namespace
}  // namespace grosr::simt
