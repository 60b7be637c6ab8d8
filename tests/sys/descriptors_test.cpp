// A descriptor stays open while a call uses it, and who closes it waits for short uses.
#include "sys/descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/scale.hpp"

namespace grosr::sys {
namespace {

using namespace std::chrono_literals;

constexpr unsigned threads = 4;

int made(descriptors& all) {
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  EXPECT_EQ(all.add(*all.make_room(), fd), fd);
  return fd;
}
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

/// Closes in a thread of its own; whether that waits until `end_uses` has been called.
template <class EndUses>
void expect_close_waits(descriptors& all, int fd, EndUses&& end_uses) {
  std::atomic<bool> closed{false};
  std::thread closes([&] {
    EXPECT_EQ(all.close(fd, [] {}), 0);
    closed = true;
  });
  while (!all.is_closing(fd)) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(closed);
  EXPECT_TRUE(is_open(fd));
  EXPECT_FALSE(all.begin_short(3, 0, fd));
  end_uses();
  closes.join();
  EXPECT_FALSE(is_open(fd));
  EXPECT_EQ(all.open(), 0u);
}

TEST(descriptors, close_waits_for_one_short_use) {
  descriptors all(8, threads);
  const int fd = made(all);
  ASSERT_TRUE(all.begin_short(0, 0, fd));
  expect_close_waits(all, fd, [&] { all.end_short(0); });
}

TEST(descriptors, close_waits_for_short_uses_that_met) {
  descriptors all(8, threads);
  const int fd = made(all);
  for (unsigned thread : {0u, 1u, 2u}) ASSERT_TRUE(all.begin_short(thread, thread % 2, fd));
  all.end_short(0);  // one that was counted
  expect_close_waits(all, fd, [&] {
    all.end_short(1);
    all.end_short(2);
  });
}

TEST(descriptors, one_call_uses_one_twice) {
  descriptors all(8, threads);
  const int fd = made(all);
  ASSERT_TRUE(all.begin_short(0, 0, fd));
  ASSERT_TRUE(all.begin_short(0, 1, fd));
  expect_close_waits(all, fd, [&] { all.end_short(0); });
}

TEST(descriptors, long_uses_outlive_close) {
  descriptors all(8, threads);
  const int fd = made(all);
  {
    auto use = all.acquire(fd);
    ASSERT_TRUE(use);
    EXPECT_EQ(all.close(fd, [] {}), 0);
    EXPECT_TRUE(is_open(fd));
    EXPECT_EQ(all.open(), 1u);
    EXPECT_EQ(all.close(fd, [] {}), -EBADF);
  }
  EXPECT_FALSE(is_open(fd));
  EXPECT_EQ(all.open(), 0u);
}

TEST(descriptors, uses_outlive_what_a_raw_call_has_replaced) {
  descriptors all(8, threads);
  const int fd = made(all);
  ASSERT_TRUE(all.begin_short(0, 0, fd));
  all.replaced(fd);
  EXPECT_EQ(all.add(*all.make_room(), fd), fd);  // closed without a word, and opened again
  all.end_short(0);
  EXPECT_EQ(all.close(fd, [] {}), 0);
  EXPECT_FALSE(is_open(fd));
}

TEST(descriptors, granted_again_while_they_close_stay) {
  descriptors all(8, threads);
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  ASSERT_TRUE(all.grant(fd));
  {
    auto use = all.acquire(fd);
    EXPECT_EQ(all.close(fd, [] {}), 0);
    EXPECT_TRUE(all.grant(fd));
  }
  EXPECT_TRUE(all.is_known(fd));
  EXPECT_TRUE(is_open(fd));
  ::close(fd);
}

TEST(descriptors, are_closed_once_however_threads_meet) {
  descriptors all(1, threads);
  for (unsigned round = 0; round < testing::scaled(400, 20); ++round) {
    const int fd = made(all);
    std::atomic<unsigned> used{0};
    const auto use = [&](unsigned thread) {
      for (unsigned turn = 0; all.begin_short(thread, turn % 2, fd); ++turn) {
        EXPECT_TRUE(is_open(fd));
        all.end_short(thread);
        used.fetch_add(1, std::memory_order_relaxed);
      }
    };
    std::thread one(use, 0u), other(use, 1u);
    while (used.load(std::memory_order_relaxed) < round % 8) std::this_thread::yield();
    EXPECT_EQ(all.close(fd, [] {}), 0);
    EXPECT_FALSE(is_open(fd));
    EXPECT_EQ(all.open(), 0u);
    one.join();
    other.join();
  }
}

}  // namespace
}  // namespace grosr::sys
