// What is put into a stream behind a place of another one begins after all before that place.
#include "grosr/simt/timeline.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
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

// Many at once, each behind the ones whose bytes it reads or writes over.
TEST_P(timelines, copies_that_depend_on_each_other_are_in_order) {
  const auto rounds = static_cast<std::uint32_t>(scaled(400, 40));
  auto from = make<std::uint32_t>(rounds, space::pinned),
       back = make<std::uint32_t>(rounds, space::pinned);
  auto there = make<std::uint32_t>(3);
  for (std::uint32_t i = 0; i < rounds; ++i) from[i] = i * 7;
  timeline a(where());
  stream_point last;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    a.copy(there.data(), from.data() + i, 4);
    a.copy(there.data() + 1, there.data(), 4);
    a.copy(there.data() + 2, there.data() + 1, 4);
    a.copy(back.data() + i, there.data() + 2, 4);
    if (i % 3 == 0) last = a.here();
  }
  a.copy(back.data(), back.data(), 0);
  a.here().wait();
  EXPECT_TRUE(last.has_happened());
  for (std::uint32_t i = 0; i < rounds; ++i) ASSERT_EQ(back[i], i * 7);
}

// Few and many, short and long, at all places in a word: nothing beside them is written.
TEST_P(timelines, copies_are_of_all_sizes) {
  constexpr std::size_t room = 70'000, sizes[] = {1, 15, 16, 17, 4095, 4096, 65'537};
  for (const std::size_t n : {3, 16, 17, 40}) {
    auto from = make<unsigned char>(n * room, space::pinned),
         back = make<unsigned char>(n * room, space::pinned);
    auto there = make<unsigned char>(n * room);
    for (std::size_t i = 0; i < n * room; ++i)
      from[i] = static_cast<unsigned char>(i * 7 + i / 251);
    for (std::size_t i = 0; i < n * room; ++i) back[i] = 0xee;
    const auto size = [&](std::size_t i) { return sizes[(i + n) % std::size(sizes)]; };
    const auto offset = [&](std::size_t i, std::size_t step) { return 64 + i * step % 17; };
    timeline a(where());
    for (std::size_t i = 0; i < n; ++i)
      a.copy(there.data() + i * room + offset(i, 3), from.data() + i * room + offset(i, 5),
             size(i));
    a.queue();
    for (std::size_t i = 0; i < n; ++i)
      a.copy(back.data() + i * room + offset(i, 11), there.data() + i * room + offset(i, 3),
             size(i));
    a.here().wait();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < room; ++k) {
        const std::size_t first = offset(i, 11);
        const unsigned char expected =
            k >= first && k < first + size(i) ? from[i * room + k - first + offset(i, 5)] : 0xee;
        ASSERT_EQ(back[i * room + k], expected) << n << " copies, " << i << " at " << k;
      }
  }
}

TEST_P(timelines, copies_come_before_what_is_put_behind_them) {
  fit<1024, 1, copy_word>(where(), 32);
  auto from = make<std::uint32_t>(300, space::pinned),
       back = make<std::uint32_t>(300, space::pinned);
  auto there = make<std::uint32_t>(300), other = make<std::uint32_t>(300);
  for (std::uint32_t i = 0; i < 300; ++i) from[i] = i + 5;
  timeline a(where()), b(where());
  for (std::uint32_t i = 0; i < 300; ++i) {
    a.copy(there.data() + i, from.data() + i, 4);
    if (i % 50 == 49) launch(a.queue(), {1, 32}, copy_word{there.data() + i, other.data() + i});
  }
  b.wait_for(a.here());
  for (std::uint32_t i = 0; i < 300; ++i)
    b.copy(back.data() + i, (i % 50 == 49 ? other : there).data() + i, 4);
  b.here().wait();
  for (std::uint32_t i = 0; i < 300; ++i) ASSERT_EQ(back[i], i + 5);
}

// Whoever waits for a copy puts it into the stream, while the thread that copies goes on.
TEST_P(timelines, any_thread_may_wait_for_copies) {
  const auto rounds = static_cast<std::uint32_t>(scaled(2000, 100));
  auto from = make<std::uint32_t>(rounds, space::pinned),
       back = make<std::uint32_t>(rounds, space::pinned);
  std::iota(from.data(), from.data() + rounds, 1u);
  timeline a(where());
  std::vector<stream_point> places(rounds);
  std::atomic<std::uint32_t> copied{0}, wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = t; i < rounds; i += 3) {
        while (copied.load(std::memory_order_acquire) <= i) std::this_thread::yield();
        places[i].wait();
        if (back[i] != i + 1) ++wrong;
      }
    });
  for (std::uint32_t i = 0; i < rounds; ++i) {
    a.copy(back.data() + i, from.data() + i, 4);
    places[i] = a.here();
    copied.store(i + 1, std::memory_order_release);
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0u);
}

// What nobody has waited for is copied, too.
TEST_P(timelines, copies_are_put_at_the_end) {
  auto from = make<std::uint32_t>(1, space::pinned), back = make<std::uint32_t>(1, space::pinned);
  from[0] = 9;
  {
    timeline a(where());
    a.copy(back.data(), from.data(), 4);
  }
  EXPECT_EQ(back[0], 9u);
}

TEST_P(timelines, tell_when_a_place_was_come_to) {
  const auto now = [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  };
  constexpr std::int64_t near = 1'000'000;
  fit<1024, 1, pass>(where(), 32);
  auto gate = make<std::uint32_t>(1, space::pinned);
  auto words = make<std::uint32_t>(1);
  timeline a(where());
  EXPECT_FALSE(stream_time().ns());
  const stream_time before = a.time();
  launch(a.queue(), {1, 32}, pass{gate.data(), words.data()});
  const stream_time after = a.time();
  EXPECT_FALSE(after.ns());
  while (!before.ns()) std::this_thread::yield();
  const std::int64_t opened = now();
  open(gate);
  a.here().wait();
  const std::int64_t ended = now();
  ASSERT_TRUE(before.ns() && after.ns());
  EXPECT_LT(*before.ns(), opened + near);
  EXPECT_GT(*after.ns(), opened - near);
  EXPECT_LT(*after.ns(), ended + near);
  EXPECT_EQ(after.ns(), after.ns());
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
